"""One group column of a compressed scratchpad: rows, directory, and what reads them."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_shift import Unpack
from rtl.core.compressed_place import WordPlace
from rtl.core.compressed_writer import ColumnWriter, bank_bits, entry_bits, index_bits
from rtl.core.held_bank import HeldBank
from rtl.core.memory import layers_bits, layers_port
from rtl.core.sram import address_bits
from rtl.hierarchy import place
from rtl.memories.boveda.seen_banks import DIRECTORY, ROWS, Layers, seen, written_rows


class CompressedColumn(wiring.Component):
    """o[t + 4] = group of the word at read_unit[t], index[t + 1], or of the word behind it.

    With `straddles`, every lane takes either word, and directory and rows are read for both: units
    as rows lie in an even and an odd bank.  Latency: 4 cycles from read_unit (directory, place,
    rows, unpacking), 2 from values to the write.  Throughput: a read and a write a cycle.  Never
    stalls.
    A *piece* is lanes that always take the same word: the group, or with `straddles` a lane.  It
    has two banks of rows.  A bank is read if the piece is wanted, has bits in it (row r; row r + 1
    if p + w > B), and the bank's output does not hold the row (`HeldBank`); a directory's bank, if
    its entry is wanted and not held.

    Members
    -------
    values: lanes of B bits; 2 cycles later, of the same word: valid, index_in, ends, tile_ends (see
    `ColumnWriter`), unit: its number, half_in.  read_unit: a unit; read_half: of which half;
    entries: whether its entry is wanted, and with `straddles` that of the unit behind; a
    cycle later index: the word in the unit, odd: whether the unit's number is; 2 cycles later
    half: as read_half, wanted: a bit a piece, and later: which lanes take the word behind.
    o: the group, in the wanted pieces.  What happens in this cycle: row_reads: a bit a bank of rows
    that is read; row_writes: of each piece's even and odd bank, whether they are written;
    entry_reads, entry_writes: a bit a bank of the directory.  settings: of layers that the banks
    are seen through, if there are any; then rows that the tile has not written are not read, and
    are zeros.
    """

    values: Signal
    valid: Signal
    index_in: Signal
    ends: Signal
    tile_ends: Signal
    unit: Signal
    half_in: Signal
    read_unit: Signal
    read_half: Signal
    index: Signal
    odd: Signal
    half: Signal
    entries: Signal
    wanted: Signal
    later: Signal
    o: Signal
    row_reads: Signal
    row_writes: Signal
    entry_reads: Signal
    entry_writes: Signal
    settings: Signal

    def __init__(  # noqa: PLR0913
        self,
        *,
        shape: tuple[int, int, bool],
        unit_words: int,
        rows: int,
        units: int,
        straddles: bool,
        place_registers: int = 0,
        seen_by: tuple[int, Layers] = (0, ()),
    ) -> None:
        """place_registers: 1 within `WordPlace`; half, wanted, later and o are a cycle later then.
        seen_by: the column's number, which says where in rows and directories its bits are, and
        what these are seen through."""
        self.kept = {"registers": place_registers} if place_registers else {}
        self.number, self.layers = seen_by
        self.group, self.container_bits, self.signed = shape
        self.rows = rows
        self.units = units
        self.straddles = straddles
        self.pieces = self.group if straddles else 1
        self.sizes = {"container_bits": self.container_bits, "unit_words": unit_words, "rows": rows}
        unit_bits = address_bits(units)
        lanes = self.group * self.container_bits
        super().__init__(
            {
                "values": In(lanes),
                "valid": In(1),
                "index_in": In(index_bits(unit_words)),
                "ends": In(1),
                "tile_ends": In(1),
                "unit": In(unit_bits),
                "half_in": In(1),
                "read_unit": In(unit_bits),
                "read_half": In(1),
                "index": In(index_bits(unit_words)),
                "half": In(1),
                "entries": In(2 if straddles else 1),
                "wanted": In(self.pieces),
                **({"odd": In(1), "later": In(self.group)} if straddles else {}),
                "o": Out(lanes),
                "row_reads": Out(2 * self.pieces),
                "row_writes": Out(2),
                "entry_reads": Out(2 if straddles else 1),
                "entry_writes": Out(2 if straddles else 1),
                **layers_port(self.layers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        writer = place(
            m, "writer", ColumnWriter, group=self.group, signed=self.signed, **self.sizes
        )
        m.d.comb += [
            writer.values.eq(self.values),
            writer.valid.eq(self.valid),
            writer.index.eq(self.index_in),
            writer.ends.eq(self.ends),
            writer.tile_ends.eq(self.tile_ends),
        ]
        where = place(m, "place", WordPlace, **self.sizes, pair=self.straddles, **self.kept)
        self._directory(m, writer, where)
        m.d.comb += where.index.eq(self.index)
        words = [self._held(m, where, "")]
        if self.straddles:
            words.append(self._held(m, where, "next_"))
        spills = [p + w > self.container_bits for _, p, w in words]
        if self.layers:
            self.count = written_rows(m, self, writer)
        reads: list[Value] = []
        for piece in range(self.pieces):
            reads += self._piece(m, writer, words, spills, piece)
        m.d.comb += [self.row_reads.eq(Cat(reads)), self.row_writes.eq(writer.write)]
        return m

    def _directory(self, m: Module, writer: Any, where: Any) -> None:
        """Entries of units, in an even and an odd bank if two are read at once."""
        bits = entry_bits(**self.sizes)
        banks = 2 if self.straddles else 1
        depth, number = -(-self.units // banks), self.read_unit
        behind = (number + 1)[: len(number)]
        stores: list[Any] = []
        for bank in range(banks):
            store = place(m, f"directory_{bank}", HeldBank, bits=bits, depth=depth)
            mine = self.unit[0] == bank if banks == 2 else 1
            address = number if banks == 1 else (number, behind)[bank == 0][1:]
            behind_here = number[0] ^ bank if banks == 2 else 0
            m.d.comb += [
                store.write.eq(self._entry_written() & mine),
                store.write_half.eq(self.half_in),
                store.write_address.eq(self.unit[banks - 1 :]),
                store.write_data.eq(writer.entry),
                store.forget.eq(self.valid & self.tile_ends),
                store.wanted.eq(Mux(behind_here, self.entries[-1], self.entries[0])),
                store.read_half.eq(self.read_half),
                store.read_address.eq(address),
            ]
            stores.append(store)
        m.d.comb += [
            self.entry_reads.eq(Cat(store.reads for store in stores)),
            self.entry_writes.eq(Cat(store.write for store in stores)),
        ]
        reads = [
            self._seen(m, store, (f"directory_{bank}", DIRECTORY, row, self.number * bits))
            for bank, (store, row) in enumerate(zip(stores, self._units(stores), strict=True))
        ]
        if banks == 1:
            m.d.comb += where.entry.eq(reads[0])
            return
        m.d.comb += [
            where.entry.eq(Mux(self.odd, reads[1], reads[0])),
            where.following.eq(Mux(self.odd, reads[0], reads[1])),
        ]

    def _units(self, stores: list[Any]) -> list[Value]:
        """The unit whose entry each bank reads in this cycle."""
        if len(stores) == 1:
            return [stores[0].read_address]
        return [Cat(Const(bank, 1), store.read_address) for bank, store in enumerate(stores)]

    def _seen(self, m: Module, store: Any, at: tuple[str, str, Value, int]) -> Value:
        """What a bank shows, as its cells give it."""
        settings = self.settings if layers_bits(self.layers) else None
        return seen(m, self.layers, settings, store, at)

    def _entry_written(self) -> Value:
        """Whether a unit's entry is complete."""
        return self.valid & self.ends

    def _held(self, m: Module, where: Any, prefix: str) -> tuple[Signal, Signal, Signal]:
        """Row, pointer and width of a word, in registers."""
        found: list[Signal] = []
        for name in ("row", "p", "w"):
            value = getattr(where, prefix + name)
            found.append(Signal.like(value, name=f"{prefix}{name}_held", reset_less=True))
            m.d.sync += found[-1].eq(value)
        return found[0], found[1], found[2]

    def _piece(
        self,
        m: Module,
        writer: Any,
        words: list[tuple[Signal, Signal, Signal]],
        spills: list[Value],
        number: int,
    ) -> list[Value]:
        """Its two banks of rows, and its unpacking; returns which banks are read."""
        (row, p, w), spill = words[0], spills[0]
        if self.straddles:
            takes = self.later[number]
            row, p, w = (Mux(takes, b, a) for a, b in zip(*words, strict=True))
            spill = Mux(takes, spills[1], spills[0])
        rows = self._rows(m, writer, (row, spill), number)
        shown = [self._shown(m, bank, number, odd) for odd, bank in enumerate(rows)]
        self._unpack(m, shown, (row, p, w), number)
        return [store.reads for store, _ in rows]

    def _rows(self, m: Module, writer: Any, at: tuple[Value, Value], number: int) -> list[Any]:
        """The even and the odd bank of a piece, read at a row and, if it spills, at the next."""
        row, spill = at
        size = self.group // self.pieces * self.container_bits
        bank = bank_bits(self.rows)
        rows: list[Any] = []
        for odd in range(2):
            store = place(m, f"rows_{number}_{odd}", HeldBank, bits=size, depth=-(-self.rows // 2))
            data = writer.data.word_select(odd, self.group * self.container_bits)
            address = (row + (1 - odd))[1:]
            wanted = self.wanted[number] & ((row[0] == odd) | spill)
            m.d.comb += [
                store.write.eq(writer.write[odd]),
                store.write_half.eq(self.half_in),
                store.write_address.eq(writer.address.word_select(odd, bank)),
                store.write_data.eq(data.word_select(number, size)),
                store.forget.eq(self.valid & self.tile_ends),
                store.wanted.eq(wanted & self._there(address, odd) if self.layers else wanted),
                store.read_half.eq(self.half),
                store.read_address.eq(address),
            ]
            rows.append((store, address))
        return rows

    def _there(self, address: Value, odd: int) -> Value:
        """Whether the tile has written that row of a bank."""
        return Cat(Const(odd, 1), address) < self.count

    def _shown(self, m: Module, bank: tuple[Any, Value], number: int, odd: int) -> Value:
        """What a bank of rows shows; zeros, of a row that the tile has not written."""
        store, address = bank
        if not self.layers:
            return store.read_data
        lane = self.number * self.group + number * self.group // self.pieces
        row = Cat(Const(odd, 1), store.read_address)
        at = (f"rows_{number}_{odd}", ROWS, row, lane * self.container_bits)
        there = Signal(name=f"there_{number}_{odd}", reset_less=True)
        m.d.sync += there.eq(self._there(address, odd))
        return Mux(there, self._seen(m, store, at), 0)

    def _unpack(
        self, m: Module, rows: list[Value], word: tuple[Value, Value, Value], number: int
    ) -> None:
        """The values of a piece, from what its banks show a cycle later."""
        row, p, w = word
        lanes = self.group // self.pieces
        unpack = place(
            m,
            f"unpack_{number}",
            Unpack,
            group=lanes,
            container_bits=self.container_bits,
            signed=self.signed,
        )
        starts_odd = Signal(name=f"odd_{number}", reset_less=True)
        pointer = Signal.like(unpack.p, name=f"pointer_{number}", reset_less=True)
        width = Signal.like(unpack.w, name=f"width_{number}", reset_less=True)
        m.d.sync += [
            starts_odd.eq(row[0]),
            pointer.eq(p),
            width.eq(w),
            self.o.word_select(number, lanes * self.container_bits).eq(unpack.values),
        ]
        m.d.comb += [
            unpack.current.eq(Mux(starts_odd, rows[1], rows[0])),
            unpack.following.eq(Mux(starts_odd, rows[0], rows[1])),
            unpack.p.eq(pointer),
            unpack.w.eq(width),
        ]
