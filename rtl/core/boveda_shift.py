"""A Boveda group in the columns of two rows: put there (`Pack`), and read from there (`Unpack`).

The format is in docs/contracts/boveda.md.  Everything here is combinational: compressor and
decompressor put registers between the parts; a memory that reads two rows at once needs none.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.boveda_width import GroupWidth, Magnitudes, check_format
from rtl.hierarchy import place


class ShiftIn(wiring.Component):
    """columns = codes · 2^p, lane by lane, in 2 B bits.  Combinational.

    Members
    -------
    codes: lanes of B bits; p: the pointer, below B; columns: lanes of 2 B bits, the lower half in
    the row that p points into, the upper half in the next.
    """

    codes: Signal
    p: Signal
    columns: Signal

    def __init__(self, *, group: int, container_bits: int) -> None:
        check_format(group, container_bits)
        self.group = group
        self.container_bits = container_bits
        super().__init__(
            {
                "codes": In(group * container_bits),
                "p": In(range(container_bits)),
                "columns": Out(2 * group * container_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.container_bits
        for lane in range(self.group):
            column = self.codes.word_select(lane, bits) << self.p
            m.d.comb += self.columns.word_select(lane, 2 * bits).eq(column)
        return m


class ShiftOut(wiring.Component):
    """o = bits p to p + B − 1 of the columns of two rows, lane by lane.  Combinational.

    Members
    -------
    current, following: the row that p points into and the next, lanes of B bits; p: the pointer,
    below B; o: lanes of B bits, a group's code at the bottom and bits of the next groups above it.
    """

    current: Signal
    following: Signal
    p: Signal
    o: Signal

    def __init__(self, *, group: int, container_bits: int) -> None:
        check_format(group, container_bits)
        self.group = group
        self.container_bits = container_bits
        row = group * container_bits
        super().__init__(
            {
                "current": In(row),
                "following": In(row),
                "p": In(range(container_bits)),
                "o": Out(row),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.container_bits
        for lane in range(self.group):
            low, high = (row.word_select(lane, bits) for row in (self.current, self.following))
            m.d.comb += self.o.word_select(lane, bits).eq(Cat(low, high[:-1]) >> self.p)
        return m


class Expand(wiring.Component):
    """values = codes of w bits, whatever is above them, as containers.  Combinational.

    A signed value has sign s in bit w − 1: bit B − 1 of the container is s, and the bits below are
    those of −magnitude if s, else of magnitude.  So minus zero is −2^(B−1), which the format has
    for w = B; below that width it is not of the format, and the value means nothing.

    Members
    -------
    codes: lanes of B bits; w: 0 to B; values: lanes of B bits, two's complement if signed.
    """

    codes: Signal
    w: Signal
    values: Signal

    def __init__(self, *, group: int, container_bits: int, signed: bool) -> None:
        check_format(group, container_bits)
        self.group = group
        self.container_bits = container_bits
        self.signed = signed
        super().__init__(
            {
                "codes": In(group * container_bits),
                "w": In(range(container_bits + 1)),
                "values": Out(group * container_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self.container_bits
        of_magnitude = Signal(bits)
        of_sign = Signal(bits)
        m.d.comb += [
            of_magnitude.eq(Cat(self.w > bit + self.signed for bit in range(bits))),
            of_sign.eq(Cat(self.w == bit + 1 for bit in range(bits))),
        ]
        for lane in range(self.group):
            code = self.codes.word_select(lane, bits)
            value = self.values.word_select(lane, bits)
            if not self.signed:
                m.d.comb += value.eq(code & of_magnitude)
                continue
            magnitude = Signal(bits - 1, name=f"magnitude_{lane}")
            sign = Signal(name=f"sign_{lane}")
            m.d.comb += [
                magnitude.eq(code & of_magnitude),
                sign.eq((code & of_sign).any()),
                value.eq(Cat(((magnitude ^ sign.replicate(bits - 1)) + sign)[: bits - 1], sign)),
            ]
        return m


class Pack(wiring.Component):
    """w and the columns of a group that begins at pointer p.  Combinational.

    Members
    -------
    values: lanes of B bits, two's complement if signed; p: below B; w: the group's width, 0 (only
    with `zero_width`) to B; columns: lanes of 2 B bits, zero outside bits p to p + w − 1.
    """

    values: Signal
    p: Signal
    w: Signal
    columns: Signal

    def __init__(
        self, *, group: int, container_bits: int, signed: bool, zero_width: bool = False
    ) -> None:
        check_format(group, container_bits)
        self.size = {"group": group, "container_bits": container_bits}
        self.signed = signed
        self.zero_width = zero_width
        super().__init__(
            {
                "values": In(group * container_bits),
                "p": In(range(container_bits)),
                "w": Out(range(container_bits + 1)),
                "columns": Out(2 * group * container_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        signs = {**self.size, "signed": self.signed}
        magnitudes = place(m, "magnitudes", Magnitudes, **signs)
        width = place(m, "width", GroupWidth, **signs, zero_width=self.zero_width)
        shift = place(m, "shift", ShiftIn, **self.size)
        m.d.comb += [
            magnitudes.values.eq(self.values),
            width.magnitudes.eq(magnitudes.magnitudes),
            width.ones.eq(magnitudes.ones),
            shift.codes.eq(width.codes),
            shift.p.eq(self.p),
            self.w.eq(width.w),
            self.columns.eq(shift.columns),
        ]
        return m


class Unpack(wiring.Component):
    """The group of width w at pointer p of two rows.  Combinational.

    Bits outside p to p + w − 1 do not matter, nor does `following` if p + w ≤ B.

    Members
    -------
    current, following: the row that p points into and the next, lanes of B bits; p: below B;
    w: 0 to B; values: lanes of B bits, two's complement if signed.
    """

    current: Signal
    following: Signal
    p: Signal
    w: Signal
    values: Signal

    def __init__(self, *, group: int, container_bits: int, signed: bool) -> None:
        check_format(group, container_bits)
        self.size = {"group": group, "container_bits": container_bits}
        self.signed = signed
        row = group * container_bits
        super().__init__(
            {
                "current": In(row),
                "following": In(row),
                "p": In(range(container_bits)),
                "w": In(range(container_bits + 1)),
                "values": Out(row),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift = place(m, "shift", ShiftOut, **self.size)
        expand = place(m, "expand", Expand, **self.size, signed=self.signed)
        m.d.comb += [
            shift.current.eq(self.current),
            shift.following.eq(self.following),
            shift.p.eq(self.p),
            expand.codes.eq(shift.o),
            expand.w.eq(self.w),
            self.values.eq(expand.values),
        ]
        return m
