"""The sums of a PE: those of its products, segment by segment, or of all lanes."""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.adder_tree import sum_of
from rtl.core.sram import address_bits
from rtl.core.train_float_sums import TrainFloatSums
from rtl.core.train_sums import TrainSums
from rtl.hierarchy import place


class TrainTotals(wiring.Component):
    """Of each segment in `parts` its sums (`TrainSums`) take in the sum of its own lanes' products
    where `split` is 1, else that of all lanes.

    Latency, throughput, members of the same name: as `TrainSums`.  Never stalls.

    Members
    -------
    products: of each lane.  output: without its segment.  drain_address: with it, lowest.
    """

    sums: type[TrainSums | TrainFloatSums] = TrainSums

    step: Signal
    last: Signal
    parts: Signal
    output: Signal
    products: Signal
    first: Signal
    half: Signal
    split: Signal
    drain: Signal
    drain_half: Signal
    drain_address: Signal
    drain_data: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.design = design
        split: dict[str, Any] = {"split": In(1)} if design.segments > 1 else {}
        super().__init__(
            {
                "step": In(1),
                "last": In(1),
                "parts": In(design.segments),
                "output": In(address_bits(design.segment_outputs)),
                "products": In(design.lanes * 2 * design.operand_bits),
                "first": In(1),
                "half": In(1),
                **split,
                "drain": In(1),
                "drain_half": In(1),
                "drain_address": In(address_bits(design.own_outputs)),
                "drain_data": Out(design.accumulator_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, within = Module(), (self.design.segments - 1).bit_length()
        shown: list[Value] = []
        for number, value in enumerate(self._values(m)):
            sums = place(m, f"segment_{number}", self.sums, design=self.design)
            m.d.comb += [
                sums.step.eq(self.step & self.parts[number]),
                sums.last.eq(self.last & self.parts[number]),
                sums.value.eq(value),
                sums.drain_address.eq(self.drain_address[within:]),
                *(
                    getattr(sums, name).eq(getattr(self, name))
                    for name in ("output", "first", "half", "drain", "drain_half")
                ),
            ]
            shown.append(sums.drain_data)
        if not within:
            m.d.comb += self.drain_data.eq(shown[0])
            return m
        of = Signal(within, name="drained")
        m.d.sync += of.eq(self.drain_address[:within])
        m.d.comb += self.drain_data.eq(Array(shown)[of])
        return m

    def _values(self, m: Module) -> list[Value]:
        """Of each segment what its sums take in."""
        design, bits = self.design, 2 * self.design.operand_bits
        products: list[Value] = [
            self.products.word_select(lane, bits).as_signed() for lane in range(design.lanes)
        ]
        lanes = design.segment_lanes
        own = [sum_of(products[at : at + lanes]) for at in range(0, design.lanes, lanes)]
        if design.segments == 1:
            return own
        whole = sum_of(own)
        return [Mux(self.split, one, whole) for one in own]


__all__ = ["TrainTotals"]
