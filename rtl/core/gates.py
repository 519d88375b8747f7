"""Who may start, in a core: credits for what is filled and freed."""

from typing import Any

from amaranth.hdl import Module, Value

from rtl.core.credits import Credits
from rtl.hierarchy import place


def _stored(m: Module, core: Any, name: str) -> Value:
    """A tile can be read from the next cycle on."""
    cycles = core.design.memory(name).write_latency_cycles
    loaded = core.loaders[name].loaded
    return core.delayed(m, f"{name}_loaded_delay", loaded, cycles) if cycles else loaded


def gates(m: Module, core: Any) -> None:
    """Who may start: credits for operand tiles, banks and halves of the accumulators."""
    stream_walk, load_walk = core.stream_walk, core.load_walk
    walks = {"ifmap": core.pixel_walk, "weight": core.weight_walk}
    ahead = {"ahead": True} if core.design.pipelined_control else {}
    allowed = {"stream": Value.cast(1), "load": Value.cast(1)}
    for name, walk in walks.items():
        tiles = place(m, f"{name}_tiles", Credits, initial=0, limit=2, **ahead)
        needs = walk.first_fold & walk.current[f"load_{name}"]  # asked when a fold starts
        ends = walk.issue & walk.last_slot & walk.tile_last & walk.current[f"free_{name}"]
        m.d.comb += [
            tiles.give.eq(_stored(m, core, name)),
            tiles.take.eq(walk.starting & needs & walk.issue),
            core.loaders[name].free.eq(core.waiting(m, name, "free", ends)),
        ]
        role = "stream" if walk is stream_walk else "load"
        allowed[role] = allowed[role] & (~needs | tiles.available)
    free = place(m, "free_accumulators", Credits, initial=2, limit=2, **ahead)
    fresh = stream_walk.first_fold & stream_walk.current.first_k
    m.d.comb += [
        free.give.eq(core.output.released),
        free.take.eq(stream_walk.starting & fresh & stream_walk.issue),
    ]
    allowed["stream"] = allowed["stream"] & (~fresh | free.available)
    if core.decoupled:
        free_banks = place(m, "free_banks", Credits, initial=2, limit=2, **ahead)
        filled_banks = place(m, "filled_banks", Credits, initial=0, limit=2, **ahead)
        m.d.comb += [
            free_banks.take.eq(load_walk.issue & load_walk.first_slot),
            free_banks.give.eq(stream_walk.issue & stream_walk.last_slot),
            filled_banks.give.eq(load_walk.issue & load_walk.last_slot),
            filled_banks.take.eq(stream_walk.issue & stream_walk.first_slot),
            load_walk.go.eq(allowed["load"] & free_banks.available),
        ]
        allowed["stream"] = allowed["stream"] & filled_banks.available
    m.d.comb += stream_walk.go.eq(allowed["stream"])
