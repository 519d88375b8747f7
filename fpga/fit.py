"""Whether a design fits a chip: a first look before hours pass, and the count of its cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archsim.errors import require
from archsim.machine.design import Design
from energy_models.component import Component
from fpga import gowin
from fpga.cells import Cells
from fpga.devices import Device

__all__ = ["LUTS_OF_A_LUT_RAM", "at_least", "check_cells", "check_design", "taken"]

LUTS_OF_A_LUT_RAM = 6
"""Four hold words of 16 × 4 bits, two write them: a TRELLIS_DPR16X4 and its TRELLIS_RAMW."""

_FEWER_MULTIPLIERS = "; lut_product_rows of a systolic array puts products into look-up tables"

_NAMES = {
    "memory_bits": "bits in memories",
    "flip_flops": "flip-flops",
    "luts": "look-up tables",
}


def at_least(components: Iterable[Component], device: Device) -> Mapping[str, float]:
    """What components need whatever the tools do, from their sizes alone.

    memory_bits: of memories, all of which are block RAM. flip_flops: of registers. luts: of adders,
    a look-up table a bit; and a · b / 2 of the smallest of the products that are more than the
    chip's multipliers hold.
    """
    products: list[tuple[int, int]] = []
    memory_bits = flip_flops = luts = 0.0
    for one in components:
        sizes = one.attributes
        if one.kind == "sram":
            memory_bits += one.count * sizes["word_bits"] * sizes["depth"]
        elif one.kind == "register":
            flip_flops += one.count * sizes["bits"]
        elif one.kind == "adder":
            luts += one.count * sizes["bits"]
        elif one.kind == "multiplier":
            products.append((one.count, sizes["a_bits"] * sizes["b_bits"]))
        elif one.kind == "mac":
            products.append((one.count, sizes["operand_bits"] ** 2))
    left = max(sum(count for count, _ in products) - device.products, 0)
    for count, bits in sorted(products, key=lambda one: one[1]):
        luts += min(count, left) * bits / 2
        left -= min(count, left)
    return {"memory_bits": memory_bits, "flip_flops": flip_flops, "luts": luts}


def check_design(design: Design, device: Device) -> None:
    """Refuse a design that cannot fit, before it is emitted. Raises `InputError`."""
    has = {
        "memory_bits": device.block_rams * device.block_ram_bits,
        "flip_flops": device.flip_flops,
        "luts": device.luts,
    }
    for what, needs in at_least(design.components, device).items():
        require(
            needs <= has[what],
            f"the design must be smaller for {device.family} {device.name}: it needs at least "
            f"{needs:,.0f} {_NAMES[what]}, and the chip has {has[what]:,}; try --set with fewer "
            f"rows, columns or bytes of memory",
        )


def taken(cells: Cells, device: Device) -> Mapping[str, tuple[int, int]]:
    """Places that a netlist takes on a chip and that the chip has, by what they are."""
    luts, flip_flops = cells.lut4, cells.flip_flops
    if device.family == "ecp5":
        luts += cells.carry + LUTS_OF_A_LUT_RAM * cells.lut_rams
    if device.family == "gowin":
        luts += cells.carry + gowin.LUTS_OF_A_LUT_RAM * cells.lut_rams
        flip_flops += gowin.FLIP_FLOPS_OF_A_LUT_RAM * cells.lut_rams
    return {
        "look-up tables": (luts, device.luts),
        "flip-flops": (flip_flops, device.flip_flops),
        "block RAMs": (cells.block_rams, device.block_rams),
        "multipliers": (cells.dsps, device.dsps),
    }


def check_cells(cells: Cells, device: Device) -> None:
    """Refuse a netlist that has more cells than the chip. Raises `InputError`."""
    for name, (needs, has) in taken(cells, device).items():
        more = _FEWER_MULTIPLIERS if name == "multipliers" else ""
        require(
            needs <= has,
            f"the design must be smaller for {device.family} {device.name}: it takes "
            f"{needs:,} {name}, and the chip has {has:,}{more}",
        )
