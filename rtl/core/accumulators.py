"""The accumulators: rows of partial sums, added up over the folds of a tile."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.memory import PLAIN_BANKS, Banks
from rtl.core.sram import address_bits


def token_layout(depth: int) -> data.StructLayout:
    """What travels beside a row of sums: where it goes and whether it ends an output tile."""
    return data.StructLayout(
        {
            "valid": 1,
            "half": 1,
            "overwrite": 1,
            "last": 1,
            "address": address_bits(depth),
        }
    )


def accumulator_ports(row_bits: int, depth: int) -> dict[str, Any]:
    """The members of accumulators, of whatever numbers, with rows of so many bits."""
    return {
        "token": In(token_layout(depth)),
        "sums": In(row_bits),
        "done": Out(1),
        "read_half": In(1),
        "read_address": In(address_bits(depth)),
        "read_data": Out(row_bits),
        "count_write": Out(1),
        "count_read": Out(1),
    }


class Accumulators(wiring.Component):
    """half[token.half][token.address] ← sums + (0 if token.overwrite else what it held).

    Each column wraps around at its width.  The token comes one cycle before its sums.
    Latency: 1 cycle from the token to the write; `done` is given in the cycle of the last write.
    Throughput: one row a cycle, the same row in successive cycles included.  Never stalls.
    read_data[t + 1] = half[read_half[t]][read_address[t]] for the output stage.

    Members
    -------
    token: where the row of sums goes; sums: the row, a cycle later; done: the last row of an output
    tile is written in this cycle; read_half, read_address, read_data: of the output stage;
    count_write, count_read: a row is written, and what it held was added to, in this cycle.
    settings: of a memory that takes some; what is added to is read as the output stage reads it.
    """

    token: data.View
    sums: Signal
    done: Signal
    read_half: Signal
    read_address: Signal
    read_data: Signal
    count_write: Signal
    count_read: Signal

    def __init__(self, *, columns: int, bits: int, depth: int, banks: Banks = PLAIN_BANKS) -> None:
        self.columns = columns
        self.bits = bits
        self.depth = depth
        self.banks = banks
        super().__init__({**accumulator_ports(columns * bits, depth), **banks.port(depth)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        token = self.token
        adding = Signal(token_layout(self.depth))
        selected = Signal()
        m.d.sync += [adding.eq(token), selected.eq(self.read_half)]
        shape = {"bits": self.columns * self.bits, "depth": self.depth}
        outputs: list[Signal] = []
        for half in range(2):
            store = self.banks.place(m, self, f"half_{half}", half, transparent=True, **shape)
            total = Signal(self.columns * self.bits, name=f"total_{half}")
            for column in range(self.columns):
                before = store.read_data.word_select(column, self.bits)
                m.d.comb += total.word_select(column, self.bits).eq(
                    self.sums.word_select(column, self.bits) + Mux(adding.overwrite, 0, before)
                )
            m.d.comb += [
                store.read_address.eq(
                    Mux(token.valid & (token.half == half), token.address, self.read_address)
                ),
                store.write.eq(adding.valid & (adding.half == half)),
                store.write_address.eq(adding.address),
                store.write_data.eq(total),
            ]
            outputs.append(store.read_data)
        m.d.comb += [
            self.read_data.eq(Mux(selected, outputs[1], outputs[0])),
            self.done.eq(adding.valid & adding.last),
            self.count_write.eq(adding.valid),
            self.count_read.eq(adding.valid & ~adding.overwrite),
        ]
        return m
