"""Where the cycles of a layer went: the names of the causes, which sum to its cycles."""

CAUSES = (
    "computing",  # moving words enter the array
    "filling",  # waiting for stationary words to be shifted in
    "draining",  # after the last moving word: array, accumulators, output stage
    "wait_weight",  # for a tile of weights, at one word a cycle
    "wait_ifmap",
    "wait_output",  # for accumulators that the output stage still reads
    "control",  # taking a tile's command
    "memory",  # more than all of these, because the off-chip memory is slower than its ports
)
