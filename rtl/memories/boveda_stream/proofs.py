"""The proofs that compressed streams bring: of packer and unpacker, around rows in two banks."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Array, Assume, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.core.boveda_width import GroupWidth, Magnitudes
from rtl.core.stream_packer import StreamPacker
from rtl.core.stream_unpacker import StreamUnpacker
from rtl.formal import Proof, claim, named, opened, prove_always

PIPELINE_STEP = 4
"""Cycles of an induction step: values are measured 2 cycles before they are packed."""


class StreamProof(wiring.Component):
    """The n-th group read is the n-th written, of contents of up to `groups`, one after the other.

    A content is written, with any pauses; then it ends (flush) and is read, again and again, with
    any pauses, until another one begins.  Rows lie in an even and an odd bank, which answer a cycle
    later, a row written in the same cycle included.

    The account keeps the values.  Their codes one behind the other, made of them by the parts that
    `PackProof` is of, are a line of bits for each lane.  Shown: rows are, bit for bit, this line,
    with zeros behind its end; pointers are the sums of widths; what is read is what was written.
    """

    def __init__(self, *, groups: int, group: int = 1, container_bits: int = 4) -> None:
        self.groups, self.group, self.bits = groups, group, container_bits
        self.sizes: dict[str, Any] = {"group": group, "container_bits": container_bits}
        self.row_bits = group * container_bits
        free = {name: In(1) for name in ("append", "flush", "advance", "anew")}
        super().__init__({"values": In(self.row_bits), **free})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape = {**self.sizes, "rows": self.groups}
        self.packer: Any = StreamPacker(**shape)
        self.unpacker: Any = StreamUnpacker(**shape)
        for name, unit in (("packer", self.packer), ("unpacker", self.unpacker)):
            opened(unit)
            m.submodules[name] = unit
        self.reading, self.count = Signal(), Signal(range(self.groups + 1))
        self.at = Signal(range(self.groups + 1))
        self._phases(m)
        self._account(m)
        rows = self._line(m)
        self._banks(m)
        self._written(m, rows)
        self._read(m, rows)
        return m

    def _phases(self, m: Module) -> None:
        """Writing, and reading from the first group to the last and on with the first."""
        ports: Any = self
        packer, unpacker = self.packer, self.unpacker
        last = self.at + 1 == self.count
        m.d.comb += [
            packer.values.eq(ports.values),
            packer.append.eq(ports.append),
            packer.flush.eq(ports.flush),
            unpacker.rewind.eq(ports.flush),
            unpacker.advance.eq(ports.advance),
            unpacker.last.eq(last),
            Assume(~ports.append | (~self.reading & (self.count < self.groups)), "append"),
            Assume(~ports.flush | (~self.reading & ~ports.append & (self.count > 0)), "flush"),
            Assume(~ports.advance | self.reading, "advance"),
            Assume(~ports.anew | (self.reading & ~ports.advance), "anew"),
            claim(m, "few", self.count <= self.groups),
            claim(m, "some", ~self.reading | (self.at < self.count)),
        ]
        m.d.sync += self.count.eq(Mux(ports.anew, 0, self.count + ports.append))
        with m.If(ports.flush):
            m.d.sync += [self.reading.eq(1), self.at.eq(0)]
        with m.Elif(ports.anew):
            m.d.sync += self.reading.eq(0)
        with m.Elif(ports.advance):
            m.d.sync += self.at.eq(Mux(last, 0, self.at + 1))

    def _account(self, m: Module) -> None:
        """The values of the groups, and the fields of their widths, as the entries keep them."""
        ports: Any = self
        late = [Signal(self.row_bits, name=f"late_{n}") for n in range(2)]
        m.d.sync += [late[0].eq(ports.values), late[1].eq(late[0])]
        self.account = [Signal(self.row_bits, name=f"group_{n}") for n in range(self.groups)]
        self.fields = [Signal(len(self.packer.code), name=f"field_{n}") for n in range(self.groups)]
        for n, (values, field) in enumerate(zip(self.account, self.fields, strict=True)):
            with m.If(ports.append & (self.count == n)):
                m.d.sync += [values.eq(late[1]), field.eq(self.packer.code)]

    def _line(self, m: Module) -> list[Value]:
        """The rows that the codes make; where each group begins, and the last one ends."""
        bits, total = self.bits, self.groups * self.bits
        lanes: list[Value] = [Const(0, total)] * self.group
        begin: Value = Const(0, (total + 1).bit_length())
        self.begins: list[Value] = [begin]
        for n, values in enumerate(self.account):
            signs = {**self.sizes, "signed": True}
            m.submodules[f"magnitudes_{n}"] = magnitudes = Magnitudes(**signs)
            m.submodules[f"width_{n}"] = width = GroupWidth(**signs, zero_width=True)
            there = self.count > n
            m.d.comb += [
                magnitudes.values.eq(values),
                width.magnitudes.eq(magnitudes.magnitudes),
                width.ones.eq(magnitudes.ones),
                claim(m, f"field_{n}", ~there | (self.fields[n] == Mux(width.w, width.w - 1, 0))),
            ]
            w = Mux(there, width.w, 0)
            for lane in range(self.group):
                code = Mux(there, width.codes.word_select(lane, bits), 0)
                placed = (code << begin)[:total]
                lanes[lane] = named(m, f"line_{n}_{lane}", lanes[lane] | placed)
            begin = named(m, f"begin_{n + 1}", (begin + w)[: len(begin)])
            self.begins.append(begin)
        return [
            named(m, f"row_{n}", Cat(lane.word_select(n, bits) for lane in lanes))
            for n in range(self.groups)
        ]

    def _banks(self, m: Module) -> None:
        """Rows, and what either bank shows."""
        packer, unpacker = self.packer, self.unpacker
        self.rows = [Signal(self.row_bits, name=f"stored_{n}") for n in range(self.groups)]
        for n, row in enumerate(self.rows):
            with m.If(packer.write & (packer.row == n)):
                m.d.sync += row.eq(packer.data)
        for bank, (name, address) in enumerate(
            (("even", unpacker.even_address), ("odd", unpacker.odd_address))
        ):
            wanted = named(m, f"wanted_{name}", Cat(Const(bank, 1), address))
            shown = Signal(self.row_bits, name=f"shown_{name}")
            forward = packer.write & (packer.row == wanted)
            m.d.sync += shown.eq(Mux(forward, packer.data, Array(self.rows)[wanted]))
            m.d.comb += getattr(unpacker, name).eq(shown)

    def _written(self, m: Module, rows: list[Value]) -> None:
        """While a content is written its full rows are stored; when it is read, all of them."""
        packer, bits = self.packer, self.bits
        end = self.begins[-1]
        full = named(m, "full", end // bits)
        used = named(m, "used", Mux(self.reading, (end + bits - 1) // bits, full))
        low_full = full[: len(packer.row)]
        begun = named(m, "begun_row", Array([*rows, Const(0, self.row_bits)])[full])
        m.d.comb += [
            claim(m, "packed_row", packer.row == Mux(self.reading, 0, low_full)),
            claim(m, "packed_to", packer.p == Mux(self.reading, 0, end % bits)),
            claim(m, "packed_begun", packer.begun == Mux(self.reading, 0, begun)),
        ]
        for n, (stored, row) in enumerate(zip(self.rows, rows, strict=True)):
            m.d.comb += claim(m, f"stored_{n}", (used <= n) | (stored == row))

    def _read(self, m: Module, rows: list[Value]) -> None:
        """What is read, from which rows, and of how many it is the last group."""
        unpacker, bits = self.unpacker, self.bits
        m.d.comb += unpacker.code.eq(Array(self.fields)[self.at])
        begin = named(m, "begin", Array(self.begins[:-1])[self.at])
        behind = named(m, "behind", Array(self.begins[1:])[self.at])
        number = named(m, "number", begin // bits)
        left = behind // bits - number
        ends = (self.at + 1 == self.count) & (behind % bits != 0)
        claims = {
            "from_row": unpacker.row == number[: len(unpacker.row)],
            "from_place": unpacker.p == begin % bits,
            "values": unpacker.values == Array(self.account)[self.at],
            "gives_up": unpacker.gives_up == left + ends,
        }
        used = named(m, "used_rows", (self.begins[-1] + bits - 1) // bits)
        for n, row in enumerate(rows):
            shown = unpacker.odd if n % 2 else unpacker.even
            near = (number == n) | (number + 1 == n)
            claims[f"shown_{n}"] = ~near | (used <= n) | (shown == row)
        for name, holds in claims.items():
            m.d.comb += claim(m, name, ~self.reading | holds)


def stream_proofs() -> Iterator[Proof]:
    """By induction: no bound on the cycles or on the contents."""
    for groups, group, bits in ((2, 1, 4), (3, 1, 4), (4, 1, 4), (3, 2, 4), (2, 1, 8)):
        sizes = {"groups": groups, "group": group, "container_bits": bits}
        said = f"up to {groups} groups of {group} x {bits} bits"
        yield Proof(
            name=f"a stream reads back, {said}",
            says="the n-th group read is the n-th written, rows are bit for bit the codes one "
            f"behind the other, for ever: {said}",
            prove=lambda sizes=sizes: prove_always(StreamProof(**sizes), PIPELINE_STEP),
        )


__all__ = ["StreamProof", "stream_proofs"]
