"""Boveda's units proved: for all inputs and stalls, in every cycle, what goes in comes out."""

from collections.abc import Callable

import pytest
from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from boveda_bench import Form
from boveda_faults import COMPRESSOR, DECOMPRESSOR
from boveda_proofs import PackProof, RoundTripProof

from rtl.formal import prove_always, prove_combinational, prove_for_cycles

FORMS = [
    pytest.param(
        Form(group=group, container_bits=bits, signed=signed, zero_width=zero_width),
        marks=[pytest.mark.slow] if group * bits > 32 else [],
    )
    for group in (1, 4)
    for bits in (4, 8, 16)
    for signed in (True, False)
    for zero_width in (False, True)
]

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


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_unpack_undoes_pack(form: Form) -> None:
    """All values of all lanes, all pointers, any bits of other groups beside them."""
    assert prove_combinational(PackProof(form)).proved


def _round_trip(
    group: int, bits: int, signed: bool, *, zero_width: bool = False, queue: int | None = None
) -> RoundTripProof:
    form = Form(group=group, container_bits=bits, signed=signed, zero_width=zero_width)
    return RoundTripProof(form, queue=queue)


@pytest.mark.parametrize(
    "proof",
    [
        lambda: _round_trip(1, 4, True),
        lambda: _round_trip(3, 4, False, queue=1),
        lambda: _round_trip(1, 4, True, zero_width=True, queue=1),
        lambda: _round_trip(2, 8, True, queue=1),
    ],
    ids=["4 bits", "3 lanes", "zero width", "8 bits"],
)
def test_round_trip_for_ever(proof: Callable[[], RoundTripProof]) -> None:
    """By induction over one cycle: no bound on the cycles, the groups or the lengths of units."""
    assert prove_always(proof()).proved


@pytest.mark.slow
@pytest.mark.parametrize(
    "proof",
    [
        lambda: _round_trip(1, 4, False),
        lambda: _round_trip(4, 4, True),
        lambda: _round_trip(1, 4, False, zero_width=True),
        lambda: _round_trip(4, 8, True, queue=2),
        lambda: _round_trip(1, 16, True, queue=1),
        lambda: _round_trip(1, 8, True),
    ],
    ids=["unsigned", "4 lanes", "zero width", "4 lanes of 8 bits", "16 bits", "8 bits"],
)
def test_more_round_trips_for_ever(proof: Callable[[], RoundTripProof]) -> None:
    """The last takes about seven minutes."""
    assert prove_always(proof()).proved


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
