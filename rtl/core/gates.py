"""Who may start, in a core: credits for what is filled and freed."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from rtl.core.credits import Credits
from rtl.hierarchy import place


class _Gate:
    """What the folds of a walk wait for; asked when one starts.

    ahead: a register, compared a cycle ahead, in the same cycles.
    """

    def __init__(self, m: Module, walk: Any, *, ahead: bool) -> None:
        self.m, self.walk, self.ahead = m, walk, ahead
        self.take = walk.command.ready & walk.command.valid
        self.allowed: Value = Value.cast(1)

    def needs(self, flag: str) -> tuple[Value, Value]:
        """Whether a fold that starts is the first of a tile with this flag, now and next."""
        walk = self.walk
        now = walk.first_fold & walk.current[flag]
        behind = now & ~(walk.issue & walk.last_slot)
        return now, Mux(self.take, walk.command.payload[flag], behind)

    def wait(self, credits: Any, needs: tuple[Value, Value] | None = None) -> None:
        """For a credit, where it is needed."""
        there = credits.soon if self.ahead else credits.available
        if needs is not None:
            there = there | ~needs[self.ahead]
        self.allowed = self.allowed & there

    def close(self, name: str) -> None:
        """All that is waited for is known."""
        go = self.allowed
        if self.ahead:
            go = Signal(name=name)
            self.m.d.sync += go.eq(self.allowed)
        self.m.d.comb += self.walk.go.eq(go)


def _stored(m: Module, core: Any, name: str) -> Value:
    """A tile can be read from the next cycle on."""
    cycles = core.design.memory(name).write_latency_cycles
    loaded = core.loaders[name].loaded
    return core.delayed(m, f"{name}_loaded_delay", loaded, cycles) if cycles else loaded


def gates(m: Module, core: Any) -> None:
    """Who may start: credits for operand tiles, banks and halves of the accumulators."""
    stream_walk, load_walk = core.stream_walk, core.load_walk
    walks = {"ifmap": core.pixel_walk, "weight": core.weight_walk}
    ahead: bool = core.design.pipelined_control
    kept = {"ahead": True} if ahead else {}
    stream = _Gate(m, stream_walk, ahead=ahead)
    load = _Gate(m, load_walk, ahead=ahead) if core.decoupled else stream
    for name, walk in walks.items():
        tiles = place(m, f"{name}_tiles", Credits, initial=0, limit=2, **kept)
        gate = stream if walk is stream_walk else load
        needs = gate.needs(f"load_{name}")
        ends = walk.issue & walk.last_slot & walk.tile_last & walk.current[f"free_{name}"]
        m.d.comb += [
            tiles.give.eq(_stored(m, core, name)),
            tiles.take.eq(walk.starting & needs[0] & walk.issue),
            core.loaders[name].free.eq(core.waiting(m, name, "free", ends)),
        ]
        gate.wait(tiles, needs)
    free = place(m, "free_accumulators", Credits, initial=2, limit=2, **kept)
    fresh = stream.needs("first_k")
    m.d.comb += [
        free.give.eq(core.output.released),
        free.take.eq(stream_walk.starting & fresh[0] & stream_walk.issue),
    ]
    stream.wait(free, fresh)
    if core.decoupled:
        free_banks = place(m, "free_banks", Credits, initial=2, limit=2, **kept)
        filled_banks = place(m, "filled_banks", Credits, initial=0, limit=2, **kept)
        m.d.comb += [
            free_banks.take.eq(load_walk.issue & load_walk.first_slot),
            free_banks.give.eq(stream_walk.issue & stream_walk.last_slot),
            filled_banks.give.eq(load_walk.issue & load_walk.last_slot),
            filled_banks.take.eq(stream_walk.issue & stream_walk.first_slot),
        ]
        load.wait(free_banks)
        load.close("load_go")
        stream.wait(filled_banks)
    stream.close("stream_go")
