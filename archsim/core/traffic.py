"""Off-chip traffic of a layer, and the service that each port gets from the off-chip memory."""

from __future__ import annotations

import numpy as np

from archsim.core import commands as cmd
from archsim.core import machine as mc
from archsim.core import schedule as sc
from archsim.core.kernel import kernel
from archsim.numbers import IntArray
from archsim.timing import Service

_FRACTION = 256
"""Service intervals are kept in 1/256 of a cycle a burst."""


@kernel
def port_bytes(tiles: IntArray, machine: IntArray) -> IntArray:
    """Bytes that cross each port, as whole words: [5], the command port not counted."""
    total = np.zeros(5, np.int64)
    for at in range(len(tiles)):
        row = tiles[at]
        total[sc.IFMAP] += row[cmd.IFMAP_WORDS] * row[cmd.LOAD_IFMAP]
        total[sc.WEIGHT] += row[cmd.WEIGHT_WORDS] * row[cmd.LOAD_WEIGHT]
        total[sc.BIAS] += row[cmd.BIAS_WORDS]
        total[sc.OFMAP] += row[cmd.OUTPUT_WORDS] * row[cmd.LAST_K]
    for port in range(sc.IFMAP, sc.OFMAP + 1):
        total[port] *= machine[mc.IFMAP_WORD_BYTES + port - sc.IFMAP]
    return total


@kernel
def services_of(tiles: IntArray, machine: IntArray) -> IntArray:
    """The regular services of the ports: [5, 4], each with its share of the bandwidth."""
    moved = port_bytes(tiles, machine)
    services = np.zeros((5, 4), np.int64)
    services[:, sc.DENOMINATOR] = _FRACTION
    services[sc.IFMAP : sc.OFMAP, sc.LATENCY] = machine[mc.OFFCHIP_LATENCY]
    sharing = moved.sum()
    if machine[mc.OFFCHIP_WEIGHT_RATE] > 0:
        sharing -= moved[sc.WEIGHT]
    for port in range(sc.IFMAP, sc.OFMAP + 1):
        word = machine[mc.IFMAP_WORD_BYTES + port - sc.IFMAP]
        rate, total, share = machine[mc.OFFCHIP_RATE], sharing, moved[port]
        if port == sc.WEIGHT and machine[mc.OFFCHIP_WEIGHT_RATE] > 0:
            rate, total, share = machine[mc.OFFCHIP_WEIGHT_RATE], np.int64(1), np.int64(1)
        elif machine[mc.OFFCHIP_SHARED] == 0:
            total, share = np.int64(1), np.int64(1)
        if rate == 0 or share == 0:
            continue
        burst = max(1, machine[mc.OFFCHIP_BURST_BYTES] // word)
        interval = float(burst * word) * 1024 * _FRACTION * total / (float(rate) * share)
        if interval > burst * _FRACTION:
            services[port, sc.BURST_WORDS] = burst
            services[port, sc.NUMERATOR] = np.int64(np.ceil(interval))
    return services


def service_objects(vectors: IntArray) -> tuple[Service, ...]:
    """The rows of `services_of` as `Service`s."""
    return tuple(
        Service(
            burst_words=int(row[sc.BURST_WORDS]),
            numerator=int(row[sc.NUMERATOR]),
            denominator=int(row[sc.DENOMINATOR]),
            latency_cycles=int(row[sc.LATENCY]),
        )
        for row in vectors
    )
