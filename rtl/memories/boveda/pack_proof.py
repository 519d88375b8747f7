"""What is proved of Boveda's shifters: what is put among other bits is read from there again."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.core.boveda_shift import Pack, Unpack
from rtl.formal import claim


@dataclass(frozen=True, kw_only=True)
class Format:
    """The parameters of a unit: `group` lanes of `container_bits`, of which widths may be 0."""

    group: int
    container_bits: int
    signed: bool = True
    zero_width: bool = False


class PackProof(wiring.Component):
    """Unpack(Pack(x, p) among any bits) = x; Pack sets no other bits; w is the least width."""

    def __init__(self, form: Format) -> None:
        self.form = form
        row = form.group * form.container_bits
        super().__init__(
            {"values": In(row), "p": In(range(form.container_bits)), "others": In(2 * row)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports: Any = self
        form, bits = self.form, self.form.container_bits
        m.submodules.pack = pack = Pack(**vars(form))
        sizes = {"group": form.group, "container_bits": bits, "signed": form.signed}
        m.submodules.unpack = unpack = Unpack(**sizes)
        own = Signal(2 * bits)
        m.d.comb += [
            pack.values.eq(ports.values),
            pack.p.eq(ports.p),
            own.eq(((1 << pack.w) - 1) << ports.p),
            unpack.p.eq(ports.p),
            unpack.w.eq(pack.w),
        ]
        for lane in range(form.group):
            column = pack.columns.word_select(lane, 2 * bits)
            others = ports.others.word_select(lane, 2 * bits)
            seen = Signal(2 * bits, name=f"seen_{lane}")
            m.d.comb += [
                seen.eq(column | others & ~own),
                unpack.current.word_select(lane, bits).eq(seen[:bits]),
                unpack.following.word_select(lane, bits).eq(seen[bits:]),
                claim(m, f"own_bits_{lane}", (column & ~own) == 0),
            ]
        m.d.comb += [
            claim(m, "values", unpack.values == ports.values),
            claim(m, "least_width", pack.w == self._least(ports.values)),
        ]
        return m

    def _least(self, values: Value) -> Value:
        """The least width that holds all values, said by comparisons."""
        form, bits = self.form, self.form.container_bits
        lanes = [values.word_select(lane, bits) for lane in range(form.group)]
        if form.signed:
            lanes = [lane.as_signed() for lane in lanes]
        least = 2 if form.signed or form.zero_width else 1
        width: Value = Const(bits)
        for tried in reversed(range(least, bits)):
            top = 1 << (tried - form.signed)
            fits = [(lane < top) & (lane > -top) for lane in lanes]
            width = Mux(Cat(fits).all(), tried, width)
        return Mux(values.any(), width, 0) if form.zero_width else width


__all__ = ["Format", "PackProof"]
