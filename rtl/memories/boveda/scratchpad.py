"""A scratchpad of compressed words: the twin of `archsim.memories.boveda.scratchpad.Boveda`."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memories.boveda.scratchpad import Boveda
from rtl.core.delay import Delay
from rtl.core.memory import layers_bits, layers_port
from rtl.core.population_count import PopulationCount
from rtl.core.sram import address_bits
from rtl.hierarchy import place
from rtl.memories.boveda.column import CompressedColumn
from rtl.memories.boveda.seen_banks import Layers

COUNTED = ("row_reads", "row_writes", "entry_reads", "entry_writes")
"""What a scratchpad counts, and a core adds up."""


def counts(memory: Boveda, lanes: int, *, straddles: bool) -> dict[str, Any]:
    """The ports that count, of a scratchpad and of what is around it."""
    columns, banks = lanes // memory.group, 2 if straddles else 1
    rows, entries = 2 * (lanes if straddles else columns), banks * columns
    most = (rows, rows, entries, entries)
    return {name: Out(range(one + 1)) for name, one in zip(COUNTED, most, strict=True)}


class CompressedScratchpad(wiring.Component):
    """o[t + 4] = half[read_half[t]][read_address[t]], or the word behind in the lanes of read_next.

    So in the lanes that are read; the others are anything.
    Two halves, each of `memory.rows` rows and a directory of `memory.depth` words.  A tile's words
    come in order, from 0 on; it must fit (`archsim.tiled.operand_fit`).  A word written in cycle
    t can be read with an address of cycle t + 3 on.  Throughput: a read and a write a cycle.
    Never stalls.  Contract: docs/contracts/compressed-memory.md.

    Members
    -------
    write, write_half, write_address, write_data: the word; write_last: it is its tile's last;
    read: a word is read, with `straddles` a bit a lane; read_half, read_address: of the word;
    read_next (with `straddles`): a bit a lane; read_data: lanes of `bits`.  Counts, each some
    cycles behind (`PopulationCount`): row_reads, row_writes: banks of rows read and written;
    entry_reads, entry_writes: banks of directories (`CompressedColumn`).  settings: of the layers,
    if there are any.
    """

    write: Signal
    write_half: Signal
    write_address: Signal
    write_last: Signal
    write_data: Signal
    read: Signal
    read_half: Signal
    read_address: Signal
    read_next: Signal
    read_data: Signal
    row_reads: Signal
    row_writes: Signal
    entry_reads: Signal
    entry_writes: Signal
    settings: Signal

    def __init__(
        self, *, memory: Boveda, lanes: int, bits: int, signed: bool, straddles: bool,
        layers: Layers = (),
    ) -> None:  # fmt: skip
        """layers: what rows and directories are seen through (`rtl.core.memory.CellLayer`)."""
        self.memory, self.layers = memory, layers
        self.lanes = lanes
        self.bits = bits
        self.signed = signed
        self.straddles = straddles
        word = lanes * bits
        self.rows, self.units = memory.rows(word), memory.units(word)
        self.index_bits = memory.unit_words.bit_length() - 1
        address = self.index_bits + address_bits(self.units)
        super().__init__(
            {
                "write": In(1),
                "write_half": In(1),
                "write_address": In(address),
                "write_last": In(1),
                "write_data": In(word),
                "read": In(lanes if straddles else 1),
                "read_half": In(1),
                "read_address": In(address),
                **({"read_next": In(lanes)} if straddles else {}),
                "read_data": Out(word),
                **counts(memory, lanes, straddles=straddles),
                **layers_port(layers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        index_bits = self.index_bits
        write = Cat(self.write, self.write_half, self.write_last, self.write_address)
        written = self._late(m, "written", write, self.memory.write_latency_cycles)
        index_in, unit = written[3 : 3 + index_bits], written[3 + index_bits :]
        read = Cat(self.read_half, self.read_address)
        located = self._late(m, "located", read, 1)
        kept = self.memory.place_registers
        half = self._late(m, "half", self.read_half, 2 + kept)
        wanted = self._late(m, "wanted", self.read, 2 + kept)
        later = self._late(m, "later", self.read_next, 2 + kept) if self.straddles else None
        entries = self._entries()
        columns = self._columns(m)
        for number, column in enumerate(columns):
            m.d.comb += [
                column.valid.eq(written[0]),
                column.half_in.eq(written[1]),
                column.tile_ends.eq(written[2]),
                column.ends.eq(written[2] | (index_in == self.memory.unit_words - 1)),
                column.index_in.eq(index_in),
                column.unit.eq(unit),
                column.read_unit.eq(self.read_address[index_bits:]),
                column.read_half.eq(self.read_half),
                column.entries.eq(entries),
                column.index.eq(located[1 : 1 + index_bits]),
                column.half.eq(half),
                column.wanted.eq(
                    wanted if later is None else wanted.word_select(number, self.memory.group)
                ),
            ]
            if later is not None:
                m.d.comb += [
                    column.odd.eq(located[1 + index_bits]),
                    column.later.eq(later.word_select(number, self.memory.group)),
                ]
        for name in COUNTED:
            counted = self._count(m, name, [getattr(one, name) for one in columns])
            m.d.comb += getattr(self, name).eq(counted)
        return m

    def _count(self, m: Module, name: str, events: list[Value]) -> Value:
        """How many events there were, so many cycles ago; every piece's banks of rows are written
        alike."""
        bits = Cat(events)
        count = place(m, f"{name}_count", PopulationCount, bits=len(bits))
        m.d.comb += count.i.eq(bits)
        return count.o * (self.memory.group if self.straddles and name == "row_writes" else 1)

    def _columns(self, m: Module) -> list[Any]:
        """A column for every group of the lanes."""
        group, size = self.memory.group, self.memory.group * self.bits
        columns: list[Any] = []
        values: Value = self.write_data
        if self.memory.place_registers:  # the rows of the half before are read a cycle later
            values = self._late(m, "values", values, self.memory.place_registers)
        for number in range(self.lanes // group):
            seen = {"seen_by": (number, self.layers)} if self.layers else {}
            column = place(
                m,
                f"column_{number}",
                CompressedColumn,
                shape=(group, self.bits, self.signed),
                unit_words=self.memory.unit_words,
                rows=self.rows,
                units=self.units,
                straddles=self.straddles,
                **({"place_registers": 1} if self.memory.place_registers else {}),
                **seen,
            )
            if layers_bits(self.layers):
                m.d.comb += column.settings.eq(self.settings)
            m.d.comb += [
                column.values.eq(values.word_select(number, size)),
                self.read_data.word_select(number, size).eq(column.o),
            ]
            columns.append(column)
        return columns

    def _entries(self) -> Value:
        """Whether the entry of the word's unit is wanted, and, of two, that of the next unit."""
        if not self.straddles:
            return self.read
        last = self.read_address[: self.index_bits] == self.memory.unit_words - 1
        behind = (self.read & self.read_next).any()
        return Cat((self.read & ~self.read_next).any() | (behind & ~last), behind & last)

    def _late(self, m: Module, name: str, value: Value, cycles: int) -> Value:
        """The value of so many cycles ago."""
        line = place(m, name, Delay, bits=len(value), cycles=cycles)
        m.d.comb += line.i.eq(value)
        return line.o
