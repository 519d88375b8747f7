"""An array of vector lanes that share one activation vector and hold a weight vector each."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import VectorLaneDesign
from rtl.core.sram import address_bits
from rtl.core.vector_lane import VectorLane
from rtl.hierarchy import place


def vector_bits(form: VectorFormat, length: int) -> int:
    """Bits of one vector as a word: its values, and above them its scale if it has one."""
    return length * form.bits + (form.scale_bits or 0)


class VectorArray(wiring.Component):
    """S_f[slot] ← limit((0 if first else S_f[slot]) + (Σ w_f,i · a_i) · round(s_f · s_a)).

    f = 0 … lanes − 1, each a `VectorLane` of its own.  A set is the slots that use one weight
    word: the word comes with `begin`, is used in the same cycle, and is held until the next
    `begin`.  A slot counts if `valid` is 1; `begin` takes the weights in any case.  A gap, of
    cycles without `valid` or `begin`, may come anywhere.

    Latency: `design.latency_cycles` from a slot with `valid` and `last` to its row of sums, which
    stays until the next.  Throughput: one slot a cycle, the same one in successive cycles
    included, and sets of one slot.  Never stalls: who takes the sums must be ready for them.

    Members
    -------
    valid: a slot with a pixel; begin: a new weight word; first, last: the sums of this slot begin
    anew, are given out; slot: their entry of the collectors; ifmap: V values, lane 0 lowest, then
    their scale; weight: such a word a lane, lane 0 lowest; sums: an accumulator a lane.
    """

    valid: Signal
    begin: Signal
    first: Signal
    last: Signal
    slot: Signal
    ifmap: Signal
    weight: Signal
    sums: Signal

    def __init__(self, *, design: VectorLaneDesign, lanes: int) -> None:
        self.design = design
        self.lanes = lanes
        mac = design.mac
        self.weight_bits = vector_bits(mac.weight, design.length)
        super().__init__(
            {
                **{name: In(1) for name in ("valid", "begin", "first", "last")},
                "slot": In(address_bits(design.depth)),
                "ifmap": In(vector_bits(mac.activation, design.length)),
                "weight": In(lanes * self.weight_bits),
                "sums": Out(lanes * mac.accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        design = self.design
        weight = self._held(m)
        sums: list[Value] = []
        for number in range(self.lanes):
            lane = place(m, f"lane_{number}", VectorLane, design=design)
            m.d.comb += [
                lane.valid_i.eq(self.valid),
                lane.first.eq(self.first),
                lane.last.eq(self.last),
                lane.address.eq(self.slot),
            ]
            own = weight.word_select(number, self.weight_bits)
            self._connect(m, lane, "weight", own, design.mac.weight)
            self._connect(m, lane, "activation", self.ifmap, design.mac.activation)
            sums.append(lane.o)
        m.d.comb += self.sums.eq(Cat(sums))
        return m

    def _held(self, m: Module) -> Value:
        """The weight word of this cycle's set."""
        held = Signal(len(self.weight), name="weight_held", reset_less=True)
        with m.If(self.begin):
            m.d.sync += held.eq(self.weight)
        now = Signal(len(self.weight), name="weight_now")
        m.d.comb += now.eq(Mux(self.begin, self.weight, held))
        return now

    def _connect(self, m: Module, lane: Any, name: str, word: Value, form: VectorFormat) -> None:
        """A vector to a lane's port of values, and to that of their scale."""
        values = self.design.length * form.bits
        m.d.comb += getattr(lane, name).eq(word[:values])
        if form.scale_bits is not None:
            m.d.comb += getattr(lane, f"{name}_scale").eq(word[values:])
