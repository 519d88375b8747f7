"""What a design takes more than one that has been mapped: by its components, in milliseconds.

A component of a kind is taken to need what yosys makes of it alone; what it makes of several
together differs, so this says which design to map next, and by about how much a design is too
large, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil

from energy_models.component import Component
from fpga.cells import Cells
from fpga.devices import Device

__all__ = ["cells_beside", "parts_of"]

_RAM_SHAPES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "ecp5": ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384)),
    "ice40": ((16, 256), (8, 512), (4, 1024), (2, 2048)),
    "gowin": ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384)),
}
"""Bits and depth that a block RAM may have."""

_FACTOR_BITS = {"ecp5": 18, "ice40": 16, "gowin": 18}
"""Of a factor of a signed multiplier of the chip."""


def cells_beside(
    components: Iterable[Component], mapped: Cells, of: Iterable[Component], device: Device
) -> Cells:
    """Of components, if those of another design were mapped to these cells on this chip."""
    more, base = parts_of(components, device).record(), parts_of(of, device).record()
    known = mapped.record()
    return Cells(**{name: max(known[name] + more[name] - base[name], 0) for name in known})


def parts_of(components: Iterable[Component], device: Device) -> Cells:
    """Of registers, adders, multiplexers, shifters, multipliers and memories alone."""
    found: Counter[str] = Counter()
    for one in components:
        paired = (
            device.family == "ice40" and one.kind == "mac" and one.attributes["operand_bits"] <= 8
        )
        for name, count in _part(one.kind, one.attributes, device).items():
            halved = paired and name == "dsps"  # `fpga.own_cells`
            found[name] += ceil(one.count / 2) if halved else one.count * count
    return Cells(**found)


def _part(kind: str, sizes: Mapping[str, int], device: Device) -> dict[str, int]:
    if kind == "register":
        return {"flip_flops": sizes["bits"]}
    if kind == "adder":
        return _adder(sizes["bits"], device)
    if kind == "mux":
        return {"lut4": sizes["bits"] * (sizes["ways"] - 1)}
    if kind == "shifter":
        return {"lut4": sizes["bits"] * (sizes["bits"] - 1).bit_length()}
    if kind == "multiplier":
        return _product(sizes["a_bits"], sizes["b_bits"], device)
    if kind == "mac":
        product = _product(sizes["operand_bits"], sizes["operand_bits"], device)
        added = Counter(product) + Counter(_adder(sizes["accumulator_bits"], device))
        return dict(added)
    if kind == "sram":
        return {"block_rams": _blocks(sizes["word_bits"], sizes["depth"], device)}
    return {}


def _adder(bits: int, device: Device) -> dict[str, int]:
    """On ECP5 and Gowin a carry's place is a look-up table's; on iCE40 it lies beside one."""
    return {"carry": bits, "lut4": bits} if device.family == "ice40" else {"carry": bits}


def _product(a_bits: int, b_bits: int, device: Device) -> dict[str, int]:
    if not device.dsps:
        return {"lut4": a_bits * b_bits, "carry": a_bits * b_bits // 2}
    factor = _FACTOR_BITS[device.family]
    whole = ceil(a_bits / factor) * ceil(b_bits / factor)
    halves = device.family == "gowin" and max(a_bits, b_bits) > factor // 2
    return {"dsps": 2 * whole if halves else whole}


def _blocks(bits: int, depth: int, device: Device) -> int:
    shapes = _RAM_SHAPES[device.family]
    return min(ceil(bits / wide) * ceil(depth / deep) for wide, deep in shapes)
