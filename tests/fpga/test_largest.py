"""The search for the largest design, and the estimate of a clock that it goes by."""

import json
from dataclasses import replace
from typing import Any

import pytest
from command_line import Call, refused

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machines.systolic.design import Systolic
from archsim.memory import Plain
from fpga import fit_cli
from fpga.boards import board_named
from fpga.cells import Cells
from fpga.estimate import Estimate, EstimatedPath, estimate_clock
from fpga.largest import Mapped, Search, excess, family_of, largest_that_fits
from fpga.part_costs import cells_beside, parts_of
from fpga.places import places_of

BOARD = board_named("ulx3s-25k")
MEMORY = Plain(capacity_bytes=4096)
CORE = Systolic(ifmap_memory=MEMORY, weight_memory=MEMORY, accumulator_memory=MEMORY, bias_words=16)


def as_mapped(design: Design) -> Mapped:
    """9 multipliers, one more a PE and two a column; the more PEs the slower."""
    pes, columns = design.macs_per_cycle, max(design.macs_per_cycle, 1) ** 0.5
    ns = 10.0 + pes
    path = EstimatedPath(start="a", end="b", logic_ns=ns, wire_ns=0.0, levels=1)
    return Mapped(
        cells=Cells(lut4=1000, dsps=1 + pes + 2 * round(columns)), clock=Estimate(ends=(path,))
    )


SMALL = [
    option
    for one in ("ifmap", "weight", "accumulator")
    for option in ("--set", f"{one}_memory.capacity_bytes=4096")
]
FIT = ["fpga", "fit", "edge-16", "--board", "ulx3s-25k", "--no-place", *SMALL]


def search(clock_hz: float) -> Search:
    sized = family_of(CORE, [])
    return largest_that_fits(sized, BOARD, clock_hz=clock_hz, mapped=as_mapped)


def test_the_largest_fits_and_the_next_does_not() -> None:
    """The chip has 28 multipliers: 1 + 4 · 4 + 2 · 4 of them, not 1 + 5 · 5 + 2 · 5, 8 too many."""
    found = search(1e6)
    assert found.largest is not None
    assert found.largest.size == 4
    assert {one.size: (one.mapped, one.verdict) for one in found.points} == {
        1: (True, "fits"),
        4: (True, "fits"),
        5: (False, "by estimate 8 multipliers too many"),
    }


def test_the_clock_is_met() -> None:
    """3 × 3 PEs: 19 ns; 4 × 4 fit too, in 26 ns."""
    found = search(50e6)
    assert found.largest is not None
    assert found.largest.size == 3
    assert {one.size: one.verdict for one in found.points}[4] == "too slow for 50 MHz"
    assert search(95e6).largest is None


@pytest.mark.parametrize("error", [-5, -1, 0, 1, 2, 9])
def test_an_estimate_that_errs_is_corrected(error: int) -> None:
    """Every size takes more than its components say, or less, by so many multipliers a row."""
    sizes: list[int] = []

    def mapped(design: Design) -> Mapped:
        sizes.append(round(design.macs_per_cycle**0.5))
        whole = as_mapped(design)
        return replace(whole, cells=Cells(dsps=max(whole.cells.dsps + error * sizes[-1], 0)))

    board = board_named("ulx3s-85k")
    sized = family_of(CORE, [])
    found = largest_that_fits(sized, board, clock_hz=1.0, mapped=mapped)
    right = max(n for n in range(1, 30) if 1 + n * n + (2 + error) * n <= board.chip.dsps)
    assert found.largest is not None
    assert found.largest.size == right
    assert len(sizes) == len(set(sizes)) <= 6


def test_what_cannot_fit_is_not_mapped() -> None:
    """Though its components be few: every look says that it takes nothing."""
    looked: list[int] = []

    def mapped(design: Design) -> Mapped:
        looked.append(design.macs_per_cycle)
        return Mapped(cells=Cells(), clock=as_mapped(design).clock)

    found = largest_that_fits(family_of(CORE, []), BOARD, clock_hz=1.0, mapped=mapped)
    assert found.largest is not None
    refused = [one for one in found.points if not one.mapped]
    assert refused
    assert min(one.size for one in refused) == found.largest.size + 1
    assert max(looked) == found.largest.size**2


def test_parts_of_a_core_that_was_mapped() -> None:
    """Beside 4 × 4 with 4 KiB each, which took 22 block RAMs and 29 multipliers."""
    chip = BOARD.chip
    sized = family_of(CORE.for_fpga(), [])
    four = Cells(block_rams=22, dsps=29, flip_flops=8644, lut4=9026, carry=3236)
    eight = cells_beside(sized(8).components, four, sized(4).components, chip)
    assert eight.dsps == 64 + 8 * 2 + 5
    assert eight.lut4 > four.lut4
    assert eight.flip_flops > four.flip_flops + 48 * 40
    assert parts_of(sized(4).components, chip).block_rams == 4 + 2 + 8 + 8
    assert cells_beside(sized(4).components, four, sized(4).components, chip) == four


@pytest.mark.parametrize("grow", ["colums", "dataflow", "off_chip"])
def test_a_field_that_does_not_grow(grow: str) -> None:
    with pytest.raises(InputError, match="--grow must name whole numbers"):
        family_of(CORE, [grow])


def test_excess_of_each_kind() -> None:
    chip = BOARD.chip
    cells = Cells(lut4=chip.luts - 5, carry=4, lut_rams=1, flip_flops=chip.luts + 7, block_rams=57)
    assert excess(cells, chip) == {"look-up tables": 5, "flip-flops": 7, "block RAMs": 1}


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command(archsim: Call, monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    monkeypatch.setattr(fit_cli, "map_design", lambda design, board, progress: as_mapped(design))
    answer = archsim(*FIT, "--clock-mhz", "1", *(["--json"] if as_json else []))
    assert answer.code == 0, answer.err
    if as_json:
        record = json.loads(answer.out)
        assert record["largest"].startswith("4 × 4 PEs")
        assert [one["size"] for one in record["points"] if one["fits"]] == [1, 4]
    else:
        assert "by estimate 8 multipliers too many" in " ".join(answer.out.split())


def test_nothing_fits(archsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_cli, "map_design", lambda design, board, progress: as_mapped(design))
    said = refused(archsim(*FIT, "--clock-mhz", "200"))
    assert "of size 1: too slow for 200 MHz" in said


def cell(kind: str, parameters: dict[str, str] | None = None, **pins: list[Any]) -> dict[str, Any]:
    ways = {pin: "output" if pin in ("Q", "Z", "S0", "COUT", "P0") else "input" for pin in pins}
    return {
        "type": kind,
        "parameters": parameters or {},
        "connections": pins,
        "port_directions": ways,
    }


def test_estimate_of_a_path_counted_by_hand() -> None:
    """Register, look-up table, carries, register; and a constant that is on no way."""
    module = {
        "cells": {
            "from": cell("TRELLIS_FF", CLK=[1], DI=["0"], Q=[2]),
            "lut": cell("LUT4", A=[2], B=["1"], Z=[3]),
            "low": cell("CCU2C", A0=[3], CIN=["0"], COUT=[4]),
            "high": cell("CCU2C", A0=["0"], CIN=[4], S0=[5]),
            "to": cell("TRELLIS_FF", CLK=[1], DI=[5], Q=[6]),
        }
    }
    path = estimate_clock(module, "ecp5").path
    assert path is not None
    assert (path.start, path.end) == ("from", "to")
    assert path.logic_ns == pytest.approx(0.52 + 0.24 + 0.45 + 0.44 + 0.1)
    assert path.wire_ns == pytest.approx(2 * 0.75)
    assert path.levels == 3 - 1


def test_estimate_knows_the_registers_of_multipliers() -> None:
    def clock(parameters: dict[str, str]) -> float:
        cells = {
            "from": cell("TRELLIS_FF", CLK=[1], DI=["0"], Q=[2]),
            "product": cell("MULT18X18D", parameters, CLK0=[1], A0=[2], P0=[3]),
            "to": cell("TRELLIS_FF", CLK=[1], DI=[3], Q=[6]),
        }
        return estimate_clock({"cells": cells}, "ecp5").fmax_hz

    both = {"REG_INPUTA_CLK": "CLK0", "REG_OUTPUT_CLK": "CLK0"}
    assert clock({}) < clock({"REG_OUTPUT_CLK": "CLK0"}) < clock(both)
    assert estimate_clock({"cells": {}}, "ecp5").fmax_hz == 0


def test_places_of_a_placed_design() -> None:
    cells = {
        "core.array.pe.sum_FF": {"type": "TRELLIS_FF", "attributes": {"NEXTPNR_BEL": "X3/Y14/FF0"}},
        "$nextpnr$gnd": {"type": "TRELLIS_COMB", "attributes": {}},
    }
    assert places_of({"top": {"cells": cells}}) == {
        "columns": 4,
        "rows": 15,
        "cells": [["core.array.pe", "TRELLIS_FF", 3, 14]],
    }
