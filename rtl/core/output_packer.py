"""Outputs packed into whole words: the rows of the output stage, one behind the other."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.hierarchy import place


def place_layout(units: int) -> data.StructLayout:
    """What travels beside a row: where its first unit goes, and whether a word is complete."""
    return data.StructLayout(
        {"valid": 1, "complete": 1, "flush": 1, "position": range(max(units, 2))}
    )


class PackingPlace(wiring.Component):
    """position ← (position + units) mod word; complete = position + units ≥ word.

    Latency: none, of the row that is taken in this cycle.  Throughput: a row a cycle.

    Members
    -------
    units: of the row that comes next, at most those of a word; take: it comes in this cycle; flush:
    the layer ends in this cycle, instead of a row; complete: the row completes a word; begun: with
    the row taken, something of a word is left; o: where the row goes.

    With `ahead`, `complete` is compared when the row before is taken, in the same cycles.  full:
    the row has all units of a word, and completes one wherever it goes; begins: the next cycle's
    row is the first behind a pause; following_units: of the row behind this cycle, if it is not
    full.
    """

    units: Signal
    take: Signal
    flush: Signal
    complete: Signal
    begun: Signal
    full: Signal
    begins: Signal
    following_units: Signal
    o: data.View

    def __init__(self, *, word: int, ahead: bool = False) -> None:
        self.word = word
        self.ahead = ahead
        units = In(range(word + 1))
        super().__init__(
            {
                "units": units,
                "take": In(1),
                "flush": In(1),
                "complete": Out(1),
                "begun": Out(1),
                "o": Out(place_layout(word)),
                **({"full": In(1), "begins": In(1), "following_units": units} if ahead else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        position = Signal.like(self.o.position)
        total, following = Signal(range(2 * self.word)), Signal.like(position)
        m.d.comb += [
            total.eq(position + self.units),
            self.complete.eq(self._completes(m, position, following, total)),
            following.eq(Mux(self.complete, total - self.word, total)),
            self.begun.eq(following != 0),
            self.o.valid.eq(self.take | self.flush),
            self.o.complete.eq((self.take & self.complete) | self.flush),
            self.o.flush.eq(self.flush),
            self.o.position.eq(position),
        ]
        with m.If(self.flush):
            m.d.sync += position.eq(0)
        with m.Elif(self.take):
            m.d.sync += position.eq(following)
        return m

    def _completes(self, m: Module, position: Signal, following: Signal, total: Signal) -> Value:
        """Whether the row completes a word."""
        if not self.ahead:
            return total >= self.word
        self.fits = fits = Signal(name="fits")
        with m.If(self.take | self.begins):
            behind = Mux(self.take, following, position)
            m.d.sync += fits.eq(behind + self.following_units >= self.word)
        return self.full | fits


class RotateUp(wiring.Component):
    """Unit (n + by) mod units of o is unit n of i.

    A level of multiplexers for each bit of `by`.  Latency: none.
    """

    i: Signal
    by: Signal
    o: Signal

    def __init__(self, *, units: int, unit_bits: int) -> None:
        self.units = units
        self.unit_bits = unit_bits
        bits = units * unit_bits
        super().__init__({"i": In(bits), "by": In(range(max(units, 2))), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rotated: Value = self.i
        for level in range(len(self.by)):
            bits = (1 << level) % self.units * self.unit_bits
            following = Signal(len(self.i), name=f"level_{level}")
            m.d.comb += following.eq(Mux(self.by[level], rotated.rotate_left(bits), rotated))
            rotated = following
        m.d.comb += self.o.eq(rotated)
        return m


class OutputPacker(wiring.Component):
    """Units `position`, `position` + 1, … of the words' stream are the first units of a row.

    A row has units of its own, the lowest ones; what stands in the others does not matter.  A word
    leaves when a row completes it, and at a flush, filled up with zeros; what a row has beyond the
    word begins the next one.
    Latency: 1 register, of the row and its place; the rotation is combinational behind it.
    Throughput: a row a cycle.  Never stalls: whoever sends rows keeps places for the words.

    Members
    -------
    row: units, the lowest first; place: of `PackingPlace`, with the row; write: a word leaves in
    this cycle; word: that word.
    """

    row: Signal
    place: data.View
    write: Signal
    word: Signal

    def __init__(self, *, units: int, unit_bits: int) -> None:
        self.units = units
        self.unit_bits = unit_bits
        bits = units * unit_bits
        super().__init__(
            {
                "row": In(bits),
                "place": In(place_layout(units)),
                "write": Out(1),
                "word": Out(bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row = Signal(self.units * self.unit_bits, reset_less=True)
        at = Signal(place_layout(self.units))
        m.d.sync += [row.eq(self.row), at.eq(self.place)]
        turn = place(m, "turn", RotateUp, units=self.units, unit_bits=self.unit_bits)
        begun = Signal((self.units - 1) * self.unit_bits, reset_less=True)  # less than a word
        self.begun = begun
        m.d.comb += [turn.i.eq(row), turn.by.eq(at.position), self.write.eq(at.complete)]
        for unit in range(self.units):
            new = Mux(at.flush, 0, turn.o.word_select(unit, self.unit_bits))
            if unit + 1 < self.units:
                new = Mux(unit < at.position, begun.word_select(unit, self.unit_bits), new)
            m.d.comb += self.word.word_select(unit, self.unit_bits).eq(new)
        with m.If(at.valid):
            m.d.sync += begun.eq(Mux(at.complete, turn.o, self.word))
        return m
