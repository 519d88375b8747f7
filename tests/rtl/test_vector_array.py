"""The vector array's RTL: every lane bit for bit and cycle for cycle the model of a lane."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of
from faults import drive
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_lanes import vector_lanes

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import LaneSteps, VectorLaneDesign
from archsim.machines.vsq.vector_lane_cases import random_steps
from archsim.numbers import IntArray, pack_lanes, unpack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core.delay import Delay
from rtl.core.sram import address_bits
from rtl.core.vector_array import VectorArray
from rtl.hierarchy import place

FLAGS = ("valid", "begin", "first", "last")
TAIL = 8


class Streamed(wiring.Component):
    """The array between two streams: a word is all its inputs, of one cycle.

    Between words all but the flags goes on to change.  What comes out, the sums in the cycle in
    which they are due, must be accepted at once.  changes: cycles in which the sums changed
    although none were due.
    """

    def __init__(self, design: VectorLaneDesign, lanes: int) -> None:
        self.design = design
        self.lanes = lanes
        out = lanes * design.mac.accumulator_bits
        super().__init__(
            {
                "i": In(stream.Signature(sum(word_lanes(design, lanes)))),
                "o": Out(stream.Signature(out)),
                "changes": Out(16),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports: Any = self
        unit = place(m, "unit", VectorArray, design=self.design, lanes=self.lanes)
        at = 0
        for name in (*FLAGS, "slot", "ifmap", "weight"):
            port = getattr(unit, name)
            value = ports.i.payload[at : at + len(port)]
            at += len(port)
            m.d.comb += port.eq(value & ports.i.valid if name in FLAGS else value)
        due = place(m, "due", Delay, bits=1, cycles=self.design.latency_cycles)
        m.d.comb += [
            due.i.eq(unit.valid & unit.last),
            ports.i.ready.eq(1),
            ports.o.valid.eq(due.o),
            ports.o.payload.eq(unit.sums),
        ]
        before = Signal.like(unit.sums, name="before")
        m.d.sync += before.eq(unit.sums)
        with m.If((unit.sums != before) & ~due.o):
            m.d.sync += ports.changes.eq(ports.changes + 1)
        return m


def vector_lane_bits(form: VectorFormat, length: int) -> list[int]:
    return [form.bits] * length + ([form.scale_bits] if form.scale_bits else [])


def word_lanes(design: VectorLaneDesign, lanes: int) -> tuple[int, ...]:
    """Widths of the parts of a word."""
    mac = design.mac
    return (
        *[1] * len(FLAGS),
        address_bits(design.depth),
        *vector_lane_bits(mac.activation, design.length),
        *vector_lane_bits(mac.weight, design.length) * lanes,
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """n cycles of inputs, and the steps that they mean for each lane."""

    words: np.ndarray[Any, Any]
    steps: list[LaneSteps]
    places: IntArray  # [steps], which of the words each is


def random_case(design: VectorLaneDesign, lanes: int, count: int, seed: int) -> Case:
    """Sets of random lengths, slots without a pixel (with random flags) among them.

    The weight word is random in every cycle: only that of `begin` may count.
    """
    rng = np.random.default_rng(seed)
    own = [random_steps(design, count, seed + 7 * lane) for lane in range(lanes)]
    cycles = 2 * count
    places = np.sort(rng.choice(np.arange(cycles), count, replace=False))
    begin = rng.random(cycles) < 0.3
    begin[0] = True
    source = rng.integers(0, count, cycles)  # whose weights are at the port
    taken = np.maximum.accumulate(np.where(begin, np.arange(cycles), 0))[places]
    steps = [
        replace(
            own[0],
            weight=lane.weight[source[taken]],
            weight_scale=lane.weight_scale[source[taken]],
        )
        for lane in own
    ]
    shown = rng.integers(0, count, cycles)
    shown[places] = np.arange(count)
    valid = np.zeros(cycles, np.int64)
    valid[places] = 1
    mac, step = design.mac, own[0]
    columns = [valid, begin, step.first[shown], step.last[shown], step.address[shown]]
    columns += _vector(mac.activation, step.activation[shown], step.activation_scale[shown])
    for lane in own:
        columns += _vector(mac.weight, lane.weight[source], lane.weight_scale[source])
    words = pack_lanes(np.column_stack(columns).astype(np.int64), word_lanes(design, lanes))
    return Case(words=words, steps=steps, places=places)


def _vector(form: VectorFormat, values: IntArray, scale: IntArray) -> list[IntArray]:
    return [*values.T, scale] if form.scale_bits else [*values.T]


Run = Callable[[Bench], Outcome]


def simulated(design: VectorLaneDesign, lanes: int) -> Run:
    return lambda bench: run_amaranth(Streamed(design, lanes), bench)


def compiled(design: VectorLaneDesign, lanes: int) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(Streamed(design, lanes))).run


def differences(
    design: VectorLaneDesign, lanes: int, case: Case, run: Run, gaps: int = 0
) -> list[str]:
    """What differs between RTL and model: sums, or the cycles in which they come."""
    bits = design.mac.accumulator_bits
    n = len(case.words)
    bench = Bench(
        ports=(
            StreamPort(name="i", direction="i", bits=sum(word_lanes(design, lanes))),
            StreamPort(name="o", direction="o", bits=lanes * bits),
        ),
        probes=(("changes", 16),),
        stimuli={
            "i": Stimulus.offer(case.words, gaps=np.random.default_rng(n).integers(0, gaps + 1, n)),
            "o": Stimulus.accept(int(case.steps[0].last.sum())),
        },
        max_cycles=(n + 20) * (gaps + 2),
        tail_cycles=TAIL,
    )
    outcome = run(bench)
    out = outcome.crossings["o"]
    start = outcome.crossings["i"].cycles[case.places].astype(np.int64)
    wanted = [design.compute(replace(steps, start_cycles=start)) for steps in case.steps]
    found: list[str] = []
    if not np.array_equal(out.cycles, wanted[0].cycles):
        found.append("cycles")
    sums = np.column_stack([results.sums for results in wanted])
    if not np.array_equal(unpack_lanes(out.words, (bits,) * lanes, (True,) * lanes), sums):
        found.append("sums")
    if outcome.probes["changes"]:
        found.append("sums that do not stay")
    return found


def _lane(
    scale_bits: tuple[int | None, int | None], *, length: int = 3, depth: int = 5, **changes: Any
) -> VectorLaneDesign:
    weight, activation = (
        VectorFormat(bits=4, signed=signed, vector=length if m else None, scale_bits=m)
        for m, signed in zip(scale_bits, (True, False), strict=True)
    )
    mac = VectorMac(weight=weight, activation=activation, accumulator_bits=20)
    return VectorLaneDesign(mac=mac, length=length, depth=depth, **changes)


SCALED = _lane((4, 6))
DESIGNS = [
    SCALED,
    _lane((4, 6), gated=True),
    _lane((None, 5), length=1, depth=1),
    _lane((None, None), length=7, depth=16),
]


@settings(max_examples=20)
@given(design=vector_lanes(longest=5), lanes=st.integers(1, 4), seed=st.integers(0, 99))
def test_any_array(design: VectorLaneDesign, lanes: int, seed: int) -> None:
    case = random_case(design, lanes, 25, seed)
    assert differences(design, lanes, case, simulated(design, lanes), gaps=seed % 2) == []


def test_many_sets_of_the_emitted_array() -> None:
    """20,000 slots of 4 lanes of V = 16 in Verilator, with gaps and without."""
    design, lanes = _lane((4, 8), length=16, depth=16), 4
    run, case = compiled(design, lanes), random_case(design, lanes, 20_000, seed=3)
    assert differences(design, lanes, case, run) == []
    assert differences(design, lanes, case, run, gaps=2) == []


Patch = Callable[[pytest.MonkeyPatch], None]


def _held(change: Callable[[VectorArray, Value], Value]) -> Patch:
    """Another word that the lanes take for their weights: from the port, and what is held."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        def mutated(self: VectorArray, m: Module) -> Value:
            held = Signal(len(self.weight), name="weight_held")
            with m.If(self.begin):
                m.d.sync += held.eq(self.weight)
            return change(self, held)

        monkeypatch.setattr(VectorArray, "_held", mutated)

    return patch


def _after(change: Callable[[Any, Any, Module], None]) -> Patch:
    """`change` overrides ports of lane 1 at the end of the array's elaboration."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = VectorArray.elaborate

        def mutated(self: Any, platform: object) -> Module:
            m = plain(self, platform)
            change(self, m.submodules["lane_1"], m)
            return m

        monkeypatch.setattr(VectorArray, "elaborate", mutated)

    return patch


def _begin_needs_a_pixel(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = VectorArray._held

    def mutated(self: Any, m: Module) -> Value:
        begin, self.begin = self.begin, self.begin & self.valid
        word = plain(self, m)
        self.begin = begin
        return word

    monkeypatch.setattr(VectorArray, "_held", mutated)


def _swapped(self: Any, word: Value) -> Value:
    bits = self.weight_bits
    return Cat(word[bits : 2 * bits], word[:bits], word[2 * bits :])


def _now(self: Any, held: Value) -> Value:
    return Mux(self.begin, self.weight, held)


MUTATIONS: dict[str, Patch] = {
    "weights not held": _held(lambda self, held: self.weight),
    "weights used a cycle late": _held(lambda self, held: held),
    "weights of two lanes swapped": _held(lambda self, held: _swapped(self, _now(self, held))),
    "weights only with a pixel": _begin_needs_a_pixel,
    "a bit of the slot dropped": _after(lambda self, lane, m: drive(m, lane.address[0], 0)),
    "the scale of weights dropped": _after(lambda self, lane, m: drive(m, lane.weight_scale, 1)),
    "the scale of the ifmap dropped": _after(
        lambda self, lane, m: drive(m, lane.activation_scale, 1)
    ),
    "a bit of the ifmap dropped": _after(lambda self, lane, m: drive(m, lane.activation[-1], 0)),
    "first ignored": _after(lambda self, lane, m: drive(m, lane.first, 0)),
    "last ignored": _after(lambda self, lane, m: drive(m, lane.last, 0)),
    "last in every slot": _after(lambda self, lane, m: drive(m, lane.last, 1)),
    "slots without a pixel counted": _after(lambda self, lane, m: drive(m, lane.valid_i, 1)),
    "a lane one cycle late": _after(lambda self, lane, m: _late_sums(self, lane, m)),
    "sums of a lane dropped": _after(
        lambda self, lane, m: drive(m, self.sums.word_select(1, len(lane.o)), 0)
    ),
}


def _late_sums(self: Any, lane: Any, m: Module) -> None:
    late = Signal(len(lane.o))
    m.d.sync += late.eq(lane.o)
    m.d.comb += self.sums.word_select(1, len(lane.o)).eq(late)


def _caught(design: VectorLaneDesign) -> bool:
    case = random_case(design, 3, 60, seed=8)
    return differences(design, 3, case, simulated(design, 3)) != []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert _caught(SCALED)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_untouched_array_passes(design: VectorLaneDesign) -> None:
    """The same slots show no difference without a fault, so the tests above mean something."""
    assert not _caught(design)
