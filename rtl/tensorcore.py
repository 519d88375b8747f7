"""The tensor core's core in Amaranth: the twin of `archsim.machines.tensorcore.design`."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Value

from archsim.machines.tensorcore.design import TensorCore
from rtl.core.float_accumulators import FloatAccumulators
from rtl.core.float_output import FloatOutputStage
from rtl.core.machine import Core
from rtl.core.memory import made_of
from rtl.core.pipelined_output import PipelinedOutputStage
from rtl.core.tensor_array import TensorArray
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.verification import Verification


class TensorCoreRtl(Core):
    """ofmap = output(ifmap ∗ weight, bias), a layer a command, on a tensor core.

    Latencies, throughput and back-pressure: `docs/contracts/tensorcore.md`; every latency is a
    property of the design.

    Members
    -------
    command, ifmap, weight, bias, ofmap: `design.ports`; count_<action>: performance counters.
    """

    def __init__(self, design: TensorCore) -> None:
        super().__init__(design)

    @staticmethod
    def verification() -> "Verification":
        """How it is proved (`rtl.verification`)."""
        from rtl.tensorcore_verification import TensorVerification

        return TensorVerification()

    @property
    def stream_shape(self) -> dict[str, Any]:
        """A set: T slots, of which `rows` bring a pixel each."""
        design = self.design
        return {"slots": design.array.set_cycles, "steps": True, "block": design.rows}

    @property
    def chunk(self) -> int:
        return self.design.length

    def array(self, m: Module) -> Value:
        design, walk = self.design, self.stream_walk
        array = place(m, "array", TensorArray, design=design.array)
        begin = walk.issue & walk.first_slot
        flags = Cat(begin, begin & self.group_first(m, walk), begin & walk.group_last)
        late = self.delayed(m, "flag_delay", flags, design.operand_latency_cycles)
        elements = design.length * design.operand_bits
        m.d.comb += [
            Cat(array.begin, array.first, array.last).eq(late),
            array.ifmap.eq(self.banks.o[:elements]),
            array.weight.eq(self.weights.o),
        ]
        return array.sums

    def accumulators(self, m: Module) -> Any:
        design = self.design
        if not design.floating:
            return super().accumulators(m)
        return place(
            m,
            "accumulators",
            FloatAccumulators,
            columns=design.columns,
            accumulator=design.dot.accumulator,
            rules=design.dot.rules,
            depth=design.depth("accumulator"),
            **made_of(design.accumulator_memory, design.use("accumulator")),
        )

    def output_stage(self, m: Module) -> Any:
        design = self.design
        if design.output_registers:
            shape = {**self.output_shape(), "registers": design.output_registers}
            return place(m, "output_stage", PipelinedOutputStage, **shape)
        if not design.floating:
            return super().output_stage(m)
        return place(
            m,
            "output_stage",
            FloatOutputStage,
            columns=design.columns,
            output=design.float_output,
            depths=(design.depth("accumulator"), design.depth("bias")),
            queue_depth=design.output_queue_depth,
            scalar_bias=False,
            **made_of(design.bias_memory, design.use("bias")),
        )
