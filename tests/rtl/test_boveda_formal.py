"""The proofs of Boveda's units find faults; that they hold: `test_memory_proofs`."""

import pytest
from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from boveda_bench import Form
from boveda_faults import COMPRESSOR, DECOMPRESSOR

from rtl.formal import prove_always, prove_combinational, prove_for_cycles
from rtl.memories.boveda.pack_proof import PackProof
from rtl.memories.boveda.round_trip_proof import RoundTripProof

ONLY_LATER = {
    "a group one cycle late",
    "groups wait for rows they do not end",
    "a row one cycle late",
}
"""Faults that change cycles and nothing else: simulation catches them, proofs of values cannot."""

OF_THE_PARTS = {
    "the lowest bit that spills dropped",
    "a column's top bit dropped",
    "signs dropped",
    "the least value one bit narrower",
    "the width of the first lane alone",
    "the next row not looked at",
    "signs lost",
    "bits of the next group taken along",
}
"""Faults in what is combinational."""

FAULTS = {**COMPRESSOR, **DECOMPRESSOR}
SMALL = Form(group=1, container_bits=4)


@pytest.mark.parametrize("name", sorted(OF_THE_PARTS))
def test_a_fault_in_the_parts_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    form = Form(group=2, container_bits=4)
    assert prove_combinational(PackProof(form)).answer == "refuted"


def _refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the proof of the round trip finds inputs from reset on that break an assertion."""
    FAULTS[name](monkeypatch)
    return prove_always(RoundTripProof(SMALL, queue=2), longest_step=12).answer == "refuted"


@pytest.mark.parametrize(
    "name", ["the pointer not reset at a unit's end", "a group's unit end dropped"]
)
def test_a_fault_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _refuted(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FAULTS) - ONLY_LATER - OF_THE_PARTS))
def test_every_fault_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _refuted(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ONLY_LATER))
def test_stalls_change_no_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert prove_always(RoundTripProof(SMALL, queue=1)).proved


class Counter(wiring.Component):
    """Counts to 3 and begins anew; `below` is asserted to be above it."""

    def __init__(self, below: int) -> None:
        self.below = below
        super().__init__({"counts": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(3)
        counts: Signal = self.counts  # pyright: ignore[reportAttributeAccessIssue]
        with m.If(counts):
            m.d.sync += count.eq(Mux(count == 3, 0, count + 1))
        m.d.comb += Assert(count < self.below, "below")
        return m


def test_what_a_verdict_says() -> None:
    """Below 4 by induction; not below 3; below 6 holds, but 4 and 5 are followed by 5 and 6."""
    assert prove_always(Counter(4)).answer == "proved"
    assert prove_always(Counter(3), longest_step=5).answer == "refuted"
    assert prove_always(Counter(6)).answer == "open"
    assert prove_for_cycles(Counter(3), 3).answer == "proved"
    assert prove_for_cycles(Counter(3), 4).answer == "refuted"
    assert prove_for_cycles(Counter(6), 9).cycles == 9
