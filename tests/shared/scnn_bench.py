"""The SCNN core's RTL against the stepped oracle: every word of every port, and its cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.back.verilog import (
    _convert_rtlil_text as rtlil_to_verilog,  # pyright: ignore[reportAttributeAccessIssue]
)
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out
from scnn_oracle import Pe
from scnn_passes import PORTS, BiasedOracle, LayerPass, expected

from archsim.designs.scnn import Scnn
from archsim.sparse.scnn_command import command_fields
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, ProtocolError, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.benches.words import pack_words, unpack_words
from rtl.hierarchy import sharing
from rtl.scnn import COUNTER_BITS, COUNTS, ScnnCore, core_members

PATIENCE_CYCLES = 300
Run = Callable[[Bench], Outcome]


def port_bits(design: Scnn) -> dict[str, int]:
    """Widths of the ports."""
    lane = design.operand_bits + design.index_bits
    return {
        "command": sum(entry.bits for entry in command_fields(design)),
        "ifmap": design.ifmap_lanes * lane + 1,
        "weight": design.weight_lanes * lane + 1,
        "bias": design.accumulator_bits,
        "ofmap": design.ifmap_lanes * lane + 1,
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """Passes that follow one another: all words, their gaps and earliest cycles, by port."""

    design: Scnn
    words: dict[str, list[int]]
    cycles: dict[str, list[int]]
    gaps: dict[str, list[int]]
    earliest: dict[str, list[int]]
    counts: dict[str, int]


def joined(layers: list[LayerPass], *, offered: int = 0) -> Joined:
    """What the ports see; the first command is there from cycle `offered` on.

    Words whose pass has not begun are offered all the same.
    """
    design = layers[0].design
    whole = Joined(
        design=design,
        **{name: {port: [] for port in PORTS} for name in ("words", "cycles", "gaps", "earliest")},
        counts=dict.fromkeys(COUNTS, 0),
    )
    begin = max(offered, design.bank_entries)
    for layer in layers:
        wanted = expected(layer)
        for port in (port for port in PORTS if wanted.words[port]):
            count = len(wanted.words[port])
            own = layer.gaps.get(port, [0] * count)[:count]
            first = begin + own[0] if own[0] else 0
            if own[0] and port == "ofmap":
                first = begin + wanted.cycles["ofmap"][0]
            whole.words[port].extend(wanted.words[port])
            whole.cycles[port].extend(begin + cycle for cycle in wanted.cycles[port])
            whole.gaps[port].extend([0, *own[1:]])
            whole.earliest[port].extend([first, *[0] * (count - 1)])
        for name in COUNTS:
            whole.counts[name] += wanted.counts[name]
        begin = whole.cycles["ofmap"][-1] + 1
    whole.earliest["command"][0] = offered
    return whole


def bench_of(whole: Joined) -> Bench:
    """The bench that drives them."""
    bits, stimuli = port_bits(whole.design), dict[str, Stimulus]()
    for port in PORTS[:-1]:
        words = pack_words(whole.words[port], bits[port])
        stimuli[port] = Stimulus.offer(words, gaps=whole.gaps[port], earliest=whole.earliest[port])
    stimuli["ofmap"] = Stimulus.accept(
        len(whole.words["ofmap"]), gaps=whole.gaps["ofmap"], earliest=whole.earliest["ofmap"]
    )
    return Bench(
        ports=tuple(
            StreamPort(name=name, direction="o" if name == "ofmap" else "i", bits=bits[name])
            for name in PORTS
        ),
        probes=tuple((f"count_{name}", COUNTER_BITS) for name in COUNTS),
        stimuli=stimuli,
        max_cycles=whole.cycles["ofmap"][-1] + 1 + PATIENCE_CYCLES,
        tail_cycles=20,
    )


def differences(layers: list[LayerPass], run: Run, *, offered: int = 0) -> list[str]:
    """Where RTL and oracle differ over passes that follow one another; empty if nowhere."""
    whole = joined(layers, offered=offered)
    return judge(whole, run(bench_of(whole)))


def judge(whole: Joined, outcome: Outcome) -> list[str]:
    """Every word, every cycle, every count that is not as it should be, the first of each port."""
    found: list[str] = []
    for port in PORTS:
        seen = outcome.crossings[port]
        words = unpack_words(seen.words)
        pairs = zip_longest(
            zip(seen.cycles.tolist(), words, strict=True),
            zip(whole.cycles[port], whole.words[port], strict=True),
        )
        wrong = [(n, *pair) for n, pair in enumerate(pairs) if pair[0] != pair[1]]
        if wrong:
            n, got, right = wrong[0]
            found.append(f"{port}: {len(wrong)} words differ, word {n} is {got}, not {right}")
    for name in COUNTS:
        counted = outcome.probes[f"count_{name}"]
        if counted != whole.counts[name]:
            found.append(f"{name}: counted {counted}, not {whole.counts[name]}")
    return found


def simulated(design: Scnn) -> Run:
    """Amaranth's simulator."""
    return lambda bench: run_amaranth(ScnnCore(design), bench)


def verilog(design: Scnn) -> str:
    """What is emitted: each repeated module once."""
    with sharing() as library:
        top = rtlil.convert(ScnnCore(design), name="top", emit_src=False)
    modules = rtlil_to_verilog("\n".join([top, *library.texts.values()]))
    return "\n".join([modules, *library.sources.values()])


def compiled(design: Scnn) -> Run:
    """The emitted Verilog on Verilator."""
    return Verilated(verilog(design)).run


def caught(layers: list[LayerPass], run: Run) -> bool:
    """Whether any difference shows, or the run breaks the stream rule."""
    try:
        return differences(layers, run) != []
    except ProtocolError:
        return True


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

    def __init__(self, layer: LayerPass) -> None:
        super().__init__(layer)
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


def event_differences(layer: LayerPass) -> list[str]:
    """Where the PEs of the RTL, in Amaranth's simulator, do anything else than the oracle's."""
    core = Watched(layer.design)
    bench = bench_of(joined([layer]))
    stimuli = {**bench.stimuli, "events": Stimulus.accept(bench.max_cycles - PATIENCE_CYCLES)}
    port = StreamPort(name="events", direction="o", bits=core.event_bits * layer.design.pes)
    watched = replace(bench, ports=(*bench.ports, port), stimuli=stimuli)
    seen: dict[tuple[int, int], tuple[int, ...]] = {}
    oracle = EventOracle(layer)
    oracle.run()
    used = [pe.row * layer.design.grid_columns + pe.column for pe in oracle.pes]
    mask = (1 << core.event_bits) - 1
    words = unpack_words(run_amaranth(core, watched).crossings["events"].words)
    for cycle, word in enumerate(words):
        for pe in range(layer.design.pes):
            own = word >> (core.event_bits * pe) & mask
            if own:
                at = cycle - layer.design.bank_entries, pe
                seen[at] = (own & 1, own >> 1 & 1, own >> 2 & 1, own >> 3)
    wanted = {(cycle, used[pe]): event for (cycle, pe), event in oracle.events.items()}
    return [
        f"cycle {at[0]} PE {at[1]}: {seen.get(at)} not {wanted.get(at)}"
        for at in sorted(wanted.keys() | seen.keys())
        if wanted.get(at) != seen.get(at)
    ]
