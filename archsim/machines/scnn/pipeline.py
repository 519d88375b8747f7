"""Cycles of the registers that `Scnn.pipelined_pes` adds (docs/contracts/scnn.md, *Registers*)."""

FETCH_CYCLES = 5
"""From a group's start until its first vector of activations is decoded."""

DECODE_CYCLES = 3
"""From the cycle in which a vector of weights crosses to that in which it goes into the FIFOs."""

ISSUE_CYCLES = 4
"""From the cycle in which a pair leaves FIFO and activations to the first in which it is sent."""

BARRIER_CYCLES = 1
"""From the end of the last PE's part of a group to the cycle in which the next may be begun."""

STEP_CYCLES = 2
"""From a step of the drain to the PEs, which are far apart on a chip."""

DRAIN_CYCLES = STEP_CYCLES + 3
"""From a step of the drain to the cycle in which its sum is read."""

OUTPUT_CYCLES = 7
"""More from a sum to the vector that leaves: for its value, for a memory that is not transparent,
and for a vector read ahead."""

OUTPUT_REGISTERS = 2
"""Of these within the product and behind its shift."""
