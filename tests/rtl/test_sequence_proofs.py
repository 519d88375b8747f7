"""Units that keep a place in a sequence proved, for all inputs and in every cycle, by induction.

As `test_unit_proofs`, whose faults are in the same form.  Each proof finds a fault.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from faulty_module import faulty_module
from fifo_proofs import WeightFifoProof
from link_proofs import ReceiverProof
from unit_proofs import Prove, always
from window_proofs import PipelinedWindowProof, WindowProof

from rtl.core import pipelined_window, scnn_fifo, window
from rtl.link import receiver

PROOFS: dict[str, tuple[Any, Prove]] = {
    **{f"weight FIFO of {n}": (scnn_fifo, always(WeightFifoProof, depth=n)) for n in (1, 2, 3, 5)},
    **{
        f"weight FIFO of {n}, with registers": (
            scnn_fifo,
            always(WeightFifoProof, depth=n, ahead=True),
        )
        for n in (1, 2, 3, 5)
    },
    **{
        f"{name}, {rows} of {lanes} lanes{', trailing' if trailing else ''}": (
            unit, always(proof, rows=rows, lanes=lanes, trailing=trailing)
        )
        for name, unit, proof in (
            ("window", window, WindowProof),
            ("pipelined window", pipelined_window, PipelinedWindowProof),
        )
        for rows, lanes in ((1, 1), (2, 3), (3, 3))
        for trailing in (False, True)
    },
    **{
        f"frames of up to {n}": (receiver, always(ReceiverProof, payload=n, patience=n + 2))
        for n in (1, 3)
    },
}  # fmt: skip

FAULTS: dict[str, tuple[str, str, str]] = {
    "a FIFO that is never full": (
        "weight FIFO of 2", "written == Cat(released", "written != Cat(released"
    ),
    "full a vector early": (
        "weight FIFO of 3", "is_full(written, released))",
        "is_full(self._after(written), released))",
    ),
    "a place taken as its vector is written": (
        "weight FIFO of 3, with registers", "Mux(self.reserve, then, before)", "before"
    ),
    "a place free as it is given back": (
        "weight FIFO of 3, with registers", "self.room.eq(~full)",
        "self.room.eq(~full | (reserved == released))",
    ),
    "a vector seen a cycle late": (
        "weight FIFO of 2, with registers",
        "next_reading != next_written", "next_reading != written",
    ),
    "a block that stays whole": (
        "weight FIFO of 3, with registers", "blocks.take.eq(self.block_end)", "blocks.take.eq(0)"
    ),
    "a flag read before it is written": (
        "weight FIFO of 1, with registers", "Sram, bits=1, depth=self.depth, transparent=True",
        "Sram, bits=1, depth=self.depth, transparent=False",
    ),
    "the next pass begins a vector late": (
        "weight FIFO of 3", "Mux(self.again, released, after)",
        "Mux(self.again, self._after(released), after)",
    ),
    "a place given back in every pass": (
        "weight FIFO of 3", "If(self.release)", "If(self.release | self.again)"
    ),
    "a skipped block kept": (
        "weight FIFO of 2", "m.d.sync += released.eq(self.block_after)", "pass"
    ),
    "a pointer that wraps early": (
        "weight FIFO of 3", "(pointer) == depth - 1", "(pointer) == depth - 2"
    ),
    "an end at the block's last vector": (
        "weight FIFO of 3", "end_pointer.eq(self._after(written))", "end_pointer.eq(written)"
    ),
    "an end that is kept": (
        "weight FIFO of 3", "Mux(self.block_end, self._after(head), head)",
        "Mux(self.block_end & ~self.end_written, self._after(head), head)",
    ),
    "a vector read before it is written": (
        "weight FIFO of 1", '"store", 0, transparent=True', '"store", 0, transparent=False'
    ),
    "an end read before it is written": (
        "weight FIFO of 2", '"ends", 0, transparent=True', '"ends", 0, transparent=False'
    ),
    "padding before the row counted": (
        "window, 2 of 3 lanes", "If(inside < -first)", "If(inside + 1 < -first)"
    ),
    "a lane behind the row counted": (
        "window, 2 of 3 lanes", "If(room < end)", "If(room + 1 < end)"
    ),
    "the last lanes of a chunk that is not there": (
        "window, 3 of 3 lanes, trailing", "self.rows - self.elements if", "0 if"
    ),
    "the row below the ifmap counted": (
        "window, 2 of 3 lanes", "at_row >= self.current.height", "at_row > self.current.height"
    ),
    "the next image a row late": (
        "window, 2 of 3 lanes", 'after["base"].eq(next_image)',
        'after["base"].eq(next_image + current.row_step)',
    ),
    "a block that begins where the last did": (
        "window, 2 of 3 lanes", "now[name].eq(onward), block[name].eq(onward)",
        "now[name].eq(onward)",
    ),
    "a chunk kept for the next run": (
        "window, 2 of 3 lanes", "Mux(self.chunk_last, next", "Mux(self.run_last, next"
    ),
    "a tap kept for the next block": (
        "window, 2 of 3 lanes", "Mux(self.tap_last, 0, tap_base", "Mux(self.block_last, 0, tap_base"
    ),
    "a pixel walked in an empty slot": (
        "window, 2 of 3 lanes", "with m.If(self.slot_in_block)", "with m.If(1)"
    ),
    "lanes beyond all of the row's": (
        "pipelined window, 2 of 3 lanes", "fresh - rows, current - rows", "fresh, current"
    ),
    "lanes far before the row counted": (
        "pipelined window, 1 of 1 lanes", "element + far < 0", "element + far < -1"
    ),
    "a lane before the row counted behind the last": (
        "pipelined window, 3 of 3 lanes, trailing", "bits_for(lanes) + 1]", "bits_for(lanes)]"
    ),
    "a short chunk's lanes counted twice": (
        "pipelined window, 3 of 3 lanes, trailing", "none |= low_lane > lanes", "pass"
    ),
    "bounds that stay at the first run": (
        "pipelined window, 2 of 3 lanes", "m.d.sync += at_run.eq(next_run)", "pass"
    ),
    "the row below the ifmap counted in the next tap": (
        "pipelined window, 2 of 3 lanes", "under - self.current.tap_rows", "under"
    ),
    "rows of the tile before": (
        "pipelined window, 2 of 3 lanes", "m.d.sync += under.eq(self.fresh.height)", "pass"
    ),
    "a last column a pixel late": (
        "pipelined window, 2 of 3 lanes", "left == 2", "left == 1"
    ),
    "given up in the check though a byte comes": (
        "frames of up to 1", 'self._taken(m, crosses, None, "MATCH", idle, at == 3)',
        'self._taken(m, crosses & (at == 3), None, "MATCH", idle)',
    ),
    "a frame whose check is not looked at": (
        "frames of up to 1", "If(matches)", "If(matches | io.number.all())"
    ),
}  # fmt: skip
"""What is wrong; a proof, what the unit says, and what it says instead."""


FAST = {
    "weight FIFO of 1", "weight FIFO of 3", "window, 2 of 3 lanes",
    "pipelined window, 2 of 3 lanes", "bounds that stay at the first run",
    "padding before the row counted", "a tap kept for the next block",
    "the next pass begins a vector late", "an end read before it is written",
}  # fmt: skip
"""Proofs and faults that are looked at without the slow ones."""


def marked(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(name, id=name, marks=[] if name in FAST else [pytest.mark.slow])
        for name in names
    ]


@pytest.mark.parametrize("name", marked(PROOFS))
def test_proved(name: str) -> None:
    unit, prove = PROOFS[name]
    assert prove(unit).proved


@pytest.mark.parametrize("fault", marked(FAULTS))
def test_a_fault_is_not_proved(fault: str, tmp_path: Path) -> None:
    """Inputs are found that break a claim, or no step of the induction succeeds."""
    name, said, instead = FAULTS[fault]
    unit, prove = PROOFS[name]
    assert not prove(faulty_module(unit, tmp_path, (said, instead))).proved


def test_every_unit_has_a_fault() -> None:
    assert set(FAST) <= {*PROOFS, *FAULTS}
    for fast in (False, True):
        faults = {PROOFS[FAULTS[fault][0]][0] for fault in FAULTS if fault in FAST or not fast}
        assert faults == {PROOFS[name][0] for name in PROOFS if name in FAST or not fast}
