"""The vector MAC core with per-vector scales in Amaranth, twin of `archsim.machines.vsq.design`."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Signal, Value, signed

from archsim.machines.vsq.design import Vsq
from rtl.core.machine import Core
from rtl.core.memory import made_of
from rtl.core.tokens import SlotTokens
from rtl.core.vector_array import VectorArray
from rtl.core.vector_output_stage import VectorOutputStage
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.verification import Verification


class VsqCore(Core):
    """ofmap = output(ifmap ∗ weight, bias), a layer a command, on lanes of vector MACs.

    Latencies, throughput and back-pressure: `docs/contracts/vsq.md`; every latency is a property
    of the design.

    Members
    -------
    command, ifmap, weight, bias, ofmap: `design.ports`; count_<action>: performance counters.
    """

    def __init__(self, design: Vsq) -> None:
        super().__init__(design)

    @staticmethod
    def verification() -> "Verification":
        """How it is proved (`rtl.verification`)."""
        from rtl.vsq_verification import VectorVerification

        return VectorVerification()

    @property
    def stream_shape(self) -> dict[str, Any]:
        """A set: a slot for each pixel of the block, while the weights are held."""
        return {"slots": "block", "steps": True, "block": self.design.hold_cycles}

    @property
    def chunk(self) -> int:
        return 1

    def array(self, m: Module) -> Value:
        design, walk = self.design, self.stream_walk
        array = place(m, "array", VectorArray, design=design.lane, lanes=design.lanes)
        begin = walk.issue & walk.first_slot
        # `group_first` answers for the whole set: it changes behind its last slot
        step = Cat(
            walk.issue,
            begin,
            self.group_first(m, walk),
            walk.group_last,
            walk.slot[: len(array.slot)],
        )
        late = self.delayed(m, "step_delay", step, design.operand_latency_cycles)
        m.d.comb += [
            Cat(array.valid, array.begin, array.first, array.last, array.slot).eq(late),
            array.ifmap.eq(self.banks.o),
            array.weight.eq(self.weights.o),
        ]
        collector = design.collector_bits
        sums = [
            Signal(signed(design.accumulator_bits), name=f"sum_{lane}")
            for lane in range(design.lanes)
        ]
        for lane, total in enumerate(sums):
            m.d.comb += total.eq(array.sums.word_select(lane, collector).as_signed())
        return Cat(sums)

    def place_tokens(self, m: Module) -> tuple[Any, int]:
        return place(m, "tokens", SlotTokens, depth=self.design.depth("accumulator")), 0

    def output_stage(self, m: Module) -> Any:
        design = self.design
        return place(
            m,
            "output_stage",
            VectorOutputStage,
            output=design.output,
            depths=(design.depth("accumulator"), design.depth("bias")),
            queue_depth=design.output_queue_depth,
            **made_of(design.bias_memory, design.use("bias")),
        )
