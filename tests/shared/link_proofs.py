"""What is proved of the byte link's framing: what is taken for a frame, and that all of it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Assume, Cat, Const, Module, Mux, Signal, Value
from unit_proofs import Proof, made, registers

from rtl.formal import claim, named, opened
from rtl.link.frames import REQUEST

HEAD, CHECK = 5, 4
"""Bytes before the payload, and behind it."""
POLYNOMIAL = 0xEDB88320
"""Of CRC-32 (ISO-HDLC), the lowest bit first, without its highest term."""


def crc_of(begun: Value, byte: Value) -> Value:
    """The check register behind a byte, bit by bit, the lowest first."""
    rest = Cat(begun[:8] ^ byte, begun[8:])
    for _ in range(8):
        rest = Cat(rest[1:], Const(0, 1)) ^ Mux(rest[0], POLYNOMIAL, 0)
    return rest[:32]


def complements() -> list[int]:
    """What n complemented bytes of a register r leave of it is r >> 8n, exclusive or the n-th."""
    found = [0]
    for _ in range(CHECK):
        rest = found[-1] ^ 0xFF
        for _ in range(8):
            rest = rest >> 1 ^ (POLYNOMIAL if rest & 1 else 0)
        found.append(rest)
    return found


def state_of(inner: Module) -> Callable[..., Value]:
    """Of a unit's module: whether its FSM is in one of the named states."""
    fsm: Any = inner._generated["fsm"]  # pyright: ignore[reportAttributeAccessIssue]

    def within(*names: str) -> Value:
        return Cat(fsm.state == fsm.encoding[name] for name in names).any()

    return within


class ReceiverProof(Proof):
    """`whole` is said of the bytes of a frame whose CRC is right, and of no others.

    The account counts the bytes of what may be a frame, keeps its fields and payload, and divides
    by the CRC's polynomial bit by bit.  Behind the body it asks whether each byte that comes is the
    complement of the register's; the unit goes on dividing.  A frame that is not whole is given up
    after `patience` silent cycles, or where it says that it is longer than `payload`.
    """

    def __init__(self, unit: Any, *, payload: int, patience: int) -> None:
        self.payload, self.patience = payload, patience
        super().__init__(unit, valid=1, byte=8, released=1, address=range(payload))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with patch.object(self.unit, "PAYLOAD", self.payload):
            unit = made(m, "receiver", self.unit.Receiver(patience=self.patience))
        inner, free = unit.elaborate(None), self.free
        m.d.comb += [
            unit.i.valid.eq(free.valid),
            unit.i.payload.eq(free.byte),
            unit.released.eq(free.released),
            unit.address.eq(free.address),
            Assume(free.address < self.payload, "address"),
        ]
        self._account(m)
        whole, at = self.whole, self.at
        m.d.comb += [
            claim(m, "whole", unit.whole == whole),
            claim(m, "ready", unit.i.ready == ~(self.checks | self.matches | whole)),
            claim(m, "silence", (self.silent <= self.patience + 2) | (at == 0)),
            *(
                claim(m, name, ~(whole | (at > n + 1)) | (said == self.fields[n]))
                for n, (name, said) in enumerate((
                    ("number", unit.number), ("code", unit.code), ("low", unit.length[:8]),
                    ("high", unit.length[8:]),
                ))
            ),
        ]  # fmt: skip
        self._inside(m, unit, inner)
        return m

    def _account(self, m: Module) -> None:
        free = self.free
        self.at, self.silent = Signal(17, name="bytes"), Signal(8, name="silent")
        self.checks, self.matches = Signal(name="checks"), Signal(name="matches")
        self.whole, self.right = Signal(name="is_whole"), Signal(name="right")
        self.fields = [Signal(8, name=f"field_{n}") for n in range(HEAD - 1)]
        self.body = [Signal(8, name=f"body_{n}") for n in range(self.payload)]
        self.divided, self.rest = Signal(32, name="divided"), Signal(32, name="rest")
        self.length = named(m, "said", Cat(self.fields[2:]))
        at, length = self.at, self.length
        crosses = named(m, "crosses", free.valid & ~(self.checks | self.matches | self.whole))
        covered = (at < HEAD) | (at < HEAD + length)
        place = (at - HEAD - length)[:2]
        m.d.sync += self.silent.eq(Mux(crosses, 0, Mux(self.silent == 255, 255, self.silent + 1)))
        with m.If(crosses & (at == 0)):
            m.d.sync += [at.eq(free.byte == REQUEST), self.divided.eq(~0), self.right.eq(1)]
        with m.Elif(crosses):
            ended = named(m, "ended", (at >= HEAD) & (at + 1 == HEAD + length + CHECK))
            m.d.sync += [
                at.eq(at + 1),
                self.checks.eq(at + 1 == HEAD),
                self.matches.eq(ended),
                self.rest.eq(crc_of(self.rest, free.byte)),
            ]
            with m.If(covered):
                m.d.sync += self.divided.eq(crc_of(self.divided, free.byte))
            with m.Elif(free.byte != ~self.divided.word_select(place, 8)):
                m.d.sync += self.right.eq(0)
        with m.Elif((at != 0) & ~self.matches & ~self.checks & (self.silent == self.patience)):
            m.d.sync += at.eq(0)
        with m.If(crosses & (at == 0)):
            m.d.sync += self.rest.eq(~0)
        for n, field in enumerate(self.fields):
            with m.If(crosses & (at == n + 1)):
                m.d.sync += field.eq(free.byte)
        for n, one in enumerate(self.body):
            with m.If(crosses & (at == HEAD + n) & (n < length)):
                m.d.sync += one.eq(free.byte)
        with m.If(self.checks):
            m.d.sync += self.checks.eq(0)
            with m.If(length > self.payload):
                m.d.sync += at.eq(0)
        with m.If(self.matches):
            m.d.sync += [self.matches.eq(0), at.eq(0), self.whole.eq(self.right)]
        with m.If(self.whole & free.released):
            m.d.sync += self.whole.eq(0)

    def _inside(self, m: Module, unit: Any, inner: Any) -> None:
        """Each state is at a number of bytes; the division of the unit is that of the account."""
        at, length, checks, matches = self.at, self.length, self.checks, self.matches
        within = state_of(inner)
        frame = (at != 0) & ~checks & ~matches
        in_body = frame & (at >= HEAD) & (at < HEAD + length)
        in_check = frame & (at >= HEAD) & (at >= HEAD + length)
        m.d.comb += [
            claim(m, name, within(name) == holds)
            for name, holds in (
                ("FIRST", (at == 0) & ~self.whole), ("NUMBER", at == 1), ("CODE", at == 2),
                ("LOW", at == 3), ("HIGH", at == 4), ("CHECK", checks), ("PAYLOAD", in_body),
                ("CRC", in_check), ("MATCH", matches), ("WHOLE", self.whole),
            )
        ]  # fmt: skip
        counted = Mux(at < HEAD + length, at - HEAD, at - HEAD - length)
        m.d.comb += [
            claim(m, "checks_at", ~checks | ((at == HEAD) & (self.silent == 0))),
            claim(m, "matches_at", ~matches | (at == HEAD + length + CHECK)),
            claim(m, "before_the_end", ~in_check | (at < HEAD + length + CHECK)),
            claim(m, "long", (at < HEAD) | checks | (length <= self.payload)),
            claim(m, "whole_length", ~self.whole | ((length <= self.payload) & (at == 0))),
            claim(m, "at", ~(checks | in_body | in_check) | (unit.at == counted)),
            claim(m, "idle", (at == 0) | (unit.idle == self.silent)),
            claim(m, "silent", (at == 0) | (self.silent <= self.patience)),
        ]
        store, data, begun = inner.submodules.payload, Signal(8, name="expected"), Signal()
        m.d.sync += [data.eq(Array(self.body)[self.free.address]), begun.eq(1)]
        m.d.comb += claim(m, "data", ~begun | (unit.data == data))
        for n, own in enumerate(self.body):
            port = store.read_port(domain="comb")
            inner.d.comb += port.addr.eq(n)
            m.d.comb += claim(m, f"byte_{n}", port.data == own)
        self._division(m, inner)

    def _division(self, m: Module, inner: Any) -> None:
        """A wrong byte is seen in the highest bytes of what is left, so that nothing undoes it."""
        register = registers(opened(inner.submodules.checksum))["crc_reg"]
        at, length = self.at, self.length
        m.d.comb += claim(m, "register", (at == 0) | (register[::-1] == self.rest))
        in_body = (at != 0) & ((at < HEAD) | (at <= HEAD + length))
        m.d.comb += claim(m, "body", ~in_body | ((self.rest == self.divided) & self.right))
        for n, constant in enumerate(complements()):
            wanted = (self.divided >> (8 * n)) ^ constant
            wrong = named(m, f"wrong_{n}", self.rest ^ wanted)
            same = Mux(self.right, wrong == 0, wrong >> (8 * (CHECK - n)) != 0)
            here = (at >= HEAD) & (at == HEAD + length + n)
            m.d.comb += claim(m, f"right_{n}", ~here | same)
