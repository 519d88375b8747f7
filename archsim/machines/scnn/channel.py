"""The off-chip channel of a sparse core: transfers one behind the other, in the program's order.

docs/contracts/scnn.md says what it promises, docs/adr/0018-channel-of-the-sparse-core.md why.
Times are ticks of 1/65,536 cycle.  `memory` [MEMORY_COLUMNS] is the state, from list to list.
"""

from __future__ import annotations

import numpy as np

from archsim.kernels import inlined
from archsim.memory.ticks import TICK_BITS, whole_cycles
from archsim.numbers import IntArray

IFMAP, WEIGHT, BIAS, OFMAP = range(4)
"""Ports."""

CHANNEL, WORD_TICKS, BURST_WORDS, CHANNEL_FREE = 0, 4, 8, 12
"""+ port: its channel, ticks of a word (0: there at once), words that come at a time; + channel:
the ticks at which it is free."""

(
    ALLOWED,  # ticks before which no load begins: asked for, and the latency
    SERVED,  # 0: no port has a channel
    SPREAD,  # 1: what is of other passes goes evenly behind the lists
    WEIGHTS,  # words of weights that were sent, of all passes
    LISTS,  # of the pass: lists of weights
    GROUP_LISTS,  # those of its first group
    SENT_LISTS,  # that were sent
    SENT_WEIGHTS,  # their words
    AHEAD,  # lists that go ahead of the ofmap before; -1: it may be more
    NEXT_WORDS,  # of the next pass's ifmap
    NEXT_SENT,  # that were sent
    LEAVING,  # words of the ofmap before
    LEFT,  # that were sent
    FIRST_OUT,  # the cycle in which its first one crossed; the others, one behind the other
    MEMORY_COLUMNS,
) = range(16, 31)

_PORTS = ("channel", "word_ticks", "burst_words", "channel_free")
_SCALARS = (
    "allowed",
    "served",
    "spread",
    "weights",
    "lists",
    "group_lists",
    "sent_lists",
    "sent_weights",
    "ahead",
    "next_words",
    "next_sent",
    "leaving",
    "left",
    "first_out",
)
STATE = np.dtype(
    [*((name, np.int64, (4,)) for name in _PORTS), *((name, np.int64) for name in _SCALARS)]
)
"""The state by the names of its places: `memory.view(STATE)[0]["lists"]`; of the first four, one
for each port, or channel."""


@inlined
def begin_on(memory: IntArray, port: int, earliest: int, words: int) -> int:
    """Ticks at which words of a port begin on its channel, which is theirs from there on."""
    ticks, way = memory[WORD_TICKS + port], memory[CHANNEL + port]
    if ticks == 0 or words == 0:
        return earliest
    start = max(earliest, int(memory[CHANNEL_FREE + way]))
    memory[CHANNEL_FREE + way] = start + words * ticks
    return start


@inlined
def send(
    memory: IntArray, port: int, earliest: int, piece: tuple[int, int], offers: IntArray
) -> None:
    """Words from piece[0] to piece[1] of a load go through the channel: `offers`, when each has
    come.  A burst comes as a whole."""
    first, words = piece[0], piece[1] - piece[0]
    ticks, burst = memory[WORD_TICKS + port], memory[BURST_WORDS + port]
    start = begin_on(memory, port, earliest, words)
    for word in range(words):
        behind = min(words, (word // burst + 1) * burst)
        offers[first + word] = whole_cycles(start + behind * ticks)


@inlined
def leave(memory: IntArray, until: int) -> int:
    """Words of the ofmap before go, until so many have, each no earlier than in the cycle behind
    that in which it crossed.  Returns the ticks at which they have left."""
    sent, ticks = memory[LEFT], memory[WORD_TICKS + OFMAP]
    words = until - sent
    memory[LEFT] = until
    first = (memory[FIRST_OUT] + sent + 1) << TICK_BITS
    last = (memory[FIRST_OUT] + until) << TICK_BITS
    start = begin_on(memory, OFMAP, max(first, last - (words - 1) * ticks), words)
    return start + words * ticks


@inlined
def go_ahead(memory: IntArray, lists: int) -> None:
    """So many lists of a pass have gone ahead of the ofmap before, which follows them."""
    if memory[AHEAD] < 0:
        memory[AHEAD] = lists
        if memory[SPREAD] == 0 or lists == memory[LISTS]:
            leave(memory, memory[LEAVING])


@inlined
def send_weights(
    memory: IntArray, landed: IntArray, vectors: tuple[int, int, int], offers: IntArray
) -> None:
    """A list of weights goes through the channel, once it has room beside the port.

    landed [places]: of word n at n modulo the places, the cycle in which its place is free again.
    """
    begin, end, _ = vectors
    number = memory[SENT_LISTS]
    memory[SENT_WEIGHTS] += end - begin
    if number >= memory[GROUP_LISTS] or memory[SENT_WEIGHTS] > len(landed):
        go_ahead(memory, number)
    last = memory[WEIGHTS] + end - begin - 1
    room = landed[last % len(landed)] << TICK_BITS
    send(memory, WEIGHT, max(memory[ALLOWED], room), (begin, end), offers)


@inlined
def land_weights(
    memory: IntArray, landed: IntArray, vectors: tuple[int, int, int], crossings: IntArray
) -> None:
    """The list's words have crossed the port, and their places are free."""
    begin, end, _ = vectors
    for word in range(begin, end):
        landed[memory[WEIGHTS] % len(landed)] = crossings[word] + 1
        memory[WEIGHTS] += 1


@inlined
def send_parts(memory: IntArray, next_ifmap: IntArray) -> None:
    """What goes behind a list: even parts of the ofmap before and of the next pass's ifmap."""
    memory[SENT_LISTS] += 1
    number, lists = memory[SENT_LISTS] - memory[AHEAD], memory[LISTS] - memory[AHEAD]
    if memory[SPREAD] == 1 and memory[AHEAD] >= 0:
        until = memory[LEAVING] * number // lists
        if until > memory[LEFT]:
            leave(memory, until)
        piece = memory[NEXT_SENT], memory[NEXT_WORDS] * number // lists
        send(memory, IFMAP, max(memory[ALLOWED], 0), piece, next_ifmap)
        memory[NEXT_SENT] = piece[1]
