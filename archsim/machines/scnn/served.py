"""Passes of a layer behind one off-chip channel, in the better of two programs.

A program is an order of transfers that is known before the layer runs (docs/contracts/scnn.md).
Each pass needs its predecessor's state of the channel, so passes are timed one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archsim.machines.scnn import channel as ch
from archsim.machines.scnn.channel import begin_on
from archsim.machines.scnn.design import Scnn
from archsim.memory import OffChip
from archsim.memory.ticks import TICK, TICK_BITS, whole_cycles
from archsim.numbers import IntArray

PORTS = ("ifmap", "weight", "bias", "ofmap")
LONG_AGO = -(1 << 40)


def waits(memory: OffChip) -> bool:
    """Whether any port has a channel that it might wait for."""
    return bool(memory.bytes_per_cycle or memory.weight_bytes_per_cycle or memory.latency_cycles)


def _memory_of(design: Scnn) -> IntArray:
    """The channels of a design's ports, as `archsim.tiled.traffic.services_of` has them."""
    off_chip, memory = design.off_chip, np.zeros(ch.MEMORY_COLUMNS, np.int64)
    state = memory.view(ch.STATE)[0]
    for port, name in enumerate(PORTS):
        apart = off_chip.weight_bytes_per_cycle if name == "weight" else None
        rate = off_chip.bytes_per_cycle if apart is None else apart
        alone = apart is not None or not off_chip.shared
        bits = design.word_bits(name)
        state["channel"][port] = port if alone else 0
        if rate:
            state["word_ticks"][port] = -(-bits * 128 * TICK // round(rate * 1024))
        state["burst_words"][port] = max(1, 8 * off_chip.burst_bytes // bits)
    state["allowed"] = off_chip.latency_cycles << TICK_BITS
    state["served"] = 1
    return memory


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Of a pass: words of ifmap and ofmap that cross the ports; lists of weights, and of its first
    group."""

    ifmap: int
    ofmap: int
    lists: int
    group_lists: int


class LayerChannel:
    """The channel while the passes of a layer run; its cycles are those of the pass under way.

    spread: what is of other passes goes evenly behind the lists of weights of a pass; else the
    next one's ifmap behind them all, and the ofmap before ahead of those that have no room.
    `begin` and `end` enclose a pass.  After the last, `written`: the cycle of that pass behind
    which the last outputs have left.
    """

    def __init__(self, design: Scnn, passes: Sequence[Traffic], *, spread: bool) -> None:
        self._passes = passes
        self._memory = _memory_of(design)
        self._state = self._memory.view(ch.STATE)[0]
        self._state["spread"] = spread
        self._landed = np.full(2 * design.weight_fifo_vectors, LONG_AGO, np.int64)
        self._next = self._send(ch.IFMAP, passes[0].ifmap)
        self._number = -1
        self._bias_crossed = LONG_AGO
        self.ifmap = self._next
        self.written = 0

    def begin(self) -> None:
        """The next pass's command crosses: in cycle 0 from now on."""
        self._number += 1
        here, behind = self._passes[self._number], self._passes[self._number + 1 :][:1]
        self.ifmap = self._next
        self._next = np.zeros(behind[0].ifmap if behind else 0, np.int64)
        state = self._state
        state["lists"], state["group_lists"] = here.lists, here.group_lists
        state["sent_lists"] = state["sent_weights"] = state["next_sent"] = 0
        state["ahead"], state["next_words"] = -1, len(self._next)

    @property
    def state(self) -> tuple[IntArray, IntArray, IntArray]:
        """What the scan over lists needs and changes (`kernels.run_group`)."""
        return self._memory, self._landed, self._next

    def biases(self, words: int, crossed: int | None) -> IntArray:
        """The cycles from which a group's biases are offered.  crossed: in which the last one of
        the group before crossed; None for the first group of a pass."""
        sent = int(self._state["sent_lists"])
        if sent:  # of the first group alone they go ahead
            ch.go_ahead(self._memory, sent)
        before = self._bias_crossed if crossed is None else crossed
        return self._send(ch.BIAS, words, before + 1)

    def end(self, cycles: int, leaving: IntArray, biases: IntArray) -> None:
        """The pass has taken so many cycles, in the last of which its ofmap has crossed; leaving,
        biases: the cycles in which words crossed."""
        memory, state = self._memory, self._state
        ch.go_ahead(memory, int(state["lists"]))
        if state["next_sent"] < len(self._next):
            self._next = self._send(ch.IFMAP, len(self._next), 0)
        state["leaving"], state["left"] = len(leaving), 0
        state["first_out"] = leaving[0] if len(leaving) else 0
        if self._number + 1 == len(self._passes):
            left = int(ch.leave(memory, len(leaving))) if len(leaving) else 0
            self.written = max(cycles, int(whole_cycles(left)))
        state["channel_free"] -= cycles << TICK_BITS
        state["allowed"] -= cycles << TICK_BITS
        state["first_out"] -= cycles
        self._landed -= cycles
        self._bias_crossed = (int(biases[-1]) if len(biases) else LONG_AGO) - cycles
        self._next = self._next - cycles

    def _send(self, port: int, words: int, cycle: int = LONG_AGO) -> IntArray:
        """As `channel.send`, of all words of a load, from a cycle on."""
        earliest = max(int(self._state["allowed"]), cycle << TICK_BITS)
        start = int(begin_on(self._memory, port, earliest, words))
        burst = int(self._state["burst_words"][port])
        behind = np.minimum(words, (np.arange(words, dtype=np.int64) // burst + 1) * burst)
        return -(-(start + behind * self._state["word_ticks"][port]) >> TICK_BITS)


__all__ = ["LayerChannel", "Traffic", "waits"]
