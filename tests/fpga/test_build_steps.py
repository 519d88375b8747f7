"""Steps of a board's build: what they are kept by, and placements side by side."""

from collections.abc import Callable
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from archsim.machines.systolic.design import Systolic
from archsim.memory import Plain
from fpga.boards import board_named
from fpga.build import _Work, _work  # pyright: ignore[reportPrivateUsage]
from rtl.toolchain import ToolchainError

ROOT = Path(__file__).parents[2]


def test_a_build_is_known_wherever_the_sources_lie() -> None:
    """Placing takes minutes to hours; another checkout is not to do it again."""
    memory = Plain(capacity_bytes=64)
    design = Systolic(
        rows=1, columns=1, bias_words=4,
        ifmap_memory=memory, weight_memory=memory, accumulator_memory=memory,
    )  # fmt: skip
    plan = _work(design, board_named("ulx3s-25k"), None, 115_200, lambda phase: None).plan
    for name, content in plan.files.items():
        text = content if isinstance(content, str) else content.decode()
        assert str(ROOT) not in text, name


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> tuple[_Work, list[str]]:
    """A build whose placements wait for one another, two at a time, and what it says; seed 9
    fails."""
    met = Barrier(2, timeout=30)

    def routed(self: _Work, mapped: Path, seed: int, told: Callable[[str], object]) -> Path:
        told("placing")
        met.wait()
        if seed == 9:
            raise ToolchainError("nextpnr failed")
        return mapped / str(seed)

    monkeypatch.setattr(_Work, "routed", routed)
    monkeypatch.setattr("workloads.threads._threads", 2)
    said: list[str] = []
    top: Any = None
    work = _Work(board=board_named("ulx3s-25k"), top=top, manifest="", progress=said.append)
    return work, said


def test_placements_run_side_by_side(two_at_once: tuple[_Work, list[str]], tmp_path: Path) -> None:
    work, said = two_at_once
    found = work.all_routed(tmp_path, [5, 2])
    assert found == {5: tmp_path / "5", 2: tmp_path / "2"}
    assert "placing, seed 2; placing, seed 5" in said
    assert said[-1] == "done, seed 2; done, seed 5"


def test_one_that_fails_ends_all(two_at_once: tuple[_Work, list[str]], tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="nextpnr failed"):
        two_at_once[0].all_routed(tmp_path, [1, 9])
