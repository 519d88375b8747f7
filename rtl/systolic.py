"""The systolic core in Amaranth: the twin of `archsim.machines.systolic.design`."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Signal, Value

from archsim.machines.systolic.design import Systolic
from rtl.core.accumulating_array import AccumulatingArray
from rtl.core.machine import Core
from rtl.core.pipelined_output import PipelinedOutputStage
from rtl.core.registered_accumulators import RegisteredAccumulators
from rtl.core.stationary_array import StationaryArray
from rtl.core.tokens import MovingTokens
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.verification import Verification


class SystolicCore(Core):
    """ofmap = requantize(ifmap ∗ weight + bias), a layer a command, on a systolic array.

    Latencies, throughput and back-pressure: `docs/contracts/systolic.md`; every latency is a
    property of the design.

    Members
    -------
    command, ifmap, weight, bias, ofmap: `design.ports`; count_<action>: performance counters.
    """

    @staticmethod
    def verification() -> "Verification":
        """How it is proved (`rtl.verification`)."""
        from rtl.systolic_verification import SystolicVerification

        return SystolicVerification()

    def __init__(self, design: Systolic) -> None:
        super().__init__(design)
        self.moving_weights = design.dataflow == "input_stationary"
        self.trailing = design.dataflow == "output_stationary"
        self.load_shape = {
            "weight_stationary": {"slots": "run", "steps": True, "block": None},
            "input_stationary": {"slots": design.columns, "steps": False, "block": design.columns},
            "output_stationary": None,
        }[design.dataflow]

    @property
    def stream_shape(self) -> dict[str, Any]:
        rows, columns = self.design.rows, self.design.columns
        shapes: dict[str, dict[str, Any]] = {
            "weight_stationary": {"slots": "pixels", "steps": True, "block": None},
            "input_stationary": {"slots": "filters", "steps": False, "block": columns},
            "output_stationary": {"slots": rows, "steps": True, "block": rows},
        }
        return shapes[self.design.dataflow]

    @property
    def chunk(self) -> int:
        return self.design.rows

    def weight_reads(self) -> Value:
        """Output-stationary: the elements of a chunk stand in its last slots (`trailing`)."""
        if self.decoupled:
            return Value.cast(1)
        return self.weight_walk.slot >= self.design.rows - self.weight_walk.elements

    def array(self, m: Module) -> Value:
        return self._stationary_array(m) if self.decoupled else self._accumulating_array(m)

    def _shape(self) -> dict[str, int]:
        design = self.design
        in_luts = {"lut_rows": design.lut_product_rows} if design.lut_product_rows else {}
        return {
            **in_luts,
            "rows": design.rows,
            "columns": design.columns,
            "operand_bits": design.operand_bits,
            "accumulator_bits": design.accumulator_bits,
            "product_registers": design.product_registers,
        }

    def _stationary_array(self, m: Module) -> Value:
        stream_walk, load_walk = self.stream_walk, self.load_walk
        latency = self.design.operand_latency_cycles
        load_bank, stream_bank = Signal(), Signal()
        m.d.sync += [
            load_bank.eq(load_bank ^ (load_walk.issue & load_walk.last_slot)),
            stream_bank.eq(stream_bank ^ (stream_walk.issue & stream_walk.last_slot)),
        ]
        array = place(m, "array", StationaryArray, **self._shape(), across=self.moving_weights)
        pixels, weights = self.banks.o, self.weights.o
        capture = Cat(load_walk.issue & load_walk.first_slot, load_bank)
        m.d.comb += [
            array.moving.eq(weights if self.moving_weights else pixels),
            array.stationary.eq(pixels if self.moving_weights else weights),
            array.bank.eq(self.delayed(m, "bank_delay", stream_bank, latency)),
            array.capture.eq(self.delayed(m, "capture_delay", capture, latency)),
        ]
        return array.sums

    def _accumulating_array(self, m: Module) -> Value:
        walk, latency = self.stream_walk, self.design.operand_latency_cycles
        array = place(m, "array", AccumulatingArray, **self._shape())
        group_first = self.group_first(m, walk)
        begin = walk.issue & walk.first_slot
        flags = Cat(begin & group_first, walk.issue & walk.last_slot & walk.group_last)
        m.d.comb += [
            array.begin.eq(self.delayed(m, "begin_delay", begin, latency - 1)),
            Cat(array.first, array.last).eq(self.delayed(m, "flag_delay", flags, latency)),
            array.ifmap.eq(self.banks.o),
            array.weight.eq(self.delayed(m, "weight_delay", self.weights.o, 1)),
        ]
        return array.sums

    def accumulators(self, m: Module) -> Any:
        design = self.design
        if not design.accumulator_registers:
            return super().accumulators(m)
        return place(m, "accumulators", RegisteredAccumulators, **self.accumulator_shape())

    def output_shape(self) -> dict[str, Any]:
        registers = self.design.accumulator_registers
        return super().output_shape() | ({"read_registers": registers} if registers else {})

    def output_stage(self, m: Module) -> Any:
        registers = self.design.output_registers
        if not registers:
            return super().output_stage(m)
        shape = {**self.output_shape(), "registers": registers}
        return place(m, "output_stage", PipelinedOutputStage, **shape)

    def place_tokens(self, m: Module) -> tuple[Any, int]:
        if not self.decoupled:
            return super().place_tokens(m)
        depth = self.design.depth("accumulator")
        return place(m, "tokens", MovingTokens, depth=depth), 0
