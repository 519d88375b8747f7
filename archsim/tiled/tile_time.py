"""How long a layer takes in a tiling, roughly and at once: what the search for one goes by."""

from __future__ import annotations

from archsim.kernels import kernel
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc


@kernel
def _channel_cycles(machine: IntArray, ifmap: int, weight: int, ofmap: int) -> int:
    """Cycles in which so many bytes pass the off-chip memory, on the busiest channel."""
    rate, apart = machine[mc.OFFCHIP_RATE], machine[mc.OFFCHIP_WEIGHT_RATE]
    alone = weight * 1024 // apart if apart > 0 else 0
    if rate == 0:
        return alone
    weight = 0 if apart > 0 else weight
    together = ifmap + weight + ofmap
    if machine[mc.OFFCHIP_SHARED] == 0:
        together = max(max(ifmap, weight), ofmap)
    return max(alone, together * 1024 // rate)


@kernel
def tiles_time(
    machine: IntArray,
    row: IntArray,
    compute: int,
    words: tuple[int, int, int],
    moved: tuple[int, int],
) -> int:
    """Cycles, roughly, of tiles as the one in `row`: what is the busiest, then the first loads
    and the last outputs, which nothing hides.

    compute: cycles of the array; words: of ifmap and weight, and rows of sums that are read;
    moved: bytes of ifmap and ofmap.
    """
    weight_bytes = words[1] * machine[mc.WEIGHT_WORD_BYTES]
    port = max(max(words[0], words[1]), words[2])
    # sums are in one half of the accumulators from the first stream to the last read
    latency = words[2] // row[cmd.OUTPUT_ROWS] * machine[mc.RESULT_LATENCY]
    halves = (compute + latency + words[2]) // 2
    channel = _channel_cycles(machine, moved[0], weight_bytes, moved[1])
    ifmap, weight, output = row[cmd.IFMAP_WORDS], row[cmd.WEIGHT_WORDS], row[cmd.OUTPUT_ROWS]
    first = _channel_cycles(
        machine, ifmap * machine[mc.IFMAP_WORD_BYTES], weight * machine[mc.WEIGHT_WORD_BYTES], 0
    )
    last = _channel_cycles(machine, 0, 0, moved[1] * output // words[2])
    busy = max(max(compute, channel), max(port, halves))
    ends = max(first, max(ifmap, weight)) + max(last, output)
    # of equals, the one that keeps the array less busy: fewer folds
    return busy + compute // 16 + ends
