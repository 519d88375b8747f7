"""Off-chip traffic of a layer, and how the off-chip memory serves each port."""

from __future__ import annotations

import numpy as np

from archsim.kernels import kernel
from archsim.memory.ticks import TICK
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn


@kernel("i8.2, i8.1")
def port_bytes(tiles: IntArray, machine: IntArray) -> IntArray:
    """Bytes that cross each port, as whole words: [5], the command port not counted."""
    total = np.zeros(5, np.int64)
    for at in range(len(tiles)):
        row = tiles[at]
        total[pn.IFMAP] += row[cmd.IFMAP_WORDS] * row[cmd.LOAD_IFMAP]
        total[pn.WEIGHT] += row[cmd.WEIGHT_WORDS] * row[cmd.LOAD_WEIGHT]
        total[pn.BIAS] += row[cmd.BIAS_WORDS]
        total[pn.OFMAP] += row[cmd.OUTPUT_WORDS]
    for port in range(pn.IFMAP, pn.OFMAP + 1):
        total[port] *= machine[mc.IFMAP_WORD_BYTES + port - pn.IFMAP]
    return total


@kernel("i8.1")
def services_of(machine: IntArray) -> IntArray:
    """How the off-chip memory serves the ports: [5, SERVICE_COLUMNS].

    One channel serves all; weights may have one of their own, or every port.  The ticks of a word
    are rounded up, so that no channel is faster than it should be.
    """
    services = np.zeros((5, pn.SERVICE_COLUMNS), np.int64)
    for port in range(pn.IFMAP, pn.OFMAP + 1):
        word = machine[mc.IFMAP_WORD_BYTES + port - pn.IFMAP]
        apart = port == pn.WEIGHT and machine[mc.OFFCHIP_WEIGHT_RATE] > 0
        rate = machine[mc.OFFCHIP_WEIGHT_RATE] if apart else machine[mc.OFFCHIP_RATE]
        alone = apart or rate == 0 or machine[mc.OFFCHIP_SHARED] == 0
        services[port, pn.CHANNEL] = port if alone else pn.COMMAND
        if rate > 0:
            services[port, pn.WORD_TICKS] = -(-word * 1024 * TICK // rate)
        services[port, pn.BURST_WORDS] = max(1, machine[mc.OFFCHIP_BURST_BYTES] // word)
        if port != pn.OFMAP:
            services[port, pn.LATENCY] = machine[mc.OFFCHIP_LATENCY]
    return services
