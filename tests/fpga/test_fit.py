"""Chips, counts of cells, and what is refused before hours pass."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.machines.systolic.design import CLOUD_128, Systolic
from archsim.memory import Plain
from fpga import gowin
from fpga.cells import Cells, cells_of, without_pins
from fpga.devices import DEVICES, FAMILIES, Device, Target
from fpga.fit import LUTS_OF_A_LUT_RAM, at_least, check_cells, check_design
from rtl.toolchain import ToolchainError

SMALL = Systolic(
    rows=3,
    columns=5,
    ifmap_memory=Plain(capacity_bytes=512),
    weight_memory=Plain(capacity_bytes=512),
    accumulator_memory=Plain(capacity_bytes=1024),
    bias_words=16,
)


@given(st.dictionaries(st.sampled_from(["LUT4", "CCU2C", "TRELLIS_FF"]), st.integers(0, 9)))
def test_cells_are_counted_by_what_they_take(counts: dict[str, int]) -> None:
    names = [name for name, count in counts.items() for _ in range(count)]
    module = {"cells": {str(at): {"type": name} for at, name in enumerate(names)}}
    assert cells_of(module) == Cells(
        lut4=counts.get("LUT4", 0),
        carry=2 * counts.get("CCU2C", 0),
        flip_flops=counts.get("TRELLIS_FF", 0),
    )


def test_flip_flops_and_memories_of_ice40_have_many_names() -> None:
    names = ("SB_DFF", "SB_DFFESR", "SB_RAM40_4K", "SB_RAM40_4KNW", "SB_MAC16", "$scopeinfo")
    module = {"cells": {name: {"type": name} for name in names}}
    assert cells_of(module) == Cells(flip_flops=2, block_rams=2, dsps=1)


def test_a_cell_that_is_not_known_is_not_left_out() -> None:
    with pytest.raises(ToolchainError, match="1 cells of the unknown kind SB_SPRAM256KA"):
        cells_of({"cells": {"one": {"type": "SB_SPRAM256KA"}}})


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda one: one.name)
def test_the_last_cell_that_fits_and_the_first_that_does_not(device: Device) -> None:
    full = {
        "lut4": device.luts,
        "flip_flops": device.flip_flops,
        "block_rams": device.block_rams,
        "dsps": device.dsps,
    }
    check_cells(Cells(**full), device)
    for name, most in full.items():
        with pytest.raises(InputError, match=rf"takes {most + 1:,} .*the chip has {most:,}"):
            check_cells(Cells(**{**full, name: most + 1}), device)


def test_look_up_tables_of_carries_and_memories_count_on_ecp5_alone() -> None:
    ecp5, ice40 = DEVICES["85k"], DEVICES["hx8k"]
    room = Cells(lut4=ecp5.luts - 2 - LUTS_OF_A_LUT_RAM, carry=2, lut_rams=1)
    check_cells(room, ecp5)
    with pytest.raises(InputError, match="look-up tables"):
        check_cells(Cells(lut4=room.lut4, carry=3, lut_rams=1), ecp5)
    check_cells(Cells(lut4=ice40.luts, carry=ice40.luts), ice40)


def test_designs_are_refused_before_they_are_emitted() -> None:
    check_design(SMALL, DEVICES["85k"])
    with pytest.raises(InputError, match=r"at least 88,080,384 bits .*the chip has 3,833,856"):
        check_design(CLOUD_128, DEVICES["85k"])


def test_multipliers_are_look_up_tables_where_a_chip_has_too_few() -> None:
    few, many = (at_least(SMALL.components, DEVICES[name])["luts"] for name in ("hx8k", "85k"))
    assert few - many == 15 * 8 * 8 / 2 + 5 * 33 * 16 / 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"family": "xilinx"}, "family must be one of ecp5, ice40, gowin, not 'xilinx'"),
        ({"family": "ice40", "device": "85k"}, "device must be one of hx1k, hx8k, up5k for ice40"),
        ({"clock_hz": 0.0}, "clock_hz must be positive, not 0.0"),
        ({"seed": -1}, "seed must not be negative, not -1"),
    ],
)
def test_targets_check_themselves(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Target(**settings)  # pyright: ignore[reportArgumentType]


def test_a_family_stands_for_its_largest_chip() -> None:
    for family, name in FAMILIES.items():
        luts = max(one.luts for one in DEVICES.values() if one.family == family)
        assert Target(family=family).chip == DEVICES[name]
        assert DEVICES[name].luts == luts


def test_pins_are_not_counted() -> None:
    """Every board has them; a clock's pin of an iCE40 is a cell with its buffer."""
    names = ("SB_IO", "SB_GB", "SB_GB_IO", "TRELLIS_IO", "DCCA", "SB_DFF", "IBUF", "TBUF", "BUFG")
    netlist = {"cells": {name: {"type": name} for name in names}}
    assert cells_of(without_pins(netlist)) == Cells(flip_flops=1)


def test_cells_of_gowin() -> None:
    """A look-up table of fewer inputs takes a place; a multiplier of 18 × 18 that of two."""
    names = "LUT1 LUT4 MUX2_LUT5 MUX2_LUT8 ALU DFF DFFRE SDPX9B DPB RAM16SDP4 MULT9X9 MULT18X18 VCC"
    found = cells_of({"cells": {name: {"type": name} for name in names.split()}})
    assert found == Cells(lut4=2, carry=1, lut_rams=1, flip_flops=2, block_rams=2, dsps=3)


def test_a_look_up_table_memory_of_gowin_takes_a_block_of_logic() -> None:
    chip = DEVICES["gw1nr-9"]
    assert (chip.luts, chip.flip_flops) == (8640, 6480)
    room = Cells(
        lut4=chip.luts - 2 - gowin.LUTS_OF_A_LUT_RAM,
        carry=2,
        lut_rams=1,
        flip_flops=chip.flip_flops - gowin.FLIP_FLOPS_OF_A_LUT_RAM,
    )
    check_cells(room, chip)
    for name in ("carry", "flip_flops", "lut_rams"):
        with pytest.raises(InputError, match="must be smaller for gowin gw1nr-9"):
            check_cells(replace(room, **{name: getattr(room, name) + 1}), chip)


def test_what_gowin_reports_as_taken() -> None:
    """A core that was placed: 988 of its look-up tables only let a flip-flop's input through."""
    used = {"LUT4": 2795 + 988, "ALU": 1668, "RAM16SDP4": 32, "DFF": 2316}
    every = {name: {"used": count, "available": 8640} for name, count in used.items()}
    assert gowin.places(every) == (4719 + 988, 8640)


def test_commands_of_amaranth_for_the_older_nextpnr() -> None:
    place = "nextpnr-gowin --quiet --log top.tim --device LV1 --family GW1N-1 --cst top.cst"
    words = gowin.place_words([*place.split(), "--write", "top.pnr.json"], 13.5e6)
    assert " ".join(words) == (
        "--device LV1 --vopt family=GW1N-1 --vopt cst=top.cst --json top.json --freq 13.5"
    )
    pack = "gowin_pack -d GW1N-1 -o top.fs --sspi_as_gpio"
    words = gowin.pack_words([*pack.split(), "top.pnr.json"])
    assert " ".join(words) == "-d GW1N-1 -o top.fs --sspi_as_gpio placed.json"
