"""The channel of the off-chip memory: transfers one behind the other, in the order of the program.

docs/contracts/systolic.md says what it promises, docs/adr/0012-one-channel.md why.
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.memory.ticks import TICK, TICK_BITS, whole_cycles
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.packing import Block, output_blocks, row_of_word


@inlined
def send(state: IntArray, services: IntArray, port: int, sent: int, words: int) -> int:
    """A piece of the load under way goes through the channel, behind the `sent` words before it.

    Returns the ticks at which it begins.  A burst comes as a whole; its words then cross one a
    cycle.  So the load ends by its first burst, its last, or, as that may be shorter, the last but
    one.
    """
    ticks, way = services[port, pn.WORD_TICKS], services[port, pn.CHANNEL]
    start, burst = state[pn.ALLOWED + port], words
    if ticks > 0:
        start = max(start, state[pn.CHANNEL_FREE + way])
        burst = min(words, services[port, pn.BURST_WORDS])
    end = start + words * ticks
    state[pn.CHANNEL_FREE + way] = end
    first = whole_cycles(start + burst * ticks)
    late = first - sent
    if ticks > TICK:
        full = (words - 1) // burst * burst
        late = max(late, whole_cycles(end) - full - sent)
        if full > 0:
            before = end - (words - full) * ticks
            late = max(late, whole_cycles(before) - (full - burst) - sent)
    if sent == 0:
        state[pn.FIRST_ARRIVAL + port] = first
        state[pn.ARRIVAL + port] = late
    else:
        state[pn.ARRIVAL + port] = max(late, state[pn.ARRIVAL + port])
    return start


@inlined
def take(state: IntArray, port: int, words: int, ready: int) -> int:
    """The load under way crosses the port as its words come, from `ready` on: the first cycle."""
    earliest = max(ready, state[pn.CROSSED + port] + 1)
    state[pn.CROSSED + port] = max(earliest, state[pn.ARRIVAL + port]) + words - 1
    return max(earliest, state[pn.FIRST_ARRIVAL + port])


@inlined
def _latest(words: tuple[int, int], block: Block, ticks: int, size: int) -> tuple[int, int]:
    """Of some words of a block of rows, from one to before another, those among which lies the one
    that binds the channel: all, but where each row is a vector, whose words keep a rate.

    Words then cross later and later, or earlier and earlier, than the channel's rate asks, to
    within a row: by so many of `size` units, that is `gain` ticks a row's units and word.
    """
    begin, end = words
    if block[1] > 1:
        return begin, end
    gain = (size << TICK_BITS) - ticks * block[4]
    if gain > 0:
        begin = max(begin, end - (block[4] << TICK_BITS) // gain - 1)
    elif gain < 0:
        end = min(end, begin - (block[4] << TICK_BITS) // gain + 1)
    return begin, end


@kernel
def leave(row: IntArray, rows: tuple[int, int], ticks: int, machine: IntArray) -> int:
    """Ticks, from the end of the crossing of an output tile's first word, before which the channel
    cannot begin with its words, if it is to send each no earlier than the cycle after it crossed.

    rows: those that complete its first and its last word; ticks: of a word on the channel.  Words
    cross a cycle apart at least: the last one binds a channel that is as fast; else the first one
    does, if every row completes a word, or any.
    """
    first, last = rows
    words = row[cmd.OUTPUT_WORDS]
    lead = max(0, ((last - first) << TICK_BITS) - (words - 1) * ticks)
    if ticks <= TICK or last - first < words:
        return lead
    full, short = output_blocks(row, machine)
    size, begun = machine[mc.OUTPUT_WORD_UNITS], row[cmd.BEGUN_UNITS]
    of_full = min((full[0] * full[4] + begun) // size, words - 1)
    for which in range(2):
        if which == 0:
            begin, end = _latest((1, of_full), full, ticks, size)
        else:
            begin, end = _latest((max(of_full, 1), words - 1), short, ticks, size)
        for word in range(begin, end):
            behind = row_of_word(row, word, machine) - first
            lead = max(lead, (behind << TICK_BITS) - word * ticks)
    return lead


@inlined
def write_back(state: IntArray, services: IntArray, words: int, lead: int) -> int:
    """The words of the output tile three before, of which some cross; returns when the last has
    left.  They go in one piece; lead: `leave`."""
    ticks, way = services[pn.OFMAP, pn.WORD_TICKS], services[pn.OFMAP, pn.CHANNEL]
    if ticks == 0:
        return state[pn.LAST_OUT_3] + 1
    start = ((state[pn.FIRST_OUT_3] + 1) << TICK_BITS) + lead
    end = max(state[pn.CHANNEL_FREE + way], start) + words * ticks
    state[pn.CHANNEL_FREE + way] = end
    return whole_cycles(end)
