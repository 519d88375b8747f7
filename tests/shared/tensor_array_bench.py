"""The tensor array's RTL, a word of all its inputs a cycle, compared with its model."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of
from hypothesis import strategies as st

from archsim.arithmetic.cases import random_operands
from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from archsim.arithmetic.formats import BF16, INT4, FloatFormat, IntegerFormat
from archsim.machines.tensorcore.tensor_array import TensorArrayDesign, TensorSets
from archsim.numbers import IntArray, pack_lanes, unpack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core.tensor_array import TensorArray
from rtl.hierarchy import place

DOTS = [
    VOLTA_FP32,
    VOLTA_FP16,
    replace(VOLTA_FP32, operand=BF16),
    INT8_DOT,
    DotProduct(operand=INT4, accumulator=IntegerFormat(bits=11), rules=None),
]
"""Units of all kinds: floats with wide and narrow sums, integers with and without overflow."""


class Streamed(wiring.Component):
    """The array between two streams: it takes and gives a word in every cycle.

    A word in is {weight, ifmap, last, first, begin}; a word out is `sums`, whatever they mean.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, design: TensorArrayDesign) -> None:
        self.design = design
        super().__init__(
            {
                "i": In(stream.Signature(sum(input_bits(design)))),
                "o": Out(stream.Signature(design.columns * design.dot.accumulator.bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = place(m, "unit", TensorArray, design=self.design)
        inputs = Cat(unit.begin, unit.first, unit.last, unit.ifmap, unit.weight)
        m.d.comb += [
            self.i.ready.eq(1),
            inputs.eq(self.i.payload),
            self.o.valid.eq(1),
            self.o.payload.eq(unit.sums),
        ]
        with m.If(~self.i.valid):
            m.d.comb += unit.begin.eq(0)
        return m


def input_bits(design: TensorArrayDesign) -> tuple[int, ...]:
    """Widths of an input word's lanes."""
    return (1, 1, 1) + (design.dot.operand.bits,) * (design.dot.length + design.columns)


def input_lanes(design: TensorArrayDesign, sets: TensorSets, seed: int) -> IntArray:
    """The input words of every cycle, [cycles, lanes], until the last row has left.

    All that must be ignored is random: operands between sets and in slots of none, flags without
    `begin`.
    """
    k, slots = design.dot.length, max(design.rows, design.dot.length)
    cycles = int(sets.begin_cycles[-1]) + slots
    rng = np.random.default_rng(seed)
    lanes = rng.integers(0, 1 << design.dot.operand.bits, (cycles, 3 + k + design.columns))
    lanes[:, 0] = 0
    lanes[:, 1:3] &= 1
    for n, begin in enumerate(sets.begin_cycles):
        lanes[begin, :3] = 1, sets.first[n], sets.last[n]
        lanes[begin : begin + design.rows, 3 : 3 + k] = sets.ifmap[n]
        lanes[begin : begin + k, 3 + k :] = sets.weight[n]
    return lanes


def random_sets(design: TensorArrayDesign, count: int, seed: int, *, gaps: int = 0) -> TensorSets:
    """`count` sets in blocks of one to four, with up to `gaps` idle cycles after every other one.

    Half of the sets hold operands aimed at the corners of the formats, the others any integers, or
    floats around 1, so that infinities and NaNs do not hide what comes after them.
    """
    rng = np.random.default_rng(seed)
    last = (rng.random(count) < 0.4).astype(np.int64)
    last[-1] = 1
    waits = rng.integers(0, gaps + 1, count) * rng.integers(0, 2, count)
    shape = (count, design.rows, design.dot.length), (count, design.columns, design.dot.length)
    ifmap, columns = (_operands(design.dot, each, rng) for each in shape)
    return TensorSets(
        begin_cycles=np.cumsum(waits + design.set_cycles),
        first=np.concatenate([[1], last[:-1]]),
        last=last,
        ifmap=ifmap,
        weight=np.ascontiguousarray(columns.swapaxes(1, 2)),
    )


def _operands(dot: DotProduct, shape: tuple[int, int, int], rng: np.random.Generator) -> IntArray:
    form = dot.operand
    values = rng.integers(0, 1 << form.bits, shape)
    if not isinstance(form, FloatFormat):
        return values
    field = np.maximum(form.bias + rng.integers(-1, 2, shape), 1)
    around_one = values & ~form.infinity | field << form.fraction_bits
    size = shape[0] * shape[1]
    corners = random_operands(dot, -(-size // 7), int(rng.integers(99))).a[:size].reshape(shape)
    return np.where(rng.random((shape[0], 1, 1)) < 0.3, corners, around_one)


Run = Callable[[Bench], Outcome]


def simulated(design: TensorArrayDesign) -> Run:
    return lambda bench: run_amaranth(Streamed(design), bench)


def compiled(design: TensorArrayDesign) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(Streamed(design))).run


def sums_of(design: TensorArrayDesign, sets: TensorSets, run: Run) -> IntArray:
    """What `sums` shows in every cycle, [cycles, columns], cycle 0 being that of the sets."""
    words = pack_lanes(input_lanes(design, sets, len(sets)), input_bits(design))
    cycles = len(words) + design.set_cycles + design.drain_start_cycles + design.rows + 1
    bits = (design.dot.accumulator.bits,) * design.columns
    bench = Bench(
        ports=(
            StreamPort(name="i", direction="i", bits=sum(input_bits(design))),
            StreamPort(name="o", direction="o", bits=sum(bits)),
        ),
        stimuli={"i": Stimulus.offer(words), "o": Stimulus.accept(cycles)},
        max_cycles=cycles + 1,
        tail_cycles=0,
    )
    crossings = run(bench).crossings
    assert np.array_equal(crossings["i"].cycles, np.arange(len(words)))
    assert np.array_equal(crossings["o"].cycles, np.arange(cycles))
    return unpack_lanes(crossings["o"].words, bits, (False,) * design.columns)


def differences(design: TensorArrayDesign, sets: TensorSets, run: Run) -> int:
    """Rows of which RTL and model differ, in the cycles that the model names."""
    rows = design.compute(sets)
    return int((sums_of(design, sets, run)[rows.cycles] != rows.sums).any(axis=1).sum())


@st.composite
def tensor_arrays(draw: st.DrawFn) -> TensorArrayDesign:
    """Any array of up to 16 units, of any of `DOTS` with any length."""
    dot = replace(draw(st.sampled_from(DOTS)), length=draw(st.integers(1, 5)))
    return TensorArrayDesign(
        dot=dot,
        octets=draw(st.integers(1, 2)),
        group_columns=draw(st.integers(1, 4)),
        rows=2 * draw(st.integers(1, 8)),
    )
