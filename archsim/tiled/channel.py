"""The channel of the off-chip memory: transfers one behind the other, in the order of the program.

docs/contracts/systolic.md says what it promises, docs/adr/0012-one-channel.md why.
"""

from __future__ import annotations

from archsim.kernels import inlined
from archsim.memory.ticks import TICK, TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import plan as pn
from archsim.tiled.packing import row_of_word


@inlined
def send(state: IntArray, port: int, sent: int, words: int) -> int:
    """A piece of the load under way goes through the channel, behind the `sent` words before it.

    Returns the ticks at which it begins.  A burst comes as a whole; its words then cross one a
    cycle.  So the load ends by its first burst, its last, or, as that may be shorter, the last but
    one.
    """
    ticks, way = state[pn.SCALARS, pn.TICKS + port], state[pn.SCALARS, pn.ON_CHANNEL + port]
    start, burst = state[pn.SCALARS, pn.ALLOWED + port], words
    if ticks > 0:
        start = max(start, state[pn.SCALARS, pn.CHANNEL_FREE + way])
        burst = min(words, state[pn.SCALARS, pn.BURST + port])
    end = start + words * ticks
    state[pn.SCALARS, pn.CHANNEL_FREE + way] = end
    first = whole_cycles(start + burst * ticks)
    late = first - sent
    if ticks > TICK:
        full = (words - 1) // burst * burst
        late = max(late, whole_cycles(end) - full - sent)
        if full > 0:
            before = end - (words - full) * ticks
            late = max(late, whole_cycles(before) - (full - burst) - sent)
    if sent == 0:
        state[pn.SCALARS, pn.FIRST_ARRIVAL + port] = first
        state[pn.SCALARS, pn.ARRIVAL + port] = late
    else:
        state[pn.SCALARS, pn.ARRIVAL + port] = max(late, state[pn.SCALARS, pn.ARRIVAL + port])
    return start


@inlined
def take(state: IntArray, port: int, words: int, ready: int) -> int:
    """The load under way crosses the port as its words come, from `ready` on: the first cycle."""
    earliest = max(ready, state[pn.SCALARS, pn.CROSSED + port] + 1)
    last = max(earliest, state[pn.SCALARS, pn.ARRIVAL + port]) + words - 1
    state[pn.SCALARS, pn.CROSSED + port] = last
    return max(earliest, state[pn.SCALARS, pn.FIRST_ARRIVAL + port])


@inlined
def write_back(state: IntArray, row: IntArray, out: IntArray, machine: IntArray) -> int:
    """The words of an output tile, of which some cross; returns when the last has left.

    They go in one piece, each no earlier than the cycle after it crossed.  Words cross a cycle
    apart at least: the last one binds a channel that is as fast; else the first one does, if every
    row completes a word, or any.
    """
    ticks, way = state[pn.SCALARS, pn.TICKS + pn.OFMAP], state[pn.SCALARS, pn.ON_CHANNEL + pn.OFMAP]
    words, first, last = row[cmd.OUTPUT_WORDS], out[pn.FIRST_OUT], out[pn.LAST_OUT]
    if ticks == 0:
        return last + 1
    start = max(state[pn.SCALARS, pn.CHANNEL_FREE + way], (first + 1) << TICK_BITS)
    start = max(start, ((last + 1) << TICK_BITS) - (words - 1) * ticks)
    if ticks > TICK and last - first >= words:
        before = first + 1 - row_of_word(row, 0, machine)
        for word in range(1, words - 1):
            after = before + row_of_word(row, word, machine)
            start = max(start, (after << TICK_BITS) - word * ticks)
    state[pn.SCALARS, pn.CHANNEL_FREE + way] = start + words * ticks
    return whole_cycles(start + words * ticks)
