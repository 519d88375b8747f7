"""The sums of a PE's segment: of a dot product's steps, and of a tile's outputs."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.memory import Banks
from rtl.core.sram import address_bits


class TrainSums(wiring.Component):
    """sums[output] = (first: 0 else sums[output]) + Σ value of the steps up to the last one.

    Two halves: of the tile that is computed, and of the one that leaves.  Latency: written in the
    cycle behind the last step.  Throughput: a step a cycle; an output is not written again in the
    cycle behind its last one.  Never stalls.

    Members
    -------
    step, last, output, value: a step, and whether it is the output's last.  first, half: of the
    block, in the cycle behind a step.
    drain, drain_half, drain_address: what is read, in `drain_data` a cycle later.
    """

    step: Signal
    last: Signal
    output: Signal
    value: Signal
    first: Signal
    half: Signal
    drain: Signal
    drain_half: Signal
    drain_address: Signal
    drain_data: Signal

    def __init__(self, *, design: SparseTrain) -> None:
        self.design = design
        super().__init__(sums_ports(design, signed(design.step_bits)))

    def elaborate(self, platform: object) -> Module:
        m, bits = Module(), self.design.accumulator_bits
        step, last = Signal(), Signal()
        output, value = Signal.like(self.output), Signal.like(self.value)
        running, total = Signal(signed(bits)), Signal(signed(bits))
        m.d.sync += [
            step.eq(self.step),
            last.eq(self.last),
            output.eq(self.output),
            value.eq(self.value),
        ]
        m.d.comb += total.eq(running + value)
        with m.If(step):
            m.d.sync += running.eq(Mux(last, 0, total))
        depth = self.design.segment_outputs
        banks = Banks(memory=self.design.accumulator_memory, use=self.design.use("accumulator"))
        shown: list[Signal] = []
        for half in (0, 1):
            words = banks.place(m, self, f"half_{half}", half, bits=bits, depth=depth)
            drains = self.drain & (self.drain_half == half)
            m.d.comb += [
                words.read_address.eq(Mux(drains, self.drain_address, self.output)),
                words.write.eq(last & (self.half == half)),
                words.write_address.eq(output),
                words.write_data.eq(total + Mux(self.first, 0, words.read_data).as_signed()),
            ]
            shown.append(words.read_data)
        m.d.comb += self.drain_data.eq(Mux(self.drain_half, shown[1], shown[0]))
        return m


def sums_ports(design: SparseTrain, value: Any) -> dict[str, Any]:
    """Of a segment's sums.  value: shape of what they take in."""
    address = address_bits(design.segment_outputs)
    return {
        "step": In(1),
        "last": In(1),
        "output": In(address),
        "value": In(value),
        "first": In(1),
        "half": In(1),
        "drain": In(1),
        "drain_half": In(1),
        "drain_address": In(address),
        "drain_data": Out(design.accumulator_bits),
    }


__all__ = ["TrainSums", "sums_ports"]
