"""What is proved of Boveda's compressor before its decompressor: values, order, rows, progress."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from rtl.core.boveda_compressor import Compressor, group_layout
from rtl.core.boveda_decompressor import Decompressor
from rtl.core.boveda_shift import Expand
from rtl.core.boveda_width import GroupWidth, Magnitudes
from rtl.formal import claim, named
from rtl.memories.boveda.pack_proof import Format


class RoundTripProof(wiring.Component):
    """A compressor before a decompressor, with arbitrary stalls on every port.

    `queue` places for widths lie between them.  A shadow of every register that holds a group keeps
    what went in: values, unit end, number, and the codes of w bits that the format makes of them.

    Shown: the n-th group out is the n-th group in; all rows under way are, bit for bit, those that
    the widths under way call for, padding included, and no more; rows are flagged right; and, with
    `queue` ≥ B and no groups of width 0, something moves unless a port stalls (the newest group
    ends its unit, or another comes).
    """

    def __init__(self, form: Format, *, queue: int | None = None) -> None:
        self.form = form
        self.queue = form.container_bits if queue is None else queue
        self.row_bits = form.group * form.container_bits
        self.sizes: dict[str, Any] = {"group": form.group, "container_bits": form.container_bits}
        self.number_bits = (self.queue + 5).bit_length()
        self.shadow_layout = data.StructLayout(
            {
                "values": self.row_bits,
                "last": 1,
                "number": self.number_bits,
                "codes": self.row_bits,
                "w": form.container_bits.bit_length(),
            }
        )
        layout = group_layout(form.group, form.container_bits)
        free = {name: In(1) for name in ("offers", "accepts", "row_goes", "width_goes")}
        super().__init__({"group": In(layout), **free})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.compressor = self.compressor = Compressor(**vars(self.form))
        m.submodules.decompressor = self.decompressor = Decompressor(**vars(self.form))
        self._connect(m)
        self._shadow(m)
        self._held_groups(m)
        self._order(m)
        self._rows(m)
        if not self.form.zero_width and self.queue >= self.form.container_bits:
            self._progress(m)
        return m

    def _connect(self, m: Module) -> None:
        """Ports, stalls, and the queue of widths."""
        ports: Any = self
        c, d = self.compressor, self.decompressor
        bits = len(Value.cast(c.widths.payload))
        self.waiting = [Signal(bits, name=f"waiting_{n}") for n in range(self.queue)]
        self.count = Signal(range(self.queue + 1))
        self.pushed, self.popped = Signal(), Signal()
        m.d.comb += [
            c.i.payload.eq(ports.group),
            c.i.valid.eq(ports.offers),
            d.row.payload.eq(c.row.payload.columns),
            d.row.valid.eq(c.row.valid & ports.row_goes),
            c.row.ready.eq(d.row.ready & ports.row_goes),
            c.widths.ready.eq((self.count < self.queue) & ports.width_goes),
            d.widths.valid.eq(self.count > 0),
            d.widths.payload.eq(self.waiting[0]),
            d.o.ready.eq(ports.accepts),
            self.pushed.eq(c.widths.valid & c.widths.ready),
            self.popped.eq(d.widths.valid & d.widths.ready),
            claim(m, "queue_fits", self.count <= self.queue),
        ]
        m.d.sync += self.count.eq(self.count + self.pushed - self.popped)
        self._queued(m, self.waiting, c.widths.payload)

    def _queued(self, m: Module, places: list[Any], word: Any) -> None:
        """A list that loses its first word when widths are popped, and gains one when pushed."""
        for number, place in enumerate(places):
            with m.If(self.pushed & (self.count - self.popped == number)):
                m.d.sync += place.eq(word)
            with m.Elif(self.popped):
                if number + 1 < len(places):
                    m.d.sync += place.eq(places[number + 1])

    def _shadow(self, m: Module) -> None:
        """What each register should hold, moved as the units say that they move."""
        c, d = self.compressor, self.decompressor
        names = ("measured", "coded", "named", "shifted", "out")
        self.of = {name: Signal(self.shadow_layout, name=f"of_{name}") for name in names}
        self.of_waiting = [
            Signal(self.shadow_layout, name=f"of_waiting_{n}") for n in range(self.queue)
        ]
        self.came, self.went = (Signal(self.number_bits, name=name) for name in ("came", "went"))
        of, group = self.of, c.i.payload
        coded = self._coded(m, of["measured"])
        with m.If(c.i.valid & c.i.ready):
            m.d.sync += [
                of["measured"].values.eq(group.values),
                of["measured"].last.eq(group.last),
                of["measured"].number.eq(self.came),
                self.came.eq(self.came + 1),
            ]
        with m.If(c.measured & (~c.coded | c.merge)):
            m.d.sync += of["coded"].eq(coded)
        with m.If(c.merge):
            m.d.sync += of["named"].eq(of["coded"])
        self._queued(m, self.of_waiting, of["named"])
        with m.If(d.read):
            m.d.sync += of["shifted"].eq(self.of_waiting[0])
        with m.If(d.shifted & d.code_free):
            m.d.sync += of["out"].eq(of["shifted"])
        with m.If(d.o.valid & d.o.ready):
            m.d.sync += self.went.eq(self.went + 1)

    def _coded(self, m: Module, shadow: Any) -> Value:
        """With the codes of its values, through parts which `PackProof` is of."""
        signs = {**self.sizes, "signed": self.form.signed}
        m.submodules.magnitudes = self.magnitudes = Magnitudes(**signs)
        m.submodules.width = width = GroupWidth(**signs, zero_width=self.form.zero_width)
        m.d.comb += [
            self.magnitudes.values.eq(shadow.values),
            width.magnitudes.eq(self.magnitudes.magnitudes),
            width.ones.eq(self.magnitudes.ones),
        ]
        return Cat(shadow.values, shadow.last, shadow.number, width.codes, width.w)

    def _held_groups(self, m: Module) -> None:
        """Every register holds what its shadow says, and the codes stand for the values."""
        c, d, of = self.compressor, self.decompressor, self.of
        out: Any = d.o.payload
        named: Any = Value.cast(c.widths.payload)
        low = self._lanes(d.w)
        holds: dict[str, tuple[Value, Any]] = {
            "coded": (c.coded, Cat(c.codes, c.w, c.coded_last) == _code(of["coded"])),
            "named": (c.widths.valid, named == self._field(of["named"])),
            "shifted": (
                d.shifted,
                Cat(d.codes & low, d.w, d.last) == _code(of["shifted"]),
            ),
            "out": (d.o.valid, Cat(out.values, out.last) == _group(of["out"])),
        }
        for number, (field, shadow) in enumerate(zip(self.waiting, self.of_waiting, strict=True)):
            there = self.count > number
            holds[f"waiting_{number}"] = (there, field == self._field(shadow))
            of = {**of, f"waiting_{number}": shadow}
        for name, (there, equal) in holds.items():
            m.d.comb += claim(m, name, ~there | equal)
            m.d.comb += claim(m, f"codes_{name}", ~there | self._stands(m, name, of[name]))
        measured = Cat(c.magnitudes, c.ones, c.measured_last)
        wanted = Cat(self.magnitudes.magnitudes, self.magnitudes.ones, of["measured"].last)
        m.d.comb += claim(m, "measured", ~c.measured | (measured == wanted))

    def _stands(self, m: Module, name: str, shadow: Any) -> Value:
        """The shadow's codes are of w bits, 0 to B, and mean its values."""
        form = self.form
        expand = Expand(**self.sizes, signed=form.signed)
        m.submodules[f"expand_{name}"] = expand
        m.d.comb += [expand.codes.eq(shadow.codes), expand.w.eq(shadow.w)]
        least = 0 if form.zero_width else 1 + form.signed
        within = (shadow.w >= least) & (shadow.w <= form.container_bits)
        if form.zero_width:
            within &= shadow.w != 1
        narrow = (shadow.codes & ~self._lanes(shadow.w)) == 0
        return within & narrow & (expand.values == shadow.values)

    def _field(self, shadow: Any) -> Value:
        """The word that is offered at `widths`."""
        field = (shadow.w - 1)[: len(shadow.w) - 1]
        return Cat(Mux(shadow.w == 0, 0, field)[: len(field)], shadow.last)

    def _lanes(self, w: Value) -> Value:
        """The low w bits of every lane."""
        own = ((1 << w) - 1)[: self.form.container_bits]
        return Cat(own for _ in range(self.form.group))

    def _order(self, m: Module) -> None:
        """The groups under way are numbered without a gap, from the oldest to the newest."""
        c, d, of = self.compressor, self.decompressor, self.of
        next_number: Value = self.went
        line = [
            ("out", d.o.valid, of["out"]),
            ("shifted", d.shifted, of["shifted"]),
            *((f"waiting_{n}", self.count > n, of) for n, of in enumerate(self.of_waiting)),
            ("named", c.widths.valid, of["named"]),
            ("coded", c.coded, of["coded"]),
            ("measured", c.measured, of["measured"]),
        ]
        for name, there, shadow in line:
            m.d.comb += claim(m, f"number_{name}", ~there | (shadow.number == next_number))
            after = Signal(self.number_bits, name=f"after_{name}")
            m.d.comb += after.eq(next_number + there)
            next_number = after
        m.d.comb += claim(m, "all_numbered", self.came == next_number)

    def _rows(self, m: Module) -> None:
        """The rows under way are those of the groups whose widths are under way."""
        c = self.compressor
        bits = self.form.container_bits
        expected: list[Value] = [Const(0, self.row_bits)] * 5
        flags: list[Value] = [Const(0, 1)] * 5
        row: Value = Const(0, 3)
        p: Value = self.decompressor.p
        line = [(self.count > n, shadow) for n, shadow in enumerate(self.of_waiting)]
        for number, (there, shadow) in enumerate([*line, (c.widths.valid, self.of["named"])]):
            codes, w, last = (
                Mux(there, shadow.codes, 0),
                Mux(there, shadow.w, 0),
                there & shadow.last,
            )
            end = Signal(range(2 * bits), name=f"end_{number}")
            m.d.comb += end.eq(p + w)
            two = end[-1] & end[:-1].any()
            ends = end[-1] | (last & end.any())
            columns = [codes.word_select(lane, bits) << p for lane in range(self.form.group)]
            low = Cat(column[:bits] for column in columns)
            high = Cat((column >> bits)[:bits] for column in columns)
            expected = [
                named(
                    m,
                    f"expected_{number}_{n}",
                    old | Mux(row == n, low, 0) | Mux(row + 1 == n, high, 0),
                )
                for n, old in enumerate(expected)
            ]
            flags = [
                named(m, f"flag_{number}_{n}", old | (last & ends & (row + two == n)))
                for n, old in enumerate(flags)
            ]
            row = named(m, f"row_after_{number}", (row + ends + (last & two))[: len(row)])
            m.d.comb += claim(m, f"few_rows_{number}", row <= 4)
            p = named(m, f"p_after_{number}", Mux(last, 0, end[:-1]))
        self._held_rows(m, row, p, expected, flags)

    def _held_rows(
        self, m: Module, row: Value, p: Value, expected: list[Value], flags: list[Value]
    ) -> None:
        """Expected rows against those of decompressor, row register and compressor."""
        c, d = self.compressor, self.decompressor
        held, made = Signal(2), Signal(3)
        rows, ends = Array(expected), Array(flags)
        m.d.comb += [
            held.eq(d.held[0] + d.held[1]),
            made.eq(held + c.row.valid),
            claim(m, "rows_in_order", d.held[0] | ~d.held[1]),
            claim(m, "pointer_in_row", d.held[0] | (d.p == 0)),
            claim(m, "row_0", ~d.held[0] | ((d.rows[0] & ~self._lanes(d.p)) == expected[0])),
            claim(m, "row_1", ~d.held[1] | (d.rows[1] == expected[1])),
            claim(m, "row", ~c.row.valid | (c.row.payload.columns == rows[held])),
            claim(m, "row_last", ~c.row.valid | (c.row.payload.last == ends[held])),
            claim(m, "current", c.current == rows[made]),
            claim(m, "ending", ~c.ending | (ends[made] & (c.p == 0))),
            claim(m, "row_count", row == made + c.ending),
            claim(m, "pointer", p == c.p),
        ]

    def _progress(self, m: Module) -> None:
        """Something moves when no port stalls, and the newest group ends its unit or one comes."""
        ports: Any = self
        c, d, of = self.compressor, self.decompressor, self.of
        free = ports.accepts & ports.row_goes & ports.width_goes
        inside = Cat(c.measured, c.coded, c.widths.valid, self.count > 0)
        newest = Mux(c.measured, of["measured"].last, Mux(c.coded, of["coded"].last, c.p == 0))
        goes_on = ports.offers | (inside.any() & newest)
        moves = Cat(
            d.o.valid,
            d.shifted & d.code_free,
            d.read,
            self.pushed,
            c.row.valid & c.row.ready,
            c.ending & c.row_free,
            c.merge,
            c.measured & ~c.coded,
            c.i.valid & c.i.ready,
        )
        m.d.comb += claim(m, "progress", ~(free & goes_on) | moves.any())


def _code(shadow: Any) -> Value:
    return Cat(shadow.codes, shadow.w, shadow.last)


def _group(shadow: Any) -> Value:
    return Cat(shadow.values, shadow.last)


__all__ = ["RoundTripProof"]
