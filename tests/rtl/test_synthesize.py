"""Whole cores on standard cells: what `synthesize` answers, keeps, and does without tools."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cell_libraries import ANDS, edited_library, needs_library

from archsim.errors import InputError
from archsim.machines.systolic.design import DATAFLOWS, Dataflow, Systolic
from archsim.memory import Plain
from rtl.synthesis import synthesize as flow
from rtl.synthesis.synthesize import synthesize
from rtl.synthesis.yosys import Mapped
from rtl.toolchain import ToolchainError, run_yosys

pytestmark = needs_library


def tiny(dataflow: Dataflow, rows: int, columns: int) -> Systolic:
    memory = Plain(capacity_bytes=256)
    return Systolic(
        rows=rows,
        columns=columns,
        dataflow=dataflow,
        operand_bits=4,
        accumulator_bits=12,
        ifmap_memory=memory,
        weight_memory=memory,
        accumulator_memory=memory,
        bias_words=2,
    )


def check_design(design: Systolic) -> None:
    """A whole core: PEs, memories, a path, and areas that add up."""
    outcome = synthesize(design, use_cache=False)
    synthesis = outcome.synthesis
    pes = [one for one in synthesis.modules if one.endswith("_pe")]
    assert [synthesis.counts[one] for one in pes] == [design.rows * design.columns]
    macros = {
        (memory.bits, memory.depth)
        for branch in synthesis.branches()
        for memory in branch.memories.values()
    }
    assert (design.word_bits("accumulator"), design.depth("accumulator")) in macros
    assert synthesis.total.area_um2 == pytest.approx(
        sum(branch.count * branch.own.area_um2 for branch in synthesis.branches())
    )
    assert -0.02 < synthesis.splitting_cost < 0.2
    assert sum(area.flip_flops for area in synthesis.classes.values()) == pytest.approx(
        synthesis.total.flip_flops, rel=0.1
    )
    if shutil.which("sta") is not None:
        assert synthesis.critical_path is not None
        assert 2 < synthesis.critical_path.period_ns < 50


@pytest.mark.slow
@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_whole_cores(dataflow: Dataflow) -> None:
    check_design(tiny(dataflow, 2, 3))


@pytest.fixture
def emits_little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Designs that emit twelve flip-flops, and a cache of one's own."""

    @dataclass
    class Emitted:
        verilog: str = ANDS

    monkeypatch.setattr(flow, "emit", lambda design, top: Emitted())
    monkeypatch.setenv("ARCHSIM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("emits_little")
def test_an_answer_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    design = tiny("weight_stationary", 1, 1)
    first = synthesize(design)

    def again(*arguments: object, **settings: object) -> Mapped:
        raise AssertionError("mapped again")

    monkeypatch.setattr(flow, "map_to_cells", again)
    assert synthesize(design) == first
    other = edited_library(tmp_path, lambda text: text.replace("area : 96;", "area : 97;"))
    for call in (
        lambda: synthesize(design, use_cache=False),
        lambda: synthesize(design, other),
        lambda: synthesize(tiny("weight_stationary", 1, 2)),
    ):
        with pytest.raises(AssertionError, match="mapped again"):
            call()
    assert len(list((tmp_path / "cache" / "simulators" / "synthesis").iterdir())) == 1


@pytest.mark.usefixtures("emits_little")
def test_without_opensta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "opensta_version", lambda: None)
    synthesis = synthesize(tiny("weight_stationary", 1, 1)).synthesis
    assert synthesis.critical_path is None
    assert synthesis.timing_note == "OpenSTA is not installed (apt-get install opensta)"
    assert synthesis.tools["opensta"] == "not installed"


@pytest.mark.usefixtures("emits_little")
def test_opensta_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The areas are there all the same, with the reason."""

    def fail(*arguments: object, **settings: object) -> None:
        raise ToolchainError("sta … failed (1)")

    monkeypatch.setattr(flow, "critical_path", fail)
    synthesis = synthesize(tiny("weight_stationary", 1, 1)).synthesis
    assert synthesis.total.cells == 16
    assert synthesis.timing_note == "sta … failed (1)"


@pytest.mark.usefixtures("emits_little")
def test_too_large_to_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "TIMED_CELLS", 15)
    synthesis = synthesize(tiny("weight_stationary", 1, 1)).synthesis
    assert synthesis.timing_note == (
        "16 cells are more than the 15 that are timed; try fewer rows and columns"
    )


def test_without_yosys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolchainError) as error:
        synthesize(tiny("weight_stationary", 1, 1))
    assert str(error.value) == "pyosys is missing; install it with: pip install pyosys"


def test_yosys_says_why_it_failed(tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(ToolchainError, match=r"yosys failed \(\d+\): ERROR: No such command: moon"):
        run_yosys(["design -reset", "moon"], tmp_path, lines.append)
    assert lines


def test_other_targets() -> None:
    target: Any = "moon"
    with pytest.raises(InputError) as error:
        synthesize(tiny("weight_stationary", 1, 1), target=target)
    assert str(error.value) == "target must be one of cells, not 'moon'"
