"""The sums of a PE's segment: of a dot product's steps, and of a tile's outputs."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.memory import Banks
from rtl.core.sram import address_bits


class SegmentSums(wiring.Component):
    """What sums of integers and of floats have alike: members, halves, and when they are written.

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

    def __init__(self, *, design: SparseTrain, value: Any) -> None:
        """value: shape of what they take in."""
        self.design = design
        address = address_bits(design.segment_outputs)
        super().__init__(
            {
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
        )

    def _a_cycle_later(self, m: Module) -> tuple[Signal, Signal, Signal, Signal]:
        """step, last, output, value."""
        step, last = Signal(), Signal()
        output, value = Signal.like(self.output), Signal.like(self.value)
        m.d.sync += [
            step.eq(self.step),
            last.eq(self.last),
            output.eq(self.output),
            value.eq(self.value),
        ]
        return step, last, output, value

    def _halves(self, m: Module, last: Signal, output: Signal) -> list[Any]:
        """Their memories; what is written with the last step is the caller's to say."""
        design = self.design
        banks = Banks(memory=design.accumulator_memory, use=design.use("accumulator"))
        found: list[Any] = []
        for half in (0, 1):
            words = banks.place(
                m, self, f"half_{half}", half, bits=design.accumulator_bits,
                depth=design.segment_outputs,
            )  # fmt: skip
            drains = self.drain & (self.drain_half == half)
            m.d.comb += [
                words.read_address.eq(Mux(drains, self.drain_address, self.output)),
                words.write.eq(last & (self.half == half)),
                words.write_address.eq(output),
            ]
            found.append(words)
        shown = [words.read_data for words in found]
        m.d.comb += self.drain_data.eq(Mux(self.drain_half, shown[1], shown[0]))
        return found


class TrainSums(SegmentSums):
    """sums[output] = (first: 0 else sums[output]) + Σ value of the steps up to the last one."""

    def __init__(self, *, design: SparseTrain) -> None:
        super().__init__(design=design, value=signed(design.step_bits))

    def elaborate(self, platform: object) -> Module:
        m, bits = Module(), self.design.accumulator_bits
        step, last, output, value = self._a_cycle_later(m)
        running, total = Signal(signed(bits)), Signal(signed(bits))
        m.d.comb += total.eq(running + value)
        with m.If(step):
            m.d.sync += running.eq(Mux(last, 0, total))
        for words in self._halves(m, last, output):
            held = Mux(self.first, 0, words.read_data).as_signed()
            m.d.comb += words.write_data.eq(total + held)
        return m


__all__ = ["SegmentSums", "TrainSums"]
