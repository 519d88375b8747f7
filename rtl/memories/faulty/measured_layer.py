"""Measured faults in front of a memory's read port: the map as a memory of constants."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from archsim.errors import require
from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.fault_map import FaultMap
from rtl.core.delay import Delay
from rtl.hierarchy import place

MOST_BITS = 1 << 23
"""Of a map that is built into hardware."""


class MeasuredLayer(wiring.Component):
    """o = i with the measured faults of the word whose address was given `latency` cycles ago.

    Which bits read wrong if 0 and if 1 is stored lie in a memory of constants, read beside the
    cells.  No cycle is added.  Throughput: a word a cycle.  Never stalls.

    Members
    -------
    half, address: of the word, half of no account where there are none; i: what the memory reads;
    o: that, as the cells give it.
    """

    half: Signal
    address: Signal
    i: Signal
    o: Signal

    def __init__(
        self, *, faults: FaultMap, bits: int, address_bits: int, first_bit: int, latency: int
    ) -> None:
        """bits: of the word, of which the first is `first_bit` of the map's words.

        Raises `InputError` for maps of more than MOST_BITS cells.
        """
        self.faults, self.first_bit, self.latency = faults, first_bit, latency
        found = faults.measured
        assert found is not None
        self.halves = 2 if faults.second_half else 1
        self.words = found.rows * (found.columns // faults.word_bits) // self.halves
        require(
            found.rows * found.columns <= MOST_BITS,
            f"a measured map in hardware must have at most {MOST_BITS} cells, not "
            f"{found.rows * found.columns}",
        )
        ports = {"half": In(1), "address": In(address_bits), "i": In(bits), "o": Out(bits)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, rows = len(self.i), list[int]()
        for half in range(self.halves):
            masks = self.faults.masks(half << HALF_BIT, self.words)
            wholes = ([int.from_bytes(row.tobytes(), "little") for row in one] for one in masks)
            rows += [
                self._slice(zero) | self._slice(one) << bits
                for zero, one in zip(*wholes, strict=True)
            ]
        store = memory.Memory(shape=2 * bits, depth=max(len(rows), 2), init=rows)
        m.submodules.map = store
        read = store.read_port()
        line = place(m, "late", Delay, bits=2 * bits, cycles=self.latency - 1)
        wrong = Signal(2 * bits)
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(
                Mux(self.half, self.address + self.words, self.address)
                if self.halves > 1
                else self.address
            ),
            line.i.eq(read.data),
            wrong.eq(line.o),
            self.o.eq(
                Cat(bit ^ Mux(bit, wrong[bits + at], wrong[at]) for at, bit in enumerate(self.i))
            ),
        ]
        return m

    def _slice(self, word: int) -> int:
        """The bits of a word that this layer stands before."""
        return word >> self.first_bit & ((1 << len(self.i)) - 1)


__all__ = ["MeasuredLayer"]
