"""What is proved of units that every core has: free inputs, a plain account, and claims.

A proof takes the Python module that its unit is in, so that a copy with a fault can be proved too.
Accounts are written with whole numbers that never wrap, and know nothing of how the unit does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Array, Assume, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.machines.scnn.design import Scnn
from rtl.core.wide_product import WideProduct
from rtl.formal import Verdict, claim, prove_always

Prove = Callable[[Any], Verdict]
"""Of the module that the unit is in."""


class Proof(wiring.Component):
    """A component of free inputs, whose assertions are what is to be shown."""

    def __init__(self, unit: Any, **inputs: Any) -> None:
        self.unit = unit
        super().__init__({name: In(shape) for name, shape in inputs.items()})

    @property
    def free(self) -> Any:
        """Its inputs."""
        return self


def together(m: Module, name: str, values: Sequence[Value], bits: int = 8) -> Signal:
    """The sum of values."""
    found = Signal(bits, name=name)
    m.d.comb += found.eq(sum(values, Const(0, 1)))
    return found


class QueueProof(Proof):
    """What goes in comes out, once and in order, and no word is refused or held without need.

    The account is a line of words, of which the first leaves; the memory holds the same words, from
    the place that is read on, but for the first where that lies in registers.
    """

    def __init__(self, unit: Any, *, depth: int, width: int = 2, headed: bool = False) -> None:
        self.depth, self.width, self.headed = depth, width, headed
        self.stored = depth - headed
        super().__init__(unit, offered=1, payload=width, accepts=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        kind = self.unit.HeadedQueue if self.headed else self.unit.Queue
        queue = kind(width=self.width, depth=self.depth)
        inner = queue.elaborate(platform)
        if self.stored:
            self._watch(inner.submodules.store)
        queue.elaborate = lambda _: inner
        m.submodules.queue = queue
        line = [Signal(self.width, name=f"word_{n}") for n in range(self.depth)]
        count = Signal(range(self.depth + 1), name="words")
        came, went = queue.i.valid & queue.i.ready, queue.o.valid & queue.o.ready
        m.d.comb += [
            queue.i.valid.eq(self.free.offered),
            queue.i.payload.eq(self.free.payload),
            queue.o.ready.eq(self.free.accepts),
        ]
        m.d.sync += count.eq(count + came - went)
        behind = [*line[1:], Const(0, self.width)]
        for n, word in enumerate(line):
            moved = Mux(went, behind[n], word)
            m.d.sync += word.eq(Mux(came & (count - went == n), queue.i.payload, moved))
        m.d.comb += [
            claim(m, "ready", queue.i.ready == (count < self.depth)),
            claim(m, "valid", queue.o.valid == (count > 0)),
            claim(m, "payload", ~queue.o.valid | (queue.o.payload == line[0])),
            claim(m, "count", count <= self.depth),
        ]
        if self.stored:
            self._stored(m, count, line)
        return m

    def _stored(self, m: Module, count: Signal, line: Sequence[Signal]) -> None:
        """The words behind those in registers, where they lie."""
        stored = Mux(count > self.headed, count - self.headed, 0)[: len(count)]
        m.d.comb += [
            claim(m, "level", self.level == stored),
            claim(m, "reads", self.reads < self.stored),
            claim(m, "writes", self.writes == self._place(self.reads + stored)),
        ]
        for n, word in enumerate(line[self.headed :]):
            held = Array(self.rows)[self._place(self.reads + n)]
            m.d.comb += claim(m, f"held_{n}", (stored <= n) | (held == word))

    def _place(self, number: Value) -> Value:
        return Mux(number >= self.stored, number - self.stored, number)

    def _watch(self, store: Any) -> None:
        """Signals for what the memory holds, and where it is written and read."""
        self.rows = [Signal(self.width, name=f"row_{n}") for n in range(self.stored)]
        self.writes, self.reads = Signal(range(self.stored)), Signal(range(self.stored))
        self.level = store.level
        make = store.elaborate

        def watched(platform: object) -> Module:
            m = make(platform)
            memory = m.submodules.storage
            (write,), (read,) = memory.write_ports, memory.read_ports
            m.d.comb += [self.writes.eq(write.addr), self.reads.eq(read.addr)]
            for n, row in enumerate(self.rows):
                port = memory.read_port(domain="comb")
                m.d.comb += [port.addr.eq(n), row.eq(port.data)]
            return m

        store.elaborate = watched


class CreditsProof(Proof):
    """As many can be taken as were given, if none is taken that is not there or given in excess."""

    def __init__(self, unit: Any, *, initial: int, limit: int, ahead: bool = False) -> None:
        self.initial, self.limit, self.ahead = initial, limit, ahead
        super().__init__(unit, give=1, take=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        credits = made(
            m,
            "credits",
            self.unit.Credits(initial=self.initial, limit=self.limit, ahead=self.ahead),
        )
        there = Signal(self.limit.bit_length() + 2, init=self.initial)
        give, take = self.free.give, self.free.take
        m.d.comb += [
            credits.give.eq(give),
            credits.take.eq(take),
            Assume(~take | (there > 0), "taken"),
            Assume(~give | take | (there < self.limit), "given"),
            claim(m, "available", credits.available == (there > 0)),
            claim(m, "within", there <= self.limit),
            claim(m, "count", credits.count == there),
        ]
        m.d.sync += there.eq(there + give - take)
        return m


class CountdownProof(Proof):
    """The flags of a counter that is started at any time and turns while turns are left."""

    def __init__(self, unit: Any, *, bits: int, ahead: bool) -> None:
        self.bits, self.ahead = bits, ahead
        super().__init__(unit, start=1, count=bits, turn=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left, account = Signal(self.bits, name="left"), Signal(self.bits + 1)
        start, count, turn = self.free.start, self.free.count, self.free.turn
        some, last = self.unit.countdown_flags(
            m, left, start=start, count=count, turn=turn, ahead=self.ahead
        )
        with m.If(start):
            m.d.sync += [left.eq(count), account.eq(count)]
        with m.Elif(turn):
            m.d.sync += [left.eq(left - 1), account.eq(account - 1)]
        m.d.comb += [
            Assume(~turn | (account > 0), "turns"),
            claim(m, "left", left == account),
            claim(m, "some", some == (account > 0)),
            claim(m, "last", last == (account == 1)),
        ]
        return m


class LoaderProof(Proof):
    """Tile by tile, word n of a tile goes to address n of the other half, while one is free.

    A half is given back only if it was filled; tiles are at most as long as a half.
    """

    WORDS_BITS = 4

    def __init__(self, unit: Any, *, depth: int, ahead: bool = False) -> None:
        self.depth, self.ahead = depth, ahead
        super().__init__(
            unit, tile=1, words=range(depth + 1), word=1, payload=2, given_back=1,
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sizes = {"word_bits": 2, "depth": self.depth, "words_bits": self.WORDS_BITS}
        sizes |= {"ahead": True} if self.ahead else {}
        loader = made(m, "loader", self.unit.Loader(**sizes))
        words, at, half, filled = Signal(8), Signal(8), Signal(), Signal(4)
        busy, goes, last = Signal(), Signal(), Signal()
        m.d.comb += [
            loader.command.valid.eq(self.free.tile),
            loader.command.payload.words.eq(self.free.words),
            loader.word.valid.eq(self.free.word),
            loader.word.payload.eq(self.free.payload),
            loader.free.eq(self.free.given_back),
            Assume(~self.free.given_back | (filled > 0), "given_back"),
            Assume(self.free.words <= self.depth, "words"),
            busy.eq(at < words),
            goes.eq(busy & (filled < 2) & self.free.word),
            last.eq(goes & (at + 1 == words)),
            claim(m, "taken", loader.command.ready == ~busy),
            claim(m, "room", loader.word.ready == (busy & (filled < 2))),
            claim(m, "write", loader.write == goes),
            claim(m, "address", ~busy | (loader.write_address == at)),
            claim(m, "within", ~goes | (loader.write_address < self.depth)),
            claim(m, "half", loader.write_half == half),
            claim(m, "data", loader.write_data == self.free.payload),
            claim(m, "loaded", loader.loaded == last),
            claim(m, "left", loader.left + at == words),
            claim(m, "last", loader.last == (at + 1 == words)),
            claim(m, "halves", loader.free_halves.count + filled == 2),
            claim(m, "free", loader.free_halves.available == (filled < 2)),
            claim(m, "size", words <= self.depth),
        ]
        m.d.sync += [at.eq(at + goes), half.eq(half ^ last)]
        m.d.sync += filled.eq(filled + last - self.free.given_back)
        with m.If(self.free.tile & ~busy):
            m.d.sync += [words.eq(self.free.words), at.eq(0)]
        return m


class RoundingProof(Proof):
    """⌊(p + 2^(s−1)) / 2^s⌋ without a quotient: what is no limit is off by less than a unit.

    p = (acc + bias) · multiplier; s = 0 rounds nothing.  make, out: the unit, and what comes
    out of it, within limits; cycles: behind acc, in which it takes multiplier, shift and relu;
    registers: behind the product; wide: p is that of a `WideProduct`, of which the unit has one.
    """

    def __init__(  # noqa: PLR0913
        self,
        unit: Any,
        make: Any,
        *,
        bits: tuple[int, int],
        limits: tuple[int, int],
        cycles: tuple[int, int, int],
        out: Callable[[Any], Value],
        registers: int = 0,
        wide: bool = False,
    ) -> None:
        self.make, self.limits, self.out = make, limits, out
        self.registers, self.wide = registers, wide
        self.cycles = cycles
        sum_bits, self.multiplier_bits = bits
        super().__init__(
            unit, acc=signed(sum_bits), bias=signed(sum_bits), multiplier=self.multiplier_bits,
            shift=6, relu=1,
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.make(self.unit)
        free = self.free
        cycles = 2 + self.wide + self.registers
        taken = {"multiplier": free.multiplier, "shift": free.shift, "relu": free.relu}
        late = {name: _delays(m, name, signal, cycles) for name, signal in taken.items()}
        m.d.comb += [unit.acc.eq(free.acc), unit.bias.eq(free.bias)]
        for name, behind in zip(late, self.cycles, strict=True):
            m.d.comb += getattr(unit, name).eq(late[name][behind])
        product = _delays(m, "product", self._product(m, late["multiplier"]), self.registers)[-1]
        there = _delays(m, "begun", Const(1, 1), cycles)[-1]
        self._claims(m, self.out(unit), (product, late["shift"][-1], late["relu"][-1]), there)
        return m

    def _product(self, m: Module, multiplier: list[Signal]) -> Signal:
        """What is rounded, of a sum and a multiplier that come together."""
        bits = len(self.free.acc) + 1, self.multiplier_bits
        total = self.free.acc + self.free.bias
        if self.wide:
            m.submodules.wide = wide = WideProduct(bits=bits)
            m.d.comb += [wide.a.eq(total), wide.b.eq(multiplier[0])]
            return wide.o
        kept, product = Signal(signed(bits[0])), Signal(signed(sum(bits)))
        m.d.sync += [kept.eq(total), product.eq(kept * multiplier[1])]
        return product

    def _claims(self, m: Module, o: Any, of: tuple[Any, Any, Any], there: Value) -> None:
        product, shift, relu = of
        low, high = self.limits
        value = Signal(signed(len(o) + 2))
        rounded, above, below = (
            Signal(signed(len(product) + 66), name=name) for name in ("rounded", "above", "below")
        )
        half = Signal(64)
        m.d.comb += [
            value.eq(o),
            half.eq(Mux(shift == 0, 0, 1 << (shift - 1)[:6])),
            rounded.eq(product + half),
            above.eq((value + 1) << shift),
            below.eq(value << shift),
            claim(m, "within", ~there | ((value >= low) & (value <= high))),
            claim(m, "positive", ~there | ~relu | (value >= 0)),
            claim(m, "not_too_low", ~there | (value == high) | (rounded < above)),
            claim(
                m, "not_too_high",
                ~there | (value == low) | (relu & (value == 0)) | (rounded >= below),
            ),
        ]  # fmt: skip


def _delays(m: Module, name: str, signal: Any, cycles: int) -> list[Any]:
    """A signal, and it so many cycles later: 0, 1, …"""
    line: list[Any] = [signal]
    for n in range(cycles):
        line.append(Signal(signal.shape(), name=f"{name}_{n}"))
        m.d.sync += line[-1].eq(line[-2])
    return line


class WideProductProof(Proof):
    """o[t + 3] = a[t] · b[t]."""

    def __init__(self, unit: Any, *, bits: tuple[int, int], widest: int) -> None:
        self.bits, self.widest = bits, widest
        super().__init__(unit, a=signed(bits[0]), b=bits[1])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit.WideProduct(bits=self.bits, widest=self.widest)
        m.d.comb += [unit.a.eq(self.free.a), unit.b.eq(self.free.b)]
        inputs = {"a": self.free.a, "b": self.free.b}
        late = [_delays(m, name, one, 3)[-1] for name, one in inputs.items()]
        m.d.comb += claim(m, "product", unit.o == late[0] * late[1])
        return m


class LeadingZerosProof(Proof):
    """Bit o from above is the highest 1."""

    def __init__(self, unit: Any, *, bits: int) -> None:
        self.bits = bits
        super().__init__(unit, word=bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.zeros = zeros = self.unit.LeadingZeros(bits=self.bits)
        m.d.comb += zeros.i.eq(self.free.word)
        for number in range(self.bits):
            top = self.bits - 1 - number
            here = (self.free.word >> top) == 1
            m.d.comb += claim(m, f"zeros_{number}", ~here | (zeros.o == number))
        return m


class PopulationCountProof(Proof):
    """The ones of the word that came so many cycles ago."""

    def __init__(self, unit: Any, *, bits: int) -> None:
        self.bits = bits
        super().__init__(unit, word=bits)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self.unit.PopulationCount(bits=self.bits)
        m.submodules.count = count
        m.d.comb += count.i.eq(self.free.word)
        word: Value = self.free.word
        for number in range(len(count.stages)):
            late = Signal(self.bits, name=f"late_{number}")
            m.d.sync += late.eq(word)
            word = late
        ones = together(m, "ones", [word[n] for n in range(self.bits)])
        m.d.comb += claim(m, "ones", count.o == ones)
        return m


class PackerProof(Proof):
    """Units of rows, of any number, are the units of words, in order; a flush fills up with zeros.

    The packer with the places that it is given, as the output stage has them; ahead: a row is full,
    or has the units that were told with the row before, or at the beginning behind a flush.
    """

    def __init__(self, unit: Any, *, units: int, unit_bits: int = 1, ahead: bool = False) -> None:
        self.units, self.unit_bits, self.ahead = units, unit_bits, ahead
        told = {"begins": 1, "told": range(units + 1)} if ahead else {}
        super().__init__(
            unit, row=units * unit_bits, number=range(units + 1), take=1, flush=1, **told
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units, bits = self.units, self.unit_bits
        sizes = {"word": units} | ({"ahead": True} if self.ahead else {})
        place = made(m, "place", self.unit.PackingPlace(**sizes))
        if self.ahead:
            self._tell(m, place)
        packer = made(m, "packer", self.unit.OutputPacker(units=units, unit_bits=bits))
        waiting = [Signal(bits, name=f"waiting_{n}") for n in range(units - 1)]
        count, taken, flush = Signal(8), Signal(), Signal()
        row, number = Signal(units * bits), Signal(range(units + 1))
        free = self.free
        m.d.comb += [
            Assume(~(free.take & free.flush), "one"),
            Assume(free.number <= units, "number"),
            place.units.eq(free.number),
            place.take.eq(free.take),
            place.flush.eq(free.flush),
            packer.row.eq(free.row),
            packer.place.eq(place.o),
        ]
        m.d.sync += [
            row.eq(free.row), number.eq(free.number), taken.eq(free.take), flush.eq(free.flush)
        ]  # fmt: skip
        total = Signal(8)
        m.d.comb += total.eq(count + Mux(taken, number, 0))
        line = self._line(m, waiting, (row, number, taken), count)
        writes = flush | (taken & (total >= units))
        m.d.comb += [claim(m, "write", packer.write == writes), claim(m, "few", count < units)]
        for n in range(units):
            unit = packer.word.word_select(n, bits)
            m.d.comb += claim(m, f"unit_{n}", ~writes | (unit == line[n]))
        over, following = total >= units, Signal(8)
        m.d.comb += [
            following.eq(Mux(flush, 0, Mux(over, total - units, total))),
            claim(m, "place", place.o.position == following),
        ]
        m.d.sync += count.eq(following)
        for n, one in enumerate(waiting):
            m.d.sync += one.eq(Mux(over, line[units + n], line[n]))
            held = packer.begun.word_select(n, bits)
            m.d.comb += claim(m, f"held_{n}", (count <= n) | (held == one))
        return m

    def _tell(self, m: Module, place: Any) -> None:
        """What the place hears of the row behind."""
        free, told, known = self.free, Signal(8, name="told_before"), Signal(name="known")
        m.d.comb += [
            place.full.eq(free.number == self.units),
            place.begins.eq(free.begins),
            place.following_units.eq(free.told),
            Assume(free.told <= self.units, "told"),
            Assume(~(free.begins & free.flush), "begins"),
            Assume(~free.take | known, "known"),
            Assume(~free.take | place.full | (free.number == told), "as_told"),
            claim(m, "complete", ~known | ((place.o.position + told >= self.units) == place.fits)),
        ]
        with m.If(free.flush):
            m.d.sync += known.eq(0)
        with m.Elif(free.take | free.begins):
            m.d.sync += [known.eq(1), told.eq(free.told)]

    def _line(
        self, m: Module, waiting: Sequence[Value], of: tuple[Any, Any, Any], count: Signal
    ) -> list[Signal]:
        """What waits, and the units of the row behind it; zeros behind those."""
        row, number, taken = of
        found: list[Signal] = []
        for n in range(2 * self.units):
            unit = Signal(self.unit_bits, name=f"line_{n}")
            if n < len(waiting):
                m.d.comb += unit.eq(Mux(count > n, waiting[n], 0))
            for k in range(min(self.units, n + 1)):
                with m.If(taken & (count == n - k) & (number > k)):
                    m.d.comb += unit.eq(row.word_select(k, self.unit_bits))
            found.append(unit)
        return found


class ArbiterProof(Proof):
    """Of each bank's waiting products the first go, as many as its queue has places for.

    The pair stays until it has ended; what is taken of a queue is its first places.
    """

    def __init__(self, unit: Any, design: Scnn) -> None:
        self.design = design
        queue = design.banks * (design.bank_queue - 1)
        made_once = unit.Arbiter(design=design)
        pair = len(Value.cast(made_once.weight)) + len(Value.cast(made_once.activation))
        super().__init__(
            unit, pair=pair, active=1, rows=len(made_once.rows), columns=len(made_once.columns),
            **({"occupied": queue} if queue else {}),
        )  # fmt: skip
        made_once.elaborate = lambda platform: Module()
        self.made_once = made_once

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unused = self.made_once
        unit = made(m, "arbiter", self.unit.Arbiter(design=self.design))
        free, products = self.free, unit.products
        held = Cat(free.pair, free.rows, free.columns)
        before, kept = Signal(len(held)), Signal()
        m.d.sync += [before.eq(held), kept.eq(unit.active & ~unit.ended)]
        m.d.comb += [
            Cat(Value.cast(unit.weight), Value.cast(unit.activation)).eq(free.pair),
            unit.rows.eq(free.rows),
            unit.columns.eq(free.columns),
            unit.active.eq(free.active),
            Assume(~kept | ((held == before) & free.active), "stays"),
        ]
        left, fresh = Signal(products), Signal(init=1)
        waits = Signal(products)
        counted = Cat(self._goes(unit, n) for n in range(products))
        m.d.comb += waits.eq(Mux(fresh, counted, left))
        sent = Cat(self._granted(m, unit, waits, n) for n in range(products))
        ended = unit.active & ((waits & ~sent) == 0)
        with m.If(unit.active):
            m.d.sync += [left.eq(waits & ~sent), fresh.eq((waits & ~sent) == 0)]
        m.d.comb += [
            claim(m, "selected", unit.selected == Mux(unit.active, sent, 0)),
            claim(m, "ended", unit.ended == ended),
            claim(m, "fresh", unit.fresh == fresh),
            claim(m, "left", fresh | (unit.left == left)),
            claim(m, "kept", kept == ~fresh),
        ]
        return m

    def _goes(self, unit: Any, number: int) -> Value:
        """Whether a product is to be sent: with an output in the region, and not 0."""
        i, f = divmod(number, self.design.weight_lanes)
        a, w = unit.activation.lanes[i], unit.weight.lanes[f]
        row, column = a.row.as_signed() - w.row, a.column.as_signed() - w.column
        inside = (row >= 0) & (row < unit.rows) & (column >= 0) & (column < unit.columns)
        return (a.value != 0) & (w.value != 0) & inside

    def _granted(self, m: Module, unit: Any, waits: Signal, number: int) -> Value:
        """Whether a waiting product goes; claims its place, and its address."""
        design, queue = self.design, self.design.bank_queue
        i, f = divmod(number, design.weight_lanes)
        a, w = unit.activation.lanes[i], unit.weight.lanes[f]
        address, banks = unit.addresses[number], design.banks
        whole = (a.address + w.address)[: len(address)]
        bank = [unit.addresses[n] % banks for n in range(number + 1)]
        parts: list[Value] = [waits[n] & (bank[n] == bank[number]) for n in range(number)]
        if queue > 1:
            taken = [unit.occupied[b] for b in range(banks)]
            if number == 0:
                m.d.comb += Cat(*taken).eq(self.free.occupied)
                m.d.comb += [Assume(((one + 1) & one) == 0, "first") for one in taken]
            mine = Array(taken)[bank[number]]
            parts += [mine[n] for n in range(queue - 1)]
        ahead = together(m, f"ahead_{number}", parts)
        goes = waits[number] & (ahead < queue)
        place = Mux(unit.active & goes, (1 << ahead[:4])[:queue], 0)
        m.d.comb += [
            claim(m, f"place_{number}", unit.places[number] == place),
            claim(m, f"address_{number}", address == whole),
        ]
        return goes


def made(m: Module, name: str, unit: Any) -> Any:
    """The unit placed, with the attributes that its making gives it."""
    inner = unit.elaborate(None)
    unit.elaborate = lambda platform: inner
    m.submodules[name] = unit
    return unit


def registers(inner: Any) -> dict[str, Signal]:
    """The signals that a unit's module assigns, by name; where several have one name, the last."""
    found: dict[str, Signal] = {}
    waiting = [*inner._statements.values()]
    while waiting:
        for statement in waiting.pop():
            waiting.extend(case[1] for case in getattr(statement, "cases", ()))
            if hasattr(statement, "lhs"):
                found |= {signal.name: signal for signal in statement.lhs._lhs_signals()}
    return found


def always(proof: Callable[..., Any], longest_step: int = 1, **sizes: Any) -> Prove:
    """By induction."""
    return lambda unit: prove_always(proof(unit, **sizes), longest_step)
