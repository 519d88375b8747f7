"""Performance counters of a core: how often each of its actions was done."""

from typing import Any

from amaranth.hdl import Module


def counters(m: Module, core: Any) -> None:
    """A counter of every action, which an event of this cycle adds to."""
    events = {
        "ifmap_write": core.loaders["ifmap"].write,
        "weight_write": core.loaders["weight"].write,
        "bias_write": core.loaders["bias"].write,
        "ifmap_read": core.pixel_walk.issue & core.pixel_walk.slot_counts,
        "weight_read": core.weights.read,
        "accumulator_read": core.accumulated.count_read + core.output.count_read,
        "accumulator_write": core.accumulated.count_write,
        "array_step": core.stream_walk.issue,
        "stationary_step": core.load_walk.issue if core.decoupled else 0,
        "output_read": core.output.count_read,
        "ofmap_write": core.ofmap.valid & core.ofmap.ready,
    }
    if core.design.gather:
        loader = core.loaders["ifmap"]
        events |= {"gather_flags": loader.takes_flags, "gather_word": loader.takes_word}
    for name, store in core.design.stores.items():
        unit = {"ifmap": core.banks, "weight": core.weights}[name]
        events |= {f"{name}_{what}": getattr(unit, f"{what}s") for what in store.counted}
    for name, event in events.items():
        counter = getattr(core, f"count_{name}")
        m.d.sync += counter.eq(counter + event)
