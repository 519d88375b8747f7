"""A lane of a vector MAC with per-vector scales: multipliers, scale path and collector."""

from functools import reduce
from operator import mul
from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import VectorLaneDesign
from rtl.core.adder_tree import AdderTree
from rtl.core.delay import Delay
from rtl.core.sram import Sram, address_bits
from rtl.hierarchy import place


def token_layout(depth: int, gated: bool) -> data.StructLayout:
    """What travels beside a step: its entry, and whether that begins anew and is given out.

    zero, of a gated lane: the step adds nothing, whatever its term looks like.
    """
    flags = {"valid": 1, "first": 1, "last": 1, **({"zero": 1} if gated else {})}
    return data.StructLayout({**flags, "address": address_bits(depth)})


class ScaleRound(wiring.Component):
    """o = round(i / 2^dropped), half up, at most what o holds.  Combinational.

    Members
    -------
    i: the product of two scales, unsigned; o: its upper bits.
    """

    i: Signal
    o: Signal

    def __init__(self, *, bits: int, dropped_bits: int) -> None:
        self.dropped_bits = dropped_bits
        self.kept_bits = bits - dropped_bits
        super().__init__({"i": In(bits), "o": Out(self.kept_bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.dropped_bits == 0:
            m.d.comb += self.o.eq(self.i)
            return m
        rounded = Signal(self.kept_bits + 1)
        half = 1 << (self.dropped_bits - 1)
        m.d.comb += [
            rounded.eq((self.i + half) >> self.dropped_bits),
            self.o.eq(rounded[:-1] | rounded[-1].replicate(self.kept_bits)),
        ]
        return m


class Collector(wiring.Component):
    """entry[address] ← limit((0 if first else entry[address]) + (0 if zero else term)).

    The token comes one cycle before its term.  Latency: 2 cycles from the token to `o`, which has
    the new entry of a token with `last`.  Throughput: one term a cycle, the same entry in
    successive cycles included (the memory forwards what it writes).  Never stalls.  limit
    saturates, or wraps, at the width of o.

    Members
    -------
    token: where the term goes; term: a cycle later; valid_o, address_o, o: an entry given out,
    which o keeps until the next.
    """

    token: data.View
    term: Signal
    valid_o: Signal
    address_o: Signal
    o: Signal

    def __init__(
        self, *, term_bits: int, bits: int, depth: int, saturating: bool, gated: bool
    ) -> None:
        self.bits = bits
        self.depth = depth
        self.saturating = saturating
        self.gated = gated
        self.token_layout = token_layout(depth, gated)
        super().__init__(
            {
                "token": In(self.token_layout),
                "term": In(signed(term_bits)),
                "valid_o": Out(1),
                "address_o": Out(address_bits(depth)),
                "o": Out(signed(bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        adding = Signal(self.token_layout)
        zero: Value = adding.zero if self.gated else C(0, 1)
        store = place(m, "store", Sram, bits=self.bits, depth=self.depth, transparent=True)
        before = Mux(adding.first, 0, store.read_data.as_signed())
        total = Signal(self.bits)
        m.d.comb += [
            total.eq(self._limited(m, before + Mux(zero, 0, self.term))),
            store.read_address.eq(self.token.address),
            store.write.eq(adding.valid & (adding.first | ~zero)),
            store.write_address.eq(adding.address),
            store.write_data.eq(total),
        ]
        m.d.sync += [adding.eq(self.token), self.valid_o.eq(adding.valid & adding.last)]
        with m.If(adding.valid & adding.last):
            m.d.sync += [self.o.eq(total), self.address_o.eq(adding.address)]
        return m

    def _limited(self, m: Module, total: Value) -> Value:
        if not self.saturating:
            return total[: self.bits]
        exact = Signal.like(total, name="exact")
        upper = exact[self.bits - 1 :]
        fits = upper.all() | ~upper.any()
        m.d.comb += exact.eq(total)
        negative = exact[-1]
        end = Cat((~negative).replicate(self.bits - 1), negative)
        return Mux(fits, exact[: self.bits], end)


class VectorLane(wiring.Component):
    """S[address] ← limit((0 if first else S[address]) + (Σ w_i · a_i) · round(s_w · s_a)).

    With `last`, S[address] is at o and valid_o is 1 after the latency.  Stages: hold the operands
    (if gated) while the scales are multiplied and rounded; multiply (beside the scales, if not
    gated); the levels of the adder tree; scale (if there are scales); accumulate.  Latency:
    `design.latency_cycles`, 2 + ⌈log2 V⌉, one more with scales and one more if gated.
    Throughput: one step a cycle, of the same entry too.  Never stalls: who takes the results must
    be ready for them.

    Members
    -------
    valid_i, first, last, address: of a step; weight, activation: V lanes of values, lane 0 lowest;
    weight_scale, activation_scale: where the format has scales; valid_o, address_o, o: an entry
    given out, which o keeps until the next.
    """

    valid_i: Signal
    first: Signal
    last: Signal
    address: Signal
    weight: Signal
    activation: Signal
    valid_o: Signal
    address_o: Signal
    o: Signal

    def __init__(self, *, design: VectorLaneDesign) -> None:
        self.design = design
        mac = design.mac
        ports: dict[str, Any] = {
            **{name: In(1) for name in ("valid_i", "first", "last")},
            "address": In(address_bits(design.depth)),
            "weight": In(design.length * mac.weight.bits),
            "activation": In(design.length * mac.activation.bits),
            "valid_o": Out(1),
            "address_o": Out(address_bits(design.depth)),
            "o": Out(signed(mac.accumulator_bits)),
        }
        for name, form in (("weight", mac.weight), ("activation", mac.activation)):
            if form.scale_bits is not None:
                ports[f"{name}_scale"] = In(form.scale_bits)
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self.design
        token = Signal(token_layout(design.depth, design.gated))
        m.d.comb += [
            token.valid.eq(self.valid_i),
            token.first.eq(self.first),
            token.last.eq(self.last),
            token.address.eq(self.address),
        ]
        weight, activation = self.weight, self.activation
        if not design.scaled:
            self._collect(m, token.as_value(), self._dot(m, weight, activation))
            return m
        scale = self._scale(m)
        if design.gated:
            used = self.valid_i & (scale != 0)
            m.d.comb += token.zero.eq(scale == 0)
            scale = self._held(m, "scale_held", scale, used)
            weight = self._held(m, "weight_held", weight, used)
            activation = self._held(m, "activation_held", activation, used)
        term = self._scaled(m, self._dot(m, weight, activation), scale)
        self._collect(m, token.as_value(), term)
        return m

    def _scale(self, m: Module) -> Value:
        """The product of scales, rounded; a format without scales has the scale 1."""
        mac = self.design.mac
        ports: Any = self
        factors: list[Value] = []
        if mac.weight.scale_bits is not None:
            factors.append(ports.weight_scale)
        if mac.activation.scale_bits is not None:
            factors.append(ports.activation_scale)
        bits = mac.full_scale_bits
        rounding = place(m, "scale_round", ScaleRound, bits=bits, dropped_bits=mac.dropped_bits)
        m.d.comb += rounding.i.eq(reduce(mul, factors))
        return rounding.o

    def _held(self, m: Module, name: str, value: Value, used: Value) -> Signal:
        """The value of the last step that was used."""
        held = Signal(len(value), name=name, reset_less=True)
        with m.If(used):
            m.d.sync += held.eq(value)
        return held

    def _dot(self, m: Module, weight: Value, activation: Value) -> Value:
        """Σ w_i · a_i, 1 + ⌈log2 V⌉ cycles later."""
        design, mac = self.design, self.design.mac
        bits = design.product_bits
        tree = place(m, "tree", AdderTree, lanes=design.length, bits=bits)
        for lane in range(design.length):
            w, a = _lane(weight, lane, mac.weight), _lane(activation, lane, mac.activation)
            product = Signal(signed(bits), name=f"product_{lane}", reset_less=True)
            m.d.sync += product.eq(w * a)
            m.d.comb += tree.i.word_select(lane, bits).eq(product)
        return tree.o

    def _scaled(self, m: Module, total: Value, scale: Value) -> Signal:
        """The sum of products times the scale of the same step, a cycle later."""
        cycles = 1 + self.design.tree_levels
        line = place(m, "scale_delay", Delay, bits=len(scale), cycles=cycles)
        term = Signal(signed(self.design.term_bits), reset_less=True)
        m.d.comb += line.i.eq(scale)
        m.d.sync += term.eq(total * line.o)
        return term

    def _collect(self, m: Module, token: Value, term: Value) -> None:
        design, mac = self.design, self.design.mac
        line = place(m, "token_delay", Delay, bits=len(token), cycles=design.accumulate_cycle - 1)
        collector = place(
            m,
            "collector",
            Collector,
            term_bits=design.term_bits,
            bits=mac.accumulator_bits,
            depth=design.depth,
            saturating=mac.overflow == "saturate",
            gated=design.gated,
        )
        m.d.comb += [
            line.i.eq(token),
            collector.token.eq(line.o),
            collector.term.eq(term),
            self.valid_o.eq(collector.valid_o),
            self.address_o.eq(collector.address_o),
            self.o.eq(collector.o),
        ]


def _lane(values: Value, lane: int, form: VectorFormat) -> Value:
    value = values.word_select(lane, form.bits)
    return value.as_signed() if form.signed else value
