"""Tokens: where a row of sums goes, sent off with the operands that make it."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.accumulators import token_layout

WALK = ("issue", "last_slot", "group_last", "tile_last", "first_k", "last_k")
"""What the tokens need of a `Sequencer`, its current command's flags included."""


def accumulator_half(m: Module, ends: Value) -> Signal:
    """The half that a tile adds to; the next output tile, after `ends`, takes the other."""
    half = Signal(name="accumulator_half")
    m.d.sync += half.eq(half ^ ends)
    return half


class MovingTokens(wiring.Component):
    """One token an issue: the rows of a block in order, again for every fold of a group.

    A block's first fold overwrites the accumulators, the others add.  Latency: combinational.
    Throughput: one token a cycle.  Never stalls.

    Members
    -------
    issue, last_slot, group_last, tile_last: of the sequencer; first_k, last_k: of its command;
    token: to the accumulators.
    """

    issue: Signal
    last_slot: Signal
    group_last: Signal
    tile_last: Signal
    first_k: Signal
    last_k: Signal
    token: data.View

    def __init__(self, *, depth: int) -> None:
        self.depth = depth
        super().__init__({**dict.fromkeys(WALK, In(1)), "token": Out(token_layout(depth))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        token = self.token
        address, block_start = Signal.like(token.address), Signal.like(token.address)
        group_first, ends = Signal(init=1), Signal()
        with m.If(self.issue):
            m.d.sync += address.eq(address + 1)
            with m.If(self.last_slot):
                m.d.sync += [address.eq(block_start), group_first.eq(self.group_last)]
                with m.If(self.group_last):
                    m.d.sync += [address.eq(address + 1), block_start.eq(address + 1)]
                with m.If(self.tile_last):
                    m.d.sync += [address.eq(0), block_start.eq(0)]
        m.d.comb += [
            ends.eq(self.issue & self.last_slot & self.tile_last & self.last_k),
            token.valid.eq(self.issue),
            token.half.eq(accumulator_half(m, ends)),
            token.address.eq(address),
            token.overwrite.eq(self.first_k & group_first),
            token.last.eq(ends),
        ]
        return m


class RowTokens(wiring.Component):
    """One token a row of the array, from the cycle after the last issue of a group on.

    Latency: 1 cycle from the issue to the first row's token.  Throughput: one token a cycle; groups
    end at least `rows` cycles apart.  Never stalls.

    Members
    -------
    As `MovingTokens`; pixels: left from this block on, the rows that count.
    """

    issue: Signal
    last_slot: Signal
    group_last: Signal
    tile_last: Signal
    first_k: Signal
    last_k: Signal
    pixels: Signal
    token: data.View

    def __init__(self, *, rows: int, depth: int) -> None:
        self.rows = rows
        self.depth = depth
        super().__init__(
            {
                **dict.fromkeys(WALK, In(1)),
                "pixels": In(24),
                "token": Out(token_layout(depth)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        token, rows = self.token, self.rows
        left, last_tile, last_output = Signal(range(rows + 1)), Signal(), Signal()
        group_ends, ends = Signal(), Signal()
        m.d.comb += [
            group_ends.eq(self.issue & self.last_slot & self.group_last),
            ends.eq(group_ends & self.tile_last & self.last_k),
            token.valid.eq(left != 0),
            token.last.eq(last_output & (left == 1)),
        ]
        half = accumulator_half(m, ends)
        with m.If(token.valid):
            m.d.sync += [left.eq(left - 1), token.address.eq(token.address + 1)]
            with m.If(last_tile & (left == 1)):
                m.d.sync += token.address.eq(0)
        with m.If(group_ends):
            m.d.sync += [
                left.eq(Mux(self.pixels > rows, rows, self.pixels)),
                last_tile.eq(self.tile_last),
                last_output.eq(self.tile_last & self.last_k),
                token.half.eq(half),
                token.overwrite.eq(self.first_k),
            ]
        return m


class SlotTokens(wiring.Component):
    """One token a slot of a group's last fold: the sums of a block leave as they are completed.

    Latency: combinational.  Throughput: one token a cycle.  Never stalls.

    Members
    -------
    As `MovingTokens`.
    """

    issue: Signal
    last_slot: Signal
    group_last: Signal
    tile_last: Signal
    first_k: Signal
    last_k: Signal
    token: data.View

    def __init__(self, *, depth: int) -> None:
        self.depth = depth
        super().__init__({**dict.fromkeys(WALK, In(1)), "token": Out(token_layout(depth))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        token, tile_ends = self.token, Signal()
        address = Signal.like(token.address)
        m.d.comb += [
            tile_ends.eq(self.issue & self.last_slot & self.tile_last),
            token.valid.eq(self.issue & self.group_last),
            token.half.eq(accumulator_half(m, tile_ends & self.last_k)),
            token.address.eq(address),
            token.overwrite.eq(self.first_k),
            token.last.eq(tile_ends & self.last_k),
        ]
        with m.If(token.valid):
            m.d.sync += address.eq(Mux(tile_ends, 0, address + 1))
        return m
