"""A run that a reset ends leaves nothing behind; wires inside the emitted Verilog are watched."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Stimulus, StreamPort, Watch
from rtl.benches.cocotb_bench import run_cocotb
from rtl.benches.verilated import Verilated
from rtl.core.queue import Queue

from .cases import text_of

PORTS = (
    StreamPort(name="i", direction="i", bits=8),
    StreamPort(name="o", direction="o", bits=8),
)
WATCHES = (
    Watch(name="queue", path="queue.store", wires=("w_rdy", "r_rdy")),
    Watch(name="both", path="q*.store", wires=("w_en", "r_rdy", "r_en")),
    Watch(name="none", path="other", wires=("w_rdy",)),
)


class Queued(wiring.Component):
    """A queue of two places behind two streams."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = Queue(width=8, depth=2)
        wiring.connect(m, wiring.flipped(self.i), queue.i)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m


def _bench(first: int, count: int, *, late: int = 0, before: Bench | None = None) -> Bench:
    words = np.arange(first, first + count, dtype=np.uint8)[:, None]
    return Bench(
        ports=PORTS,
        stimuli={
            "i": Stimulus.offer(words),
            "o": Stimulus.accept(count, earliest=np.full(count, late, np.int64)),
        },
        max_cycles=200,
        tail_cycles=2,
        before=before,
    )


@pytest.mark.parametrize("cycles", [1, 2, 3, 7, 60])
def test_a_reset_in_mid_run(cycles: int) -> None:
    """Words that are in the queue, or wait before it, are gone; the answer is that without them."""
    first = replace(_bench(100, 6, late=50), max_cycles=cycles)
    alone, after = _bench(1, 5, late=4), _bench(1, 5, late=4, before=first)
    text = text_of(Queued())
    core = Verilated(text)
    expected = core.run(alone)
    assert expected.crossings["o"].words[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert expected.differences(core.run(after)) == []
    assert expected.differences(run_amaranth(Queued(), after)) == []
    assert expected.differences(run_cocotb(text, "top", after)) == []


def test_wires_inside_are_watched() -> None:
    text = text_of(Queued())
    core = Verilated(text, watches=WATCHES)
    held = core.run(_bench(1, 5, late=9)).seen
    assert held["queue"] == 0b1110, "empty, some, full; never without both"
    assert held["both"] & 1 << 7, "filled and emptied at once"
    assert held["none"] == 0
    flowing = core.run(_bench(1, 1)).seen
    assert flowing["queue"] == 0b1010, "never full"
    assert not flowing["both"] & 1 << 7
    assert Verilated(text).run(_bench(1, 1)).seen == {}


def test_what_runs_before_is_watched_too() -> None:
    core = Verilated(text_of(Queued()), watches=WATCHES)
    first = _bench(1, 5, late=9)
    assert core.run(_bench(1, 1, before=first)).seen["queue"] == 0b1110


def test_benches_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="must have the same ports"):
        Bench(ports=PORTS[:1], stimuli={"i": _bench(1, 1).stimuli["i"]}, max_cycles=1,
              before=_bench(1, 1))  # fmt: skip
    with pytest.raises(ValueError, match="wires must be one to three, not 0"):
        Watch(name="x", path="*", wires=())
