"""Where the cycles of a layer went: the names of the causes, which sum to its cycles.

Of a machine of many PEs, the mean over those that take part.
"""

CAUSES = (
    "computing",  # moving words enter the array
    "filling",  # waiting for stationary words to be shifted in
    "draining",  # after the last moving word: array, accumulators, output stage
    "wait_weight",  # for a tile of weights, at one word a cycle
    "wait_ifmap",
    "wait_output",  # for accumulators that the output stage still reads
    "conflict",  # of a sparse machine: a bank of accumulators takes another product
    "barrier",  # its PEs wait for each other
    "control",  # taking a tile's command; of a sparse machine: passing over an empty block
    "memory",  # more than all of these, because the off-chip memory is slower than its ports
)

TILE_CAUSES = tuple(name for name in CAUSES if name not in ("conflict", "barrier"))
"""Those of a core that is walked by tiles."""
