"""The width of a Boveda group, and its values as codes of that width.

The format is in docs/contracts/boveda.md.  Two combinational halves with a register between them in
`rtl.core.boveda_compressor`: magnitudes with their OR, and the leading one of that OR.
"""

from typing import Any

from amaranth.hdl import C, Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.errors import require
from rtl.hierarchy import place

CONTAINER_BITS = (4, 8, 16)


def check_format(group: int, container_bits: int) -> None:
    """Raise `InputError` for a group below 1 or containers of other than 4, 8 or 16 bits."""
    require(group > 0, f"group must be positive, not {group}")
    require(
        container_bits in CONTAINER_BITS,
        f"container_bits must be 4, 8 or 16, not {container_bits}",
    )


class Magnitudes(wiring.Component):
    """sign and |value| of every lane, and the OR of all |value|.  Combinational.

    Unsigned values are their own magnitudes.  −2^(B−1) has the sign and magnitude bits of minus
    zero, and counts as 2^(B−2) in `ones`, so that its group is B bits wide.

    Members
    -------
    values: lanes of B bits, two's complement if signed, lane 0 lowest; magnitudes: lanes of B bits,
    the sign in bit B − 1 if signed; ones: OR of the magnitudes, B bits, of signed values B − 1.
    """

    values: Signal
    magnitudes: Signal
    ones: Signal

    def __init__(self, *, group: int, container_bits: int, signed: bool) -> None:
        check_format(group, container_bits)
        self.group = group
        self.container_bits = container_bits
        self.signed = signed
        super().__init__(
            {
                "values": In(group * container_bits),
                "magnitudes": Out(group * container_bits),
                "ones": Out(container_bits - signed),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not self.signed:
            m.d.comb += [self.magnitudes.eq(self.values), self.ones.eq(self._any(self.values))]
            return m
        bits = self.container_bits
        counted = Signal(self.group * bits)
        for lane in range(self.group):
            value = self.values.word_select(lane, bits)
            sign = value[-1]
            magnitude = Signal(bits, name=f"magnitude_{lane}")
            m.d.comb += [
                magnitude.eq((value ^ sign.replicate(bits)) + sign),
                counted.word_select(lane, bits).eq(magnitude),
                self.magnitudes.word_select(lane, bits).eq(Cat(magnitude[:-1], sign)),
            ]
        ones = Signal(bits)
        m.d.comb += [ones.eq(self._any(counted)), self.ones.eq(ones)]
        m.d.comb += self.ones[-1].eq(ones[-1] | ones[-2])
        return m

    def _any(self, lanes: Value) -> Value:
        """The OR of all lanes, bit by bit."""
        return Cat(lanes[bit :: self.container_bits].any() for bit in range(self.container_bits))


class GroupWidth(wiring.Component):
    """w = leading one of `ones` + 1, + 1 if signed; the codes of w bits.  Combinational.

    An all-zero group has w = 1, of signed values 2.  With `zero_width` it has w = 0, and unsigned
    values that need 1 bit take 2: then no group has w = 1.

    Members
    -------
    magnitudes, ones: from `Magnitudes`; w: 0 to B; codes: lanes of B bits, magnitude in the low
    w − 1 and sign in bit w − 1 (unsigned: magnitude in w bits), 0 above.
    """

    magnitudes: Signal
    ones: Signal
    w: Signal
    codes: Signal

    def __init__(
        self, *, group: int, container_bits: int, signed: bool, zero_width: bool = False
    ) -> None:
        check_format(group, container_bits)
        self.group = group
        self.container_bits = container_bits
        self.signed = signed
        self.zero_width = zero_width
        super().__init__(
            {
                "magnitudes": In(group * container_bits),
                "ones": In(container_bits - signed),
                "w": Out(range(container_bits + 1)),
                "codes": Out(group * container_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits, count = self.container_bits, len(self.ones)
        reached = [self.ones[bit:].any() for bit in range(count)]
        leading = Signal(count)
        above = [*reached[1:], C(0, 1)]
        m.d.comb += leading.eq(Cat(a & ~b for a, b in zip(reached, above, strict=True)))
        if not self.zero_width:
            m.d.comb += leading[0].eq(~above[0])
        for bit in range(len(self.w)):
            ways = [n for n in range(count) if self._width(n) >> bit & 1]
            m.d.comb += self.w[bit].eq(Cat(leading[n] for n in ways).any())
        if not self.signed:
            m.d.comb += self.codes.eq(self.magnitudes)
            return m
        for lane in range(self.group):
            magnitude = self.magnitudes.word_select(lane, bits)
            placed = Cat(C(0, 1), leading) & magnitude[-1].replicate(bits)
            m.d.comb += self.codes.word_select(lane, bits).eq(magnitude[:-1] | placed)
        return m

    def _width(self, leading: int) -> int:
        """w of a group whose leading one has that index."""
        return max(leading + 1 + self.signed, 2 if self.zero_width else 1)


def measured(
    m: Module, values: Value, *, zero_width: bool = False, **size: Any
) -> tuple[Signal, Signal]:
    """Width and codes of a group, two registers behind its values: magnitudes, width.

    size: of `Magnitudes`.
    """
    magnitudes = place(m, "measure", Magnitudes, **size)
    width = place(m, "narrow", GroupWidth, **size, zero_width=zero_width)
    held = Signal.like(magnitudes.magnitudes, reset_less=True, name="magnitudes_held")
    ones = Signal.like(magnitudes.ones, reset_less=True, name="ones_held")
    w = Signal.like(width.w, reset_less=True, name="width_held")
    codes = Signal.like(width.codes, reset_less=True, name="codes_held")
    m.d.comb += [
        magnitudes.values.eq(values),
        width.magnitudes.eq(held),
        width.ones.eq(ones),
    ]
    m.d.sync += [
        held.eq(magnitudes.magnitudes),
        ones.eq(magnitudes.ones),
        w.eq(width.w),
        codes.eq(width.codes),
    ]
    return w, codes
