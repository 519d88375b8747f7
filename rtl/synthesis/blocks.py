"""The building blocks of `energy_models.component` as hardware, one at every size of a grid.

Sizes are attributes of the component kind. Combinational blocks have no registers of their own;
what drives them and what they drive belongs to other components.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.core.one_hot import chosen
from rtl.to_verilog import rtlil_to_verilog

__all__ = ["BLOCKS", "Block", "grid", "module_name", "verilog"]


class Multiplier(wiring.Component):
    """o = a · b, signed, in full width. Combinational."""

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, *, a_bits: int, b_bits: int) -> None:
        shapes = {"a": In(signed(a_bits)), "b": In(signed(b_bits))}
        super().__init__({**shapes, "o": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self.a * self.b)
        return m


class Adder(wiring.Component):
    """o = a + b, modulo 2^bits. Combinational."""

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, *, bits: int) -> None:
        super().__init__({"a": In(bits), "b": In(bits), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self.a + self.b)
        return m


class Register(wiring.Component):
    """o[t + 1] = i[t]: flip-flops without enable or reset."""

    i: Signal
    o: Signal

    def __init__(self, *, bits: int) -> None:
        self.bits = bits
        super().__init__({"i": In(bits), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stored = Signal(self.bits, reset_less=True)
        m.d.sync += stored.eq(self.i)
        m.d.comb += self.o.eq(stored)
        return m


class Multiplexer(wiring.Component):
    """o = the way of i that `select` names, one beyond the last counting as the last.

    Combinational; `select` is a binary number.
    """

    i: Signal
    select: Signal
    o: Signal

    def __init__(self, *, bits: int, ways: int) -> None:
        self.ways = ways
        self.bits = bits
        choice = max((ways - 1).bit_length(), 1)
        super().__init__({"i": In(bits * ways), "select": In(choice), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.Switch(self.select):
            for way in range(self.ways - 1):
                with m.Case(way):
                    m.d.comb += self.o.eq(self.i.word_select(way, self.bits))
            with m.Default():
                m.d.comb += self.o.eq(self.i.word_select(self.ways - 1, self.bits))
        return m


class OneHot(wiring.Component):
    """o = the way of i whose bit of `strobe` is 1, 0 if none is: AND-OR, as in `rtl.core.one_hot`.

    Combinational; at most one strobe may be 1.
    """

    i: Signal
    strobe: Signal
    o: Signal

    def __init__(self, *, bits: int, ways: int) -> None:
        self.ways = ways
        self.bits = bits
        super().__init__({"i": In(bits * ways), "strobe": In(ways), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ways = range(self.ways)
        choices = [(self.strobe[way], self.i.word_select(way, self.bits)) for way in ways]
        m.d.comb += self.o.eq(chosen(choices))
        return m


class Shifter(wiring.Component):
    """o = i « distance, modulo 2^bits, any distance below the width. Combinational."""

    i: Signal
    distance: Signal
    o: Signal

    def __init__(self, *, bits: int) -> None:
        reach = max((bits - 1).bit_length(), 1)
        super().__init__({"i": In(bits), "distance": In(reach), "o": Out(bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self.i << self.distance)
        return m


class Mac(wiring.Component):
    """o = addend + a · b, signed, modulo 2^accumulator_bits. Combinational: no registers."""

    a: Signal
    b: Signal
    addend: Signal
    o: Signal

    def __init__(self, *, operand_bits: int, accumulator_bits: int) -> None:
        operand, total = signed(operand_bits), signed(accumulator_bits)
        super().__init__({"a": In(operand), "b": In(operand), "addend": In(total), "o": Out(total)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq(self.addend + self.a * self.b)
        return m


@dataclass(frozen=True, kw_only=True)
class Block:
    """A kind's hardware and the sizes at which it is characterised, one tuple an attribute.

    shape: attributes in the order of the tuples of `sizes`.
    """

    component: type[wiring.Component]
    shape: tuple[str, ...]
    sizes: tuple[tuple[int, ...], ...]


def grid(*axes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Every combination of sizes."""
    found: tuple[tuple[int, ...], ...] = ((),)
    for axis in axes:
        found = tuple((*sizes, size) for sizes in found for size in axis)
    return found


_OPERANDS = (2, 3, 4, 6, 8, 12, 16)
_WIDE = (24, 32, 48)
_CHOICES = grid((1, 4, 16, 32, 64, 128), (2, 3, 4, 6, 8, 16, 32))

BLOCKS: Mapping[str, Block] = {
    "mac": Block(
        component=Mac,
        shape=("operand_bits", "accumulator_bits"),
        sizes=grid(_OPERANDS, (8, 16, 24, 32, 40)),
    ),
    "multiplier": Block(
        component=Multiplier,
        shape=("a_bits", "b_bits"),
        sizes=tuple((a, b) for a, b in grid((*_OPERANDS, *_WIDE), _OPERANDS) if a >= b),
    ),
    "adder": Block(
        component=Adder, shape=("bits",), sizes=grid((2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64))
    ),
    "register": Block(
        component=Register, shape=("bits",), sizes=grid((1, 2, 4, 8, 16, 32, 64, 256, 1024))
    ),
    "mux": Block(
        component=Multiplexer,
        shape=("bits", "ways"),
        sizes=_CHOICES,
    ),
    "one_hot": Block(component=OneHot, shape=("bits", "ways"), sizes=_CHOICES),
    "shifter": Block(component=Shifter, shape=("bits",), sizes=grid((8, 12, 16, 24, 32, 48, 64))),
}
"""What is characterised. A multiplier's operands may be swapped: only a_bits ≥ b_bits is measured.
"control" is measured on designs, not on a block of its own."""


def module_name(kind: str, sizes: tuple[int, ...]) -> str:
    """The Verilog module of a block: "mac_8_32"."""
    return "_".join([kind, *map(str, sizes)])


def rtlil_text(kind: str, sizes: tuple[int, ...]) -> str:
    """A block in Yosys' own language, module `module_name(kind, sizes)`."""
    block = BLOCKS[kind]
    component = block.component(**dict(zip(block.shape, sizes, strict=True)))
    text: str = rtlil.convert(component, name=module_name(kind, sizes), emit_src=False)
    return text.replace("attribute \\top 1\n", "")


def verilog(blocks: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    """Blocks as Verilog modules, and a module `top` that has each of them once, unconnected."""
    chosen = list(blocks)
    texts = [rtlil_text(kind, sizes) for kind, sizes in chosen]
    instances = [f"  {module_name(*one)} one_{number}();" for number, one in enumerate(chosen)]
    top = "\n".join(["module top();", *instances, "endmodule"])
    return f"{rtlil_to_verilog(chr(10).join(texts))}\n{top}\n"
