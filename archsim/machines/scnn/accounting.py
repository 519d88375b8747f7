"""A sparse layer's timing as the figures that every result has: causes and bytes."""

from __future__ import annotations

import numpy as np

from archsim.causes import CAUSES
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.numbers import IntArray

PARTS = ("computing", "conflict", "wait_weight", "control", "barrier", "draining")


def where_of(timing: ScnnTiming) -> dict[str, int]:
    """Cycles by cause (`archsim.causes`): the mean over the PEs that take part, in whole
    cycles that sum to the layer's.

    computing: a pair of vectors enters the banks; conflict: it waits for one; wait_weight: for the
    broadcast; control: passing over a block without activations; barrier: for the other PEs;
    wait_ifmap: the first group waits for the ifmap; draining: behind the last barrier, halos, the
    output, and the ofmap on its way out.  These are counted with ports that never wait; memory:
    what the off-chip memory adds.
    """
    exact: dict[str, float] = dict.fromkeys(CAUSES, 0.0)
    passes = timing.free or timing.passes
    for one in passes:
        pes = one.pes
        shares = (pes.busy - pes.conflict, pes.conflict, pes.wait, pes.skip, pes.barrier, pes.drain)
        for name, share in zip(PARTS, shares, strict=True):
            exact[name] += float(share.mean())
        exact["wait_ifmap"] += int(one.starts[0])
        exact["draining"] += one.cycles - int(one.drained[-1])
    unhindered = sum(one.cycles for one in passes)
    return _whole(exact, unhindered) | {"memory": timing.cycles - unhindered}


def pe_cycles(timing: ScnnTiming) -> dict[str, IntArray]:
    """Cycles of each PE of the grid [rows, columns]; in each PE they sum to the compute cycles.

    load: a pair of vectors enters the banks; conflict: it waits for one; idle: all the others,
    waiting for weights, at barriers, draining, or in a PE that the plane does not reach.
    """
    busy, conflict = timing.per_pe("busy"), timing.per_pe("conflict")
    load = busy - conflict
    return {"load": load, "conflict": conflict, "idle": timing.compute_cycles - busy}


def _whole(parts: dict[str, float], total: int) -> dict[str, int]:
    """Parts rounded down, and the rest to those that lost most."""
    floors = {name: int(np.floor(part)) for name, part in parts.items()}
    missing = total - sum(floors.values())
    losers = sorted(parts, key=lambda name: floors[name] - parts[name])[:missing]
    return {name: count + (name in losers) for name, count in floors.items()}


def bytes_of(timing: ScnnTiming) -> dict[str, int]:
    """Bytes across each port: compressed operands and results, biases as words, once a pass."""
    biases = sum(len(one.bias_cycles) for one in timing.passes) * timing.design.accumulator_bits
    bits = {
        "ifmap": timing.ifmap_bits,
        "weight": timing.weight_bits,
        "bias": biases,
        "ofmap": timing.ofmap_bits,
    }
    return {name: -(-count // 8) for name, count in bits.items()}
