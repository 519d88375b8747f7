"""What happens in the PEs of the SCNN core, cycle by cycle, beside the stepped oracle."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out
from scnn_oracle import Pe
from scnn_passes import BiasedOracle

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import PassWords
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import ProtocolError, Stimulus, StreamPort
from rtl.benches.words import unpack_words
from rtl.conformance import PATIENCE_CYCLES, Runner, bench_of, check
from rtl.scnn import ScnnCore, core_members
from rtl.simulators import runner
from rtl.sparse_conformance import SparseCase


def caught(case: SparseCase) -> bool:
    """Whether any difference shows in Amaranth's simulator, or the run breaks the stream rule."""
    try:
        return not check(case, runner(case.design, "amaranth")).equal
    except ProtocolError:
        return True


def passes(case: SparseCase) -> bool:
    """Whether the core as it is does what its model says; elaborated once for a design's cases.

    Not beside a fault put into the core: `caught` elaborates anew.
    """
    return check(case, _as_it_is(case.design)).equal


@lru_cache(maxsize=4)
def _as_it_is(design: Scnn) -> Runner:
    return runner(design, "amaranth")


EVENTS = ("pair", "conflict_cycle", "skip", "product")


class Watched(ScnnCore):
    """The core with one more stream: what happens in every PE in every cycle."""

    def __init__(self, design: Scnn) -> None:
        self.design = design
        bits = len(EVENTS[:-1]) + (design.ifmap_lanes * design.weight_lanes).bit_length()
        self.event_bits = bits
        wiring.Component.__init__(
            self, {**core_members(design), "events": Out(stream.Signature(bits * design.pes))}
        )

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        words = [Cat(*(pe.events[name] for name in EVENTS)) for pe in self.pes.values()]
        events: Any = self
        m.d.comb += [events.events.valid.eq(1), events.events.payload.eq(Cat(*words))]
        return m


class EventOracle(BiasedOracle):
    """Writes down what every PE does: {(cycle, PE): (pair ends, conflict, skip, products)}."""

    def __init__(self, design: Scnn, one: PassWords, gaps: dict[str, list[int]]) -> None:
        super().__init__(design, one, gaps)
        self.events: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        self.took = 0

    def take_products(self, pe: Pe) -> None:
        before = len(pe.waiting or [])
        super().take_products(pe)
        self.took = before - len(pe.waiting or [])

    def step_pe(self, number: int, pe: Pe) -> None:
        names, self.took = ("busy", "conflict", "skip"), 0
        before = [pe.figures[name] for name in names]
        super().step_pe(number, pe)
        busy, conflict, skip = (
            pe.figures[name] - count for name, count in zip(names, before, strict=True)
        )
        if busy or skip:
            self.events[self.cycle, number] = (busy - conflict, conflict, skip, self.took)


def stepped(case: SparseCase) -> EventOracle:
    """The oracle of a case of one pass, run to its end."""
    (one,) = case.passes
    oracle = EventOracle(
        case.design, one, {port: gaps.tolist() for port, gaps in (case.idle or {}).items()}
    )
    oracle.run()
    return oracle


def event_differences(case: SparseCase) -> list[str]:
    """Where the PEs of the RTL, in Amaranth's simulator, do anything else than the oracle's."""
    design = case.design
    core = Watched(design)
    bench = bench_of(case, case.answer())
    stimuli = {**bench.stimuli, "events": Stimulus.accept(bench.max_cycles - PATIENCE_CYCLES)}
    port = StreamPort(name="events", direction="o", bits=core.event_bits * design.pes)
    watched = replace(bench, ports=(*bench.ports, port), stimuli=stimuli)
    seen: dict[tuple[int, int], tuple[int, ...]] = {}
    oracle = stepped(case)
    used = [pe.row * design.grid_columns + pe.column for pe in oracle.pes]
    mask = (1 << core.event_bits) - 1
    words = unpack_words(run_amaranth(core, watched).crossings["events"].words)
    for cycle, word in enumerate(words):
        for pe in range(design.pes):
            own = word >> (core.event_bits * pe) & mask
            if own:
                at = cycle - design.bank_entries, pe
                seen[at] = (own & 1, own >> 1 & 1, own >> 2 & 1, own >> 3)
    wanted = {(cycle, used[pe]): event for (cycle, pe), event in oracle.events.items()}
    return [
        f"cycle {at[0]} PE {at[1]}: {seen.get(at)} not {wanted.get(at)}"
        for at in sorted(wanted.keys() | seen.keys())
        if wanted.get(at) != seen.get(at)
    ]
