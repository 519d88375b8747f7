"""The window of a sparse training PE, proved: lanes choose place after place, as contracted."""

from pathlib import Path

import pytest
from faulty_module import faulty_module
from train_window_proof import TrainWindowProof

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core import train_window
from rtl.formal import prove_combinational

DESIGNS = {
    "as it is built": SparseTrain(),
    "segments": SparseTrain(pes=1, lanes=8, segments=4, columns=4),
    "three rows ahead, few aside": SparseTrain(pes=1, lanes=4, look_ahead=3, look_aside=2),
    "two lanes": SparseTrain(pes=1, lanes=2, look_ahead=1, look_aside=5),
    "every row in its turn": SparseTrain(pes=1, lanes=2, look_ahead=0),
}

FAULTS = {
    "a lane that stays free": ("still.eq(free & ~there)", "still.eq(free)"),
    "a pair that stays left": (
        "left[place.ahead] & ~self._turned(free, -place.aside)", "left[place.ahead]"
    ),
    "a pair taken by the lane on the other side": (
        "self._turned(free, -place.aside)", "self._turned(free, place.aside)"
    ),
    "a pair that another lane took": ("chosen.eq(there & free)", "chosen.eq(there)"),
    "a row too many": ("self.done.eq(rows)", "self.done.eq(rows - 1)"),
}  # fmt: skip
"""What the unit says, and what it says instead."""


@pytest.mark.parametrize("name", DESIGNS)
def test_proved(name: str) -> None:
    """For all pairs that may be left."""
    assert prove_combinational(TrainWindowProof(train_window, design=DESIGNS[name])).proved


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_not_proved(fault: str, tmp_path: Path) -> None:
    wrong = faulty_module(train_window, tmp_path, FAULTS[fault])
    assert not prove_combinational(
        TrainWindowProof(wrong, design=DESIGNS["three rows ahead, few aside"])
    ).proved
