"""Faults in front of a memory's read port: the twin of `archsim.memories.faulty.fault_map`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.cell_hash import (
    HASH_BITS,
    KIND_BITS,
    THRESHOLD_BITS,
    lane_draw,
    row_state,
)
from archsim.memories.faulty.fault_map import DRAW_TURN, FaultMap
from rtl.core.delay import Delay
from rtl.core.memory import Settings
from rtl.hierarchy import place

RATE_BITS = THRESHOLD_BITS + 1
"""Of a threshold: 2^24 is a rate of 1."""

DRAW_BITS = HALF_BIT - DRAW_TURN


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the registers of a fault map lie among its settings, lowest first.

    key (32 bits), draw (10, where cells fail sometimes), then thresholds of `RATE_BITS`: one, or
    with a law of columns one a bit of a word, of words side by side the first one's first; where
    cells fail sometimes as many for those that fail always.
    """

    faults: FaultMap

    @property
    def sometimes(self) -> bool:
        """Whether there are cells that fail in some draws."""
        return self.faults.persistent < 1

    @property
    def rates(self) -> int:
        """Thresholds of either sort."""
        return 1 if self.uniform else self.faults.word_bits * self.side

    @property
    def side(self) -> int:
        """Words in a row of the array whose columns differ."""
        return 1 if self.uniform else self.faults.side_by_side

    @property
    def uniform(self) -> bool:
        """Whether all cells have one threshold."""
        return self.faults.law.uniform

    def settings(self) -> Settings:
        """All bits, and the map's own values."""
        fields = [(HASH_BITS, self.faults.key)]
        if self.sometimes:
            fields.append((DRAW_BITS, self.faults.draw))
        for thresholds in self._thresholds():
            fields += [(RATE_BITS, value) for value in thresholds]
        init = at = 0
        for bits, value in fields:
            init |= value << at
            at += bits
        return Settings(bits=at, init=init)

    def _thresholds(self) -> list[list[int]]:
        faults = self.faults
        sorts = [faults.thresholds, *([faults.always_thresholds] if self.sometimes else [])]
        if self.uniform:
            return [[int(one.max())] for one in sorts]
        return [one.reshape(-1).tolist() for one in sorts]

    def split(self, settings: Value) -> tuple[Value, Value, list[list[Value]]]:
        """Key, draw, and for each sort its thresholds."""
        key, at = settings[:HASH_BITS], HASH_BITS
        draw: Value = Const(0, DRAW_BITS)
        if self.sometimes:
            draw, at = settings[at : at + DRAW_BITS], at + DRAW_BITS
        sorts: list[list[Value]] = []
        for _ in range(1 + self.sometimes):
            sorts.append([settings[at + n * RATE_BITS :][:RATE_BITS] for n in range(self.rates)])
            at += self.rates * RATE_BITS
        return key, draw, sorts


def named(m: Module, name: str) -> Callable[[Value], Signal]:
    """Signals of rounds, numbered."""
    numbers = count()

    def keep(value: Value) -> Signal:
        signal = Signal(HASH_BITS, name=f"{name}_{next(numbers)}")
        m.d.comb += signal.eq(value)
        return signal

    return keep


class FaultLayer(wiring.Component):
    """o = i with the faults of the word whose address was given `latency` cycles ago.

    The address is mixed in the cycle in which it is given, and each bit is drawn and compared in
    the cycle in which it is read: no cycle is added.  Throughput: a word a cycle.  Never stalls.

    Members
    -------
    half, address: of the word; settings: `Layout`; i: what the memory reads; o: that, as the cells
    give it.
    """

    half: Signal
    address: Signal
    settings: Signal
    i: Signal
    o: Signal

    def __init__(
        self, *, faults: FaultMap, bits: int, address_bits: int, first_bit: int, latency: int
    ) -> None:
        """bits: of the word, of which the first is `first_bit` of the map's words."""
        self.layout = Layout(faults=faults)
        self.faults, self.first_bit, self.latency = faults, first_bit, latency
        super().__init__(
            {
                "half": In(1),
                "address": In(address_bits),
                "settings": In(self.layout.settings().bits),
                "i": In(bits),
                "o": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        key, draw, thresholds = self.layout.split(self.settings)
        place_bits = DRAW_TURN - len(self.address)
        low, top = Cat(self.address, Const(0, place_bits)), Cat(self.half, Const(0, 1))
        state = self._state(m, "cells", Cat(low, Const(0, DRAW_BITS), top), key)
        coins = None
        if self.layout.sometimes:
            coins = self._state(m, "coins", Cat(low, draw, top), ~key)
        thresholds = self._of_place(m, thresholds)
        for bit in range(len(self.i)):
            wrong = self._wrong(m, bit, state, coins, thresholds)
            m.d.comb += self.o[bit].eq(self.i[bit] ^ wrong)
        return m

    def _of_place(self, m: Module, thresholds: list[list[Value]]) -> list[list[Value]]:
        """Those of the word's place in its row, when it is read."""
        side, bits = self.layout.side, self.faults.word_bits
        if side == 1:
            return thresholds
        line = place(m, "place_delay", Delay, bits=side.bit_length() - 1, cycles=self.latency)
        m.d.comb += line.i.eq(self.address)
        return [[Array(one[bit::bits])[line.o] for bit in range(bits)] for one in thresholds]

    def _state(self, m: Module, name: str, address: Value, key: Value) -> tuple[Value, Value]:
        """What all bits have in common, when the word is read."""
        x, y = row_state(address, key, Value.rotate_left, named(m, name))
        line = place(m, f"{name}_delay", Delay, bits=2 * HASH_BITS, cycles=self.latency)
        m.d.comb += line.i.eq(Cat(x, y))
        return line.o[:HASH_BITS], line.o[HASH_BITS:]

    def _wrong(
        self, m: Module, bit: int, state: Any, coins: Any, thresholds: list[list[Value]]
    ) -> Value:
        """Whether a bit is read as the other one."""
        place = self.first_bit + bit
        if place in self.faults.protected_bits:
            return Const(0, 1)
        below, above = self.faults.kind_limits
        drawn = lane_draw(state, place, Value.rotate_left, named(m, f"drawn_{bit}"))
        at = 0 if self.layout.uniform else place
        fails = drawn[KIND_BITS:] < thresholds[0][at]
        if coins is not None:
            coin = ~lane_draw(coins, place, Value.rotate_left, named(m, f"coin_{bit}"))[-1]
            fails = (drawn[KIND_BITS:] < thresholds[1][at]) | (fails & coin)
        kind = drawn[:KIND_BITS]
        return fails & ((self.i[bit] & (kind >= above)) | (~self.i[bit] & (kind < below)))


__all__ = ["FaultLayer", "Layout"]
