"""Compressed scratchpads whose cells fail: rows and directories read wrong, as the model says.

A wrong entry sends reads to other rows, which are counted there; rows that the tile has not
written are not read, and are zeros.  Nothing waits, so nothing can hang.
"""

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Const, Module, Mux, Value
from compressed_bench import differences, failing, measured_failing, random_store, steps_of
from faults import Patch, late_input, seen_input

from archsim.memory import Plain
from rtl.cases import Draw
from rtl.memories.boveda.column import CompressedColumn
from rtl.memories.boveda.seen_banks import WrittenRows
from rtl.memories.faulty.fault_layer import FaultLayer
from rtl.memories.faulty.measured_layer import MeasuredLayer

SUMS: dict[str, Any] = {"accumulator_memory": Plain(capacity_bytes=512), "bias_words": 16}


def _is_wrong(seed: int) -> bool:
    """Whether a scratchpad alone shows a wrong word or a wrong count."""
    draw = Draw(41, seed)
    store = failing(draw, random_store(draw))
    return differences(store, steps_of(draw, store, 4)) > 0


def _is_wrong_as_measured(seed: int, folder: Path) -> bool:
    """As `_is_wrong`, with the faults of files."""
    draw = Draw(43, seed)
    store = measured_failing(draw, random_store(draw), folder)
    return differences(store, steps_of(draw, store, 4)) > 0


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(one, marks=pytest.mark.slow) for one in range(3, 40))]
)
def test_measured_faults_are_those_of_the_files(seed: int, tmp_path: Path) -> None:
    assert not _is_wrong_as_measured(seed, tmp_path)


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(one, marks=pytest.mark.slow) for one in range(3))]
)
def test_a_scratchpad_alone_reads_what_the_model_says(seed: int) -> None:
    assert not _is_wrong(seed)


@pytest.mark.slow
def test_many_scratchpads_alone_read_what_the_model_says() -> None:
    assert not any(_is_wrong(seed) for seed in range(4, 60))


def _there(change: Any) -> Patch:
    """`change(plain, address, odd)` says whether a row is there."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = CompressedColumn._there
        monkeypatch.setattr(
            CompressedColumn,
            "_there",
            lambda self, address, odd: change(lambda *at: plain(self, *at), address, odd),
        )

    return patch


def _seen(change: Any) -> Patch:
    """What banks show is behind layers that `change` makes of `at` (`seen_banks.seen`)."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = CompressedColumn._seen
        monkeypatch.setattr(
            CompressedColumn, "_seen", lambda self, m, store, at: plain(self, m, store, change(at))
        )

    return patch


def _plainly(sram: str) -> Patch:
    """The cells of an SRAM do not fail."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = CompressedColumn._seen

        def mutated(self: Any, m: Module, store: Any, at: Any) -> Value:
            return store.read_data if at[1] == sram else plain(self, m, store, at)

        monkeypatch.setattr(CompressedColumn, "_seen", mutated)

    return patch


FAULTS: dict[str, Patch] = {
    "all rows are there": _there(lambda plain, address, odd: Const(1, 1)),
    "the last row is not there": _there(lambda plain, address, odd: plain(address + 1, odd)),
    "a row behind the last is there": _there(
        lambda plain, address, odd: plain((address - (address > 0))[: len(address)], odd)
    ),
    "the other half's rows": seen_input(WrittenRows, "half", lambda self, there: ~there),
    "the other half is written": seen_input(WrittenRows, "half_in", lambda self, there: ~there),
    "the first of two rows is the last": seen_input(
        WrittenRows, "write", lambda self, there: Mux(there == 3, 1, there)
    ),
    "the directory does not fail": _plainly("directory"),
    "rows do not fail": _plainly("rows"),
    "an even row for an odd one": _seen(lambda at: (*at[:2], at[2][1:] << 1, at[3])),
    "the first column's faults in all": _seen(lambda at: (*at[:3], 0)),
    "the bits of rows one late": _seen(lambda at: (*at[:3], at[3] + 1)),
    "the first half's faults in both": seen_input(
        FaultLayer, "half", lambda self, there: Const(0, 1)
    ),
    "the faults of row 0 in all": seen_input(
        FaultLayer, "address", lambda self, there: Const(0, len(there))
    ),
    "the faults of the row before": late_input(FaultLayer, "address"),
}


OF_FILES: dict[str, Patch] = {
    **FAULTS,
    "the first half's faults in both": seen_input(
        MeasuredLayer, "half", lambda self, there: Const(0, 1)
    ),
    "the other half's faults": seen_input(MeasuredLayer, "half", lambda self, there: ~there),
    "the faults of row 0 in all": seen_input(
        MeasuredLayer, "address", lambda self, there: Const(0, len(there))
    ),
    "the faults of the row before": late_input(MeasuredLayer, "address"),
    "nothing but 0 is stored": seen_input(
        MeasuredLayer, "i", lambda self, there: Const(0, len(there))
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "the other half's faults",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in OF_FILES
            if one != "the other half's faults"
        ),
    ],
)
def test_a_fault_beside_measured_ones_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    OF_FILES[name](monkeypatch)
    assert any(_is_wrong_as_measured(seed, tmp_path) for seed in range(16))


QUICK = ("the directory does not fail", "rows do not fail")


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(one, marks=pytest.mark.slow) for one in FAULTS if one not in QUICK)],
)
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert any(_is_wrong(seed) for seed in range(16))
