"""Faults put into the SCNN core's RTL: each one shows in a word, a cycle or a count of a port."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Module
from faults import Patch, after, seen_input, some_faults
from scnn_bench import caught, passes
from scnn_fault_cases import ACROSS, DOT, DOWN, FLAT, FULL, HALO, ONE, PLAIN, STRIDED, Case
from scnn_faults import field as _field
from scnn_faults import placed as _placed
from scnn_faults import rewritten as _rewritten

from archsim.machines.scnn.design import Scnn
from rtl import scnn
from rtl.core import (
    memory,
    scnn_arbiter,
    scnn_banks,
    scnn_compress,
    scnn_control,
    scnn_memories,
    scnn_pe,
    scnn_queue,
)
from rtl.core.credits import Credits
from rtl.core.scnn_activations import Activations
from rtl.core.scnn_arbiter import Arbiter
from rtl.core.scnn_banks import AccumulatorBank, AccumulatorBanks
from rtl.core.scnn_bias import BiasQueue
from rtl.core.scnn_control import GroupControl
from rtl.core.scnn_drain import DrainSequencer
from rtl.core.scnn_fifo import WeightFifo
from rtl.core.scnn_halo import HaloPort
from rtl.core.scnn_lists import ListWalk
from rtl.core.scnn_pe import ScnnPe
from rtl.core.scnn_weights import WeightDecoder

SINGLE = Case(shapes=(PLAIN,))
STRIDES = Case(shapes=(STRIDED,))
SEVERAL = Case(shapes=(FLAT, FLAT))
SIDES = Case(design=ACROSS, shapes=(HALO,))
STACKED = Case(design=DOWN, shapes=(HALO,))
TINY = Case(shapes=(replace(DOT, filters=2), DOT), density=1.0)
SLOW_DRAIN = Case(
    design=replace(ONE, filter_group=1), shapes=(replace(FLAT, channels=1, filters=6),)
)
RELU = Case(shapes=(replace(FLAT, channels=1, relu=True),), density=0.2)
STARVED = Case(shapes=(replace(PLAIN, channels=3, filters=3),), weight_gap=12)
DENSE = Case(design=replace(ONE, filter_group=1), shapes=(replace(PLAIN, filters=2),), density=1.0)
QUEUES = Case(
    design=replace(ONE, banks=1, bank_entries=64, filter_group=2, bank_queue=5),
    shapes=(FULL,),
    density=1.0,
)
QUEUES_OF_BANKS = replace(QUEUES, design=replace(QUEUES.design, banks=2, bank_queue=2))
CASES = [
    QUEUES,
    QUEUES_OF_BANKS,
    DENSE,
    SINGLE,
    STRIDES,
    SEVERAL,
    SIDES,
    STACKED,
    TINY,
    SLOW_DRAIN,
    RELU,
    STARVED,
]


def _stuck(kind: type, port: str, value: int) -> Patch:
    return after(kind, lambda self, m: _set(m, getattr(self, port), value))


def _set(m: Module, target: Any, value: Any) -> None:
    m.d.comb += target.eq(value)


def _later(cycles: int) -> int:
    return cycles + 1


def _earlier(cycles: int) -> int:
    return cycles - 1


def _without_queue(cycles: int) -> int:
    return cycles - QUEUES.design.bank_queue + 1


def _longer(design: Scnn) -> Scnn:
    return replace(design, bank_queue=design.bank_queue + 1)


def _shorter(design: Scnn) -> Scnn:
    return replace(design, bank_queue=design.bank_queue - 1)


def _in_queue(*fault: str) -> Patch:
    return _rewritten(scnn_banks, scnn_queue, "ProductQueue", *fault)


def _in_arbiter(*fault: str) -> Patch:
    return _rewritten(scnn_pe, scnn_arbiter, "Arbiter", *fault)


def _in_banks(*fault: str) -> Patch:
    return _rewritten(scnn_pe, scnn_banks, "AccumulatorBanks", *fault)


def _never(_: bool) -> bool:
    return False


def _stay_open(self: Any, m: Module) -> None:
    m.d.sync += self.open.eq(1)


def _no_waiting_for_halves(self: Any, m: Module) -> None:
    if self.initial == 2:
        m.d.comb += self.available.eq(1)


MUTATIONS: dict[str, tuple[Case, Patch]] = {
    "the drain one cycle late": (SINGLE, _placed(scnn_control, "summed_delay", cycles=_later)),
    "the drain one cycle early": (SINGLE, _placed(scnn_control, "summed_delay", cycles=_earlier)),
    "the ofmap one cycle late": (SEVERAL, _placed(scnn_control, "finished_delay", cycles=_later)),
    "the ofmap one cycle early": (
        SEVERAL,
        _placed(scnn_control, "finished_delay", cycles=_earlier),
    ),
    "outputs one cycle late": (SINGLE, _placed(scnn_pe, "output_delay", cycles=_later)),
    "outputs one cycle early": (SINGLE, _placed(scnn_pe, "output_delay", cycles=_earlier)),
    "a place more in the FIFO": (
        SINGLE,
        _placed(
            scnn_pe,
            "fifo",
            design=lambda d: replace(d, weight_fifo_vectors=d.weight_fifo_vectors + 1),
        ),
    ),
    "a place less in the FIFO": (
        SINGLE,
        _placed(
            scnn_pe,
            "fifo",
            design=lambda d: replace(d, weight_fifo_vectors=d.weight_fifo_vectors - 1),
        ),
    ),
    "weights that are not forwarded": (STARVED, _placed(memory, "store", transparent=_never)),
    "block ends that are not forwarded": (STARVED, _placed(memory, "ends", transparent=_never)),
    "activations that are not forwarded": (
        TINY,
        _placed(scnn_memories, "iaram", transparent=_never),
    ),
    "sums that are not forwarded": (DENSE, _placed(scnn_banks, "half_", transparent=_never)),
    "outputs that are not forwarded": (
        TINY,
        _placed(scnn_memories, "oaram", transparent=_never),
    ),
    "a conflict is missed": (
        SINGLE,
        after(Arbiter, lambda self, m: _set(m, self.ended, self.active & (self.selected != 0))),
    ),
    "the highest product of a bank is lost": (
        SINGLE,
        after(Arbiter, lambda self, m: _set(m, self.selected[-1], 0)),
    ),
    "outputs beyond the region": (
        SINGLE,
        seen_input(Arbiter, "columns", lambda self, there: there + 1),
    ),
    "a skip does not wait for its weights": (STARVED, _stuck(WeightFifo, "complete", 1)),
    "a PE does not wait at the barrier": (SIDES, _stuck(ScnnPe, "done", 1)),
    "a group does not wait for its half": (SLOW_DRAIN, after(Credits, _no_waiting_for_halves)),
    "weights are read once": (
        SINGLE,
        seen_input(WeightFifo, "again", lambda self, there: there & 0),
    ),
    "weights are never given back": (
        SINGLE,
        seen_input(WeightFifo, "release", lambda self, there: there & 0),
    ),
    "queues of a place more": (QUEUES, _placed(scnn, "pe_", design=_longer)),
    "queues of a place less": (QUEUES, _placed(scnn, "pe_", design=_shorter)),
    "the drain does not wait for queues": (
        QUEUES,
        _placed(scnn_control, "summed_delay", cycles=_without_queue),
    ),
    "a product dropped from a full queue": (
        QUEUES,
        _in_queue("held.eq(self.occupied)", "held.eq(self.occupied[:-1])"),
    ),
    "a queue that does not shorten": (QUEUES, _in_queue("in there[1:]", "in there[:-1]")),
    "a product that leaves counts as waiting": (
        QUEUES,
        _in_queue(
            "self.occupied.eq(Cat(place.valid for place in there[1:]))",
            "self.occupied.eq(Cat(place.valid for place in there[:-1]))",
        ),
    ),
    "queued products take the half of the next": (
        QUEUES,
        _in_queue("self.o.eq(there[0]),", "self.o.eq(there[0]), self.o.half.eq(self.i[0].half),"),
    ),
    "the low bit of a queued entry is dropped": (
        QUEUES,
        _in_queue(
            "waits.eq(there[number + 1])",
            "waits.eq(there[number + 1]), waits.entry[0].eq(0)",
        ),
    ),
    "a half without a product is ORed to what waits": (
        QUEUES,
        _in_banks("self.half & self.o.valid", "self.half"),
    ),
    "what comes is not ORed to what waits": (
        QUEUES,
        _in_queue("| self.i[number].as_value()", ""),
    ),
    "products of all banks are ORed": (
        QUEUES_OF_BANKS,
        _in_banks("sent & is_in(address, self.number, self.low)", "sent"),
    ),
    "products of all places are ORed": (
        QUEUES,
        _in_banks("Cat(places[lane][number] for", "Cat(places[lane].any() for"),
    ),
    "what waits is not counted": (
        QUEUES,
        seen_input(Arbiter, "occupied", lambda self, there: there.as_value() & 0),
    ),
    "what waits at another bank is counted": (
        QUEUES_OF_BANKS,
        seen_input(
            Arbiter,
            "occupied",
            lambda self, there: there.as_value().rotate_left(self.design.bank_queue - 1),
        ),
    ),
    "products of other banks are counted": (
        QUEUES_OF_BANKS,
        _in_arbiter("waits & (banks.word_select(n, width) == bank)", "waits"),
    ),
    "a count of three is two": (
        QUEUES,
        _in_arbiter("min(len(one) + len(other), most)", "min(len(one) + len(other), 2)"),
    ),
    "a product one place too far back": (
        QUEUES,
        _in_arbiter("beyond = [*reached[1:], C(0, 1)]", "beyond = [*reached[:-1], C(0, 1)]"),
    ),
    "phases begin alike": (STRIDES, _field(Activations, "row", "threshold", lambda v: v | 31)),
    "all phases have wide kernels": (
        STRIDES,
        _field(WeightDecoder, "layer", "wide_phases", lambda v: v | 31),
    ),
    "the upper bit of an address is dropped": (
        SINGLE,
        after(Arbiter, lambda self, m: _set(m, self.addresses[0][-2], 0)),
    ),
    "the low bit of a sum is dropped": (
        SINGLE,
        after(AccumulatorBank, lambda self, m: _set(m, self.read_data[0], 0)),
    ),
    "sums of the other half": (
        SINGLE,
        _field(AccumulatorBanks, "i", "half", lambda v: ~v),
    ),
    "sums are not zeroed": (
        SINGLE,
        _field(AccumulatorBank, "drain", "write", lambda v: v & 0),
    ),
    "no halo to the left": (SIDES, _field(HaloPort, "step", "left", lambda v: v & 0)),
    "no halo to the right": (SIDES, _field(HaloPort, "step", "right", lambda v: v & 0)),
    "no halo upwards": (STACKED, _field(HaloPort, "step", "up", lambda v: v & 0)),
    "no halo downwards": (STACKED, _field(HaloPort, "step", "down", lambda v: v & 0)),
    "halos take no time": (
        SIDES,
        _field(DrainSequencer, "layer", "halo_left", lambda v: v & 0),
    ),
    "a bias one filter late": (
        SINGLE,
        _field(BiasQueue, "step", "ends", lambda v: v & 0),
    ),
    "placeholders are not taken back": (
        RELU,
        _rewritten(scnn_pe, scnn_compress, "Compressor", "If(self.valid & counts)", "If(element)"),
    ),
    "a group too few": (SINGLE, _field(GroupControl, "layer", "groups", lambda v: v - 1)),
    "the last group as large as the others": (
        SINGLE,
        _field(GroupControl, "layer", "filters_last", lambda v: v + 1),
    ),
    "weights of the next layer taken early": (SEVERAL, _stuck(WeightDecoder, "open", 1)),
    "a port that stays open": (SEVERAL, after(ListWalk, _stay_open)),
}


@pytest.mark.parametrize("name", some_faults(MUTATIONS))
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, patch = MUTATIONS[name]
    made = case.made
    patch(monkeypatch)
    assert caught(made)


@pytest.mark.parametrize("case", CASES)
def test_the_untouched_core_passes(case: Case) -> None:
    """The same layers show no difference without a fault, so the tests above mean something."""
    assert passes(case.made)
