"""The two memories of a PE's activations where they compress values: the twin of
`archsim.memories.boveda_stream.stream.BovedaStream`."""

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.stream_actions import ROW_ACTIONS
from archsim.memories.boveda_stream.stream import BovedaStream
from rtl.core.delay import Delay
from rtl.core.memory import Asked, CellLayer, layers_bits, layers_port, seen_through
from rtl.core.scnn_cells import number_bits
from rtl.core.scnn_layouts import vector_layout
from rtl.core.sram import Sram, address_bits
from rtl.core.stream_packer import StreamPacker
from rtl.core.stream_unpacker import StreamUnpacker
from rtl.hierarchy import place

WRITE_CYCLES = 2
"""From a vector to its rows: magnitudes, width."""


def stream_signature(design: Scnn) -> wiring.Signature:
    """The port of either memory.

    write, write_address, write_data: a vector, from address 0 on; append: with write, its values
    are those of a vector more, not of one that is written again; count: vectors of the content;
    step: to the next vector, behind the last one the first; read_data: the vector it stands at.
    """
    address = address_bits(max(design.iaram_entries, design.oaram_entries) + 1)
    bits = vector_layout(design, design.ifmap_lanes).size
    return wiring.Signature(
        {
            **{name: In(1) for name in ("write", "append", "step")},
            "write_address": In(address),
            "write_data": In(bits),
            "count": In(address),
            "read_data": Out(bits),
        }
    )


def row_event_fields(columns: int) -> dict[str, int]:
    """Rows that are written, and that are used up, in a cycle, of which memory: bits of each."""
    return dict.fromkeys(ROW_ACTIONS, (2 * columns).bit_length())


class StreamMemories(wiring.Component):
    """ifmap is the port of the IARAM and ofmap that of the OARAM; with `exchanged` it is the
    reverse.  Values lie in rows, by columns; indices and flags, and widths, in entries beside.

    One packer serves both, and one unpacker: a layer's ifmap is written before its ofmap, and read
    before that leaves.  Latency: what is written in a cycle t, the content's last, is settled in
    t + 3, and the first vector is read from t + 5 on, of the memory that was written.
    Throughput: a vector written and a vector read a cycle.  Never stalls.

    `bounded`, where an ofmap may be larger than its memory: vectors without an entry take no bit,
    what is read of them is a vector of nothing that ends its list, and rows that a content has not
    written are zeros; an ofmap is then read once.

    Members
    -------
    start: a layer begins, its ifmap is written and read; go: a group begins, from now on the ofmap
    is written; flush: the content has been written, 3 cycles ago; events: rows, to be counted;
    number: of the PE, and settings: of its cells, where these are seen through `layers`.
    """

    exchanged: Signal
    start: Signal
    go: Signal
    flush: Signal
    number: Signal
    settings: Signal
    ifmap: Any
    ofmap: Any
    events: data.View

    def __init__(
        self,
        *,
        design: Scnn,
        memory: BovedaStream,
        layers: tuple[CellLayer, ...] = (),
        bounded: bool = False,
    ) -> None:
        """layers: that the cells of its SRAMs ("rows", "directory") are seen through, the lowest
        ones of settings first."""
        self.design, self.layers, self.bounded = design, layers, bounded
        self.group, self.bits = memory.group, design.operand_bits
        self.columns = design.ifmap_lanes // memory.group
        self.sizes = {
            "iaram": (design.iaram_vectors, design.iaram_entries),
            "oaram": (design.oaram_vectors, design.oaram_entries),
        }
        self.rows = max(rows for rows, _ in self.sizes.values())
        self.row_bits = design.stream_use("iaram").row_bits
        self.marks = design.ifmap_lanes * design.index_bits + 1
        port = stream_signature(design)
        super().__init__(
            {
                **{name: In(1) for name in ("exchanged", "start", "go", "flush")},
                **({"number": In(number_bits(design))} if layers else {}),
                **layers_port(layers),
                "ifmap": Out(port),
                "ofmap": Out(port),
                "events": Out(data.StructLayout(row_event_fields(self.columns))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.storing, self.leaving = Signal(), Signal()
        self.written: list[dict[str, Signal]] = []
        with m.If(self.start):
            m.d.sync += [self.storing.eq(0), self.leaving.eq(0)]
        with m.Elif(self.go):
            m.d.sync += self.storing.eq(1)
        with m.Elif(self.flush):
            m.d.sync += self.leaving.eq(self.storing)
        self.stores = {name: self._stores(m, name) for name in self.sizes}
        written = self._pack(m)
        used = self._unpack(m)
        for name, other, count in (("write", self.storing, written), ("read", self.leaving, used)):
            m.d.comb += [
                self.events[f"iaram_row_{name}"].eq(Mux(other, 0, count)),
                self.events[f"oaram_row_{name}"].eq(Mux(other, count, 0)),
            ]
        return m

    def _stores(self, m: Module, name: str) -> dict[str, Any]:
        """SRAMs of a memory: entries, and of every column its even and its odd rows."""
        rows, entries = self.sizes[name]
        fields = {"marks": self.marks, "widths": self.columns * (self.bits.bit_length() - 1)}
        found: dict[str, Any] = {
            kind: place(m, f"{name}_{kind}", Sram, bits=bits, depth=entries)
            for kind, bits in fields.items()
        }
        for column in range(self.columns):
            for bank in range(2):
                kind = f"rows_{column}_{bank}"
                found[kind] = place(
                    m, f"{name}_{kind}", Sram, bits=self.group * self.bits, depth=-(-rows // 2),
                    transparent=True,
                )  # fmt: skip
        return found

    def _to(self, m: Module, kind: str, write: Value, at: tuple[Value, Value]) -> None:
        """Write to the memory that is being written: address, or row, and data."""
        oaram, rows = self.storing ^ self.exchanged, kind.startswith("rows")
        for name, (most_rows, entries) in self.sizes.items():
            store, mine = self.stores[name][kind], oaram if name == "oaram" else ~oaram
            there = 1 if rows and not self.bounded else at[0] < (most_rows if rows else entries)
            m.d.comb += [
                store.write.eq(write & mine & there),
                store.write_address.eq(at[0][1:] if rows else at[0]),
                store.write_data.eq(at[1]),
            ]

    def _most_rows(self, oaram: Value) -> Value:
        """Of a memory."""
        return Mux(oaram, self.sizes["oaram"][0], self.sizes["iaram"][0])

    def _most_entries(self, oaram: Value) -> Value:
        """Of a memory."""
        return Mux(oaram, self.sizes["oaram"][1], self.sizes["iaram"][1])

    def _from(self, m: Module, kind: str, address: Value) -> Value:
        """Read the memory that is being read."""
        oaram = self.leaving ^ self.exchanged
        for stores in self.stores.values():
            m.d.comb += stores[kind].read_address.eq(address)
        one, other = (stores[kind].read_data for stores in self.stores.values())
        return Mux(oaram, other, one)

    def _seen(self, m: Module, sram: str, shown: Value, at: tuple[str, Value, int]) -> Value:
        """What is read, through the layers of its SRAM.

        at: a name; the row that is asked for in this cycle; the first of its bits in that row.
        """
        name, row, first_bit = at
        leaves = Mux(self.start | self.go, 0, Mux(self.flush, self.storing, self.leaving))
        address = Signal(self.row_bits, name=f"{name}_address")
        m.d.comb += address.eq(row)
        settings = self.settings if layers_bits(self.layers) else None
        asked = Asked(name, sram, leaves ^ self.exchanged, Cat(address, self.number), first_bit)
        return seen_through(m, self.layers, settings, shown, asked)

    def _pack(self, m: Module) -> Value:
        """Entries as they come, rows and widths behind; returns how many rows are written."""
        port = {
            name: Mux(self.storing, getattr(self.ofmap, name), getattr(self.ifmap, name))
            for name in ("write", "append", "write_address", "write_data")
        }
        word = data.View(
            vector_layout(self.design, self.design.ifmap_lanes), self._named(m, port["write_data"])
        )
        lanes = range(self.design.ifmap_lanes)
        marks = Cat(*(word.lanes[lane].index for lane in lanes), word.last)
        self._to(m, "marks", port["write"], (port["write_address"], marks))
        late = Cat(port["write"] & port["append"], port["write_address"])
        line = place(m, "written_delay", Delay, bits=len(late), cycles=WRITE_CYCLES)
        m.d.comb += line.i.eq(late)
        codes: list[Value] = []
        written: list[Value] = []
        oaram = self.storing ^ self.exchanged
        append: Value = line.o[0]
        if self.bounded:
            append = append & (line.o[1:] < self._most_entries(oaram))
        for column in range(self.columns):
            packer = place(m, f"pack_{column}", StreamPacker, **self._shape())
            own = lanes[column * self.group : (column + 1) * self.group]
            m.d.comb += [
                packer.values.eq(Cat(word.lanes[lane].value for lane in own)),
                packer.append.eq(append),
                packer.flush.eq(self.flush),
            ]
            for bank in range(2):
                mine = packer.write & (packer.row[0] == bank)
                self._to(m, f"rows_{column}_{bank}", mine, (packer.row, packer.data))
            codes.append(packer.code)
            written.append(self._counted(m, packer) if self.bounded else packer.write)
        self._to(m, "widths", line.o[0], (line.o[1:], Cat(codes)))
        return sum(written, C(0, 1))

    def _counted(self, m: Module, packer: Any) -> Value:
        """Whether a row that is written is there; keeps how many there are of each content."""
        oaram, column = self.storing ^ self.exchanged, len(self.written)
        there = packer.write & (packer.row < self._most_rows(oaram))
        counts = {
            name: Signal(range(self.rows + 1), name=f"{name}_written_{column}")
            for name in self.sizes
        }
        for name, (rows, _) in self.sizes.items():
            with m.If(self.flush & (oaram == (name == "oaram"))):
                m.d.sync += counts[name].eq(Mux(packer.row < rows, packer.row + there, rows))
        self.written.append(counts)
        return there

    def _unpack(self, m: Module) -> Value:
        """The walk; returns how many rows a step uses up."""
        count = Signal.like(self.ifmap.count, name="content")
        reading, next_reading = (Signal.like(count, name=n) for n in ("reading", "next_reading"))
        fresh, step, advance, last = (
            Signal(name=name) for name in ("fresh", "step", "advance", "last")
        )
        m.d.comb += [
            step.eq(Mux(self.leaving, self.ofmap.step, self.ifmap.step)),
            advance.eq(fresh | step),
            *self._next((count, reading, next_reading), advance, last),
        ]
        m.d.sync += [reading.eq(next_reading), fresh.eq(self.flush)]
        with m.If(self.flush):
            m.d.sync += count.eq(Mux(self.storing, self.ofmap.count, self.ifmap.count))
        marks = self._from(m, "marks", next_reading)
        widths = self._from(m, "widths", next_reading)
        if self.layers:
            indices = self._seen(m, "directory", marks[:-1], ("indices", next_reading, len(widths)))
            marks = Cat(indices, marks[-1])
            widths = self._seen(m, "directory", widths, ("widths", next_reading, 0))
        if self.bounded:
            marks = Mux(self.beyond, 1 << self.marks - 1, marks)
            widths = Mux(self.beyond, 0, widths)
        # the walk's end counts the first vector, unless it stays behind the last
        counts_rows = step | (fresh & self.stays) if self.bounded else step
        used: list[Value] = []
        values: list[Value] = []
        for column in range(self.columns):
            unpacker = place(m, f"unpack_{column}", StreamUnpacker, **self._shape())
            even = self._from(m, f"rows_{column}_0", unpacker.even_address)
            odd = self._from(m, f"rows_{column}_1", unpacker.odd_address)
            if self.layers:
                first_bit = column * self.group * self.bits
                rows = Cat(C(0, 1), unpacker.even_address), Cat(C(1, 1), unpacker.odd_address)
                even, odd = (
                    self._seen(m, "rows", bank, (f"rows_{column}_{name}", row, first_bit))
                    for name, bank, row in zip(("even", "odd"), (even, odd), rows, strict=True)
                )
            if self.bounded:
                counts = self.written[column]
                oaram = self.leaving ^ self.exchanged
                m.d.comb += unpacker.written.eq(Mux(oaram, counts["oaram"], counts["iaram"]))
            m.d.comb += [
                unpacker.code.eq(widths.word_select(column, self.bits.bit_length() - 1)),
                unpacker.even.eq(even),
                unpacker.odd.eq(odd),
                unpacker.advance.eq(advance),
                unpacker.last.eq(last),
                unpacker.rewind.eq(self.flush),
            ]
            values.append(unpacker.values)
            used.append(Mux(counts_rows, unpacker.gives_up, 0))
        self._head(m, advance, (Cat(values), marks))
        return sum(used, C(0, 1))

    def _next(self, of: tuple[Signal, Signal, Signal], advance: Value, last: Signal) -> list[Any]:
        """The vector that the walk comes to, and whether this one is the content's last.

        of: vectors of the content; the vector that is read; the next one.
        """
        count, reading, next_reading = of
        if not self.bounded:
            return [
                last.eq(reading + 1 == count),
                next_reading.eq(Mux(self.flush | (advance & last), 0, reading + advance)),
            ]
        limit = Signal.like(count, name="limit")
        self.beyond, self.stays = Signal(name="beyond"), Signal(name="stays")
        behind_last = Mux(self.stays, limit, 0)
        after = Mux(advance & last, behind_last, reading + (advance & ~self.beyond))
        return [
            self.stays.eq(self.leaving & (count >= limit)),
            limit.eq(self._most_entries(self.leaving ^ self.exchanged)),
            self.beyond.eq(self.leaving & (reading == limit)),
            last.eq(reading + 1 == Mux(count > limit, limit, count)),
            next_reading.eq(Mux(self.flush, 0, after)),
        ]

    def _head(self, m: Module, advance: Value, found: tuple[Value, Value]) -> None:
        """The vector that the walk stands at, in a register."""
        values, marks = (
            Signal(len(value), name=name, reset_less=True)
            for value, name in zip(found, ("head_values", "head_marks"), strict=True)
        )
        with m.If(advance):
            m.d.sync += [values.eq(found[0]), marks.eq(found[1])]
        index = self.design.index_bits
        word = Cat(
            *(
                Cat(values.word_select(lane, self.bits), marks.word_select(lane, index))
                for lane in range(self.design.ifmap_lanes)
            ),
            marks[-1],
        )
        m.d.comb += [self.ifmap.read_data.eq(word), self.ofmap.read_data.eq(word)]

    def _shape(self) -> dict[str, int]:
        more = {"bounded": True} if self.bounded else {}
        return {"group": self.group, "container_bits": self.bits, "rows": self.rows, **more}

    def _named(self, m: Module, value: Value) -> Signal:
        found = Signal(len(value), name="vector")
        m.d.comb += found.eq(value)
        return found
