"""The vector lane's RTL: bit for bit and cycle for cycle the model, and faults are caught."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import C, Cat
from amaranth.sim import Simulator
from faults import Patch, after, drive, placed
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_lane_bench import compiled, differences, inputs, simulated
from vector_lanes import vector_lanes

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import LaneSteps, VectorLaneDesign
from archsim.machines.vsq.vector_lane_cases import random_steps
from rtl.core import vector_lane
from rtl.core.adder_tree import AdderTree
from rtl.core.vector_lane import ScaleRound, VectorLane


def _lane(
    bits: tuple[int, int],
    scale_bits: tuple[int | None, int | None],
    *,
    length: int = 4,
    gated: bool = False,
    depth: int = 3,
    **widths: Any,
) -> VectorLaneDesign:
    """A lane of signed weights and unsigned activations."""
    weight, activation = (
        VectorFormat(bits=n, signed=signed, vector=length if scale else None, scale_bits=scale)
        for n, scale, signed in zip(bits, scale_bits, (True, False), strict=True)
    )
    mac = VectorMac(weight=weight, activation=activation, **widths)
    return VectorLaneDesign(mac=mac, length=length, gated=gated, depth=depth)


PLAIN = _lane((4, 4), (4, 6))
ROUNDED = _lane((4, 4), (4, 6), scale_product_bits=6, accumulator_bits=16)
NARROW = _lane((3, 4), (5, 5), scale_product_bits=3, accumulator_bits=10, overflow="wrap")
GATED = replace(ROUNDED, gated=True)
UNSCALED = _lane((8, 8), (None, None), accumulator_bits=20)
DESIGNS = [PLAIN, ROUNDED, NARROW, GATED, UNSCALED]


@pytest.mark.parametrize("design", DESIGNS)
def test_random_steps_aimed_at_corners(design: VectorLaneDesign) -> None:
    steps = random_steps(design, 300, seed=1)
    assert differences(design, steps, simulated(design)) == []
    assert differences(design, steps, simulated(design), gaps=3) == []


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 64])
@pytest.mark.parametrize("scale_bits", [(4, 6), (None, None)])
def test_any_length(length: int, scale_bits: tuple[int | None, int | None]) -> None:
    design = _lane((4, 8), scale_bits, length=length, depth=1 if length == 2 else 4)
    steps = random_steps(design, 40, seed=length)
    assert differences(design, steps, simulated(design), gaps=1) == []


@settings(max_examples=30)
@given(design=vector_lanes(longest=9), seed=st.integers(0, 99))
def test_any_lane(design: VectorLaneDesign, seed: int) -> None:
    steps = random_steps(design, 25, seed)
    assert differences(design, steps, simulated(design)) == []


@pytest.mark.parametrize(
    "design",
    [
        _lane((4, 4), (4, 6), length=16, depth=16),
        _lane((4, 4), (4, 6), length=16, depth=16, scale_product_bits=6, gated=True),
        _lane((4, 8), (6, 10), length=16, depth=16, accumulator_bits=40, overflow="wrap"),
        _lane((8, 8), (None, None), length=16, depth=16),
    ],
)
def test_many_random_steps(design: VectorLaneDesign) -> None:
    """50,000 steps, in the emitted Verilog."""
    steps, run = random_steps(design, 50_000, seed=5), compiled(design)
    assert differences(design, steps, run) == []
    assert differences(design, steps, run, gaps=1) == []


_placed = partial(placed, vector_lane)


def _token(change: Callable[[Any], Any]) -> Patch:
    """Another token, of bits valid, first, last and zero, and then the address."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = VectorLane._collect
        monkeypatch.setattr(
            VectorLane, "_collect", lambda self, m, token, term: plain(self, m, change(token), term)
        )

    return patch


def _always_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorLane, "_held", lambda self, m, name, value, used: value)


def _later(cycles: int) -> int:
    return cycles + 1


def _earlier(cycles: int) -> int:
    return cycles - 1


MUTATIONS: dict[str, tuple[VectorLaneDesign, Patch]] = {
    "the token one cycle late": (PLAIN, _placed(name="token_delay", cycles=_later)),
    "the token one cycle early": (PLAIN, _placed(name="token_delay", cycles=_earlier)),
    "the token one cycle late, no scales": (UNSCALED, _placed(name="token_delay", cycles=_later)),
    "the scale one cycle late": (PLAIN, _placed(name="scale_delay", cycles=_later)),
    "the scale one cycle early": (PLAIN, _placed(name="scale_delay", cycles=_earlier)),
    "operands not held": (GATED, _always_used),
    "a gated step that adds what is held": (
        GATED,
        _token(lambda token: Cat(token[:3], C(0, 1), token[4:])),
    ),
    "a gated step that begins no entry": (
        GATED,
        _token(lambda token: Cat(token[0], token[1] & ~token[3], token[2:])),
    ),
    "a bit dropped in the scale product": (
        PLAIN,
        after(ScaleRound, lambda self, m: drive(m, self.o[0], 0)),
    ),
    "the top bit of the scale product dropped": (
        PLAIN,
        after(ScaleRound, lambda self, m: drive(m, self.o[-1], 0)),
    ),
    "scales truncated": (
        ROUNDED,
        after(ScaleRound, lambda self, m: drive(m, self.o, self.i >> self.dropped_bits)),
    ),
    "ties of scales rounded down": (
        ROUNDED,
        after(
            ScaleRound,
            lambda self, m: drive(
                m, self.o, (self.i + (1 << (self.dropped_bits - 1)) - 1) >> self.dropped_bits
            ),
        ),
    ),
    "a rounded scale product that wraps": (
        NARROW,
        after(
            ScaleRound,
            lambda self, m: drive(
                m, self.o, (self.i + (1 << (self.dropped_bits - 1))) >> self.dropped_bits
            ),
        ),
    ),
    "the scale path ignored": (PLAIN, after(ScaleRound, lambda self, m: drive(m, self.o, 1))),
    "forwarding ignored": (ROUNDED, _placed(name="store", transparent=lambda _: False)),
    "saturation ignored": (ROUNDED, _placed(name="collector", saturating=lambda _: False)),
    "saturation where sums wrap": (NARROW, _placed(name="collector", saturating=lambda _: True)),
    "a sign lost in the tree": (
        UNSCALED,
        after(AdderTree, lambda self, m: drive(m, self.o[-1], 0)),
    ),
}


def _caught(design: VectorLaneDesign) -> bool:
    return differences(design, random_steps(design, 200, seed=8), simulated(design)) != []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    design, patch = MUTATIONS[name]
    patch(monkeypatch)
    assert _caught(design)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_untouched_lane_passes(design: VectorLaneDesign) -> None:
    """The same steps show no difference without a fault, so the tests above mean something."""
    assert not _caught(design)


ONE_STEP = LaneSteps(
    start_cycles=np.array([0]),
    weight=np.ones((1, 1), np.int64),
    activation=np.ones((1, 1), np.int64),
    weight_scale=np.array([1]),
    activation_scale=np.array([1]),
    address=np.array([0]),
    first=np.array([1]),
    last=np.array([1]),
)
"""A vector of one 1, with the scale 1."""


def _shown(design: VectorLaneDesign, steps: LaneSteps, watch: Callable[[VectorLane], Any]) -> Any:
    """What `watch` names, cycle after cycle, while the steps are driven from cycle 3 on.

    Between steps and after them all inputs are 0.
    """
    unit = VectorLane(design=design)
    shown: list[int] = []
    width = {name: len(getattr(unit, name)) for name, _ in inputs(design)}
    start = {int(cycle) + 3: n for n, cycle in enumerate(steps.start_cycles)}

    async def bench(context: Any) -> None:
        for cycle in range(max(start) + 20):
            n = start.get(cycle)
            context.set(unit.valid_i, n is not None)
            for name in width:
                values = [] if n is None else np.atleast_1d(getattr(steps, name)[n]).tolist()
                lane_bits = width[name] // max(len(values), 1)
                masked = [value % (1 << lane_bits) for value in values]
                word = sum(value << (lane_bits * at) for at, value in enumerate(masked))
                context.set(getattr(unit, name), word)
            shown.append(context.get(watch(unit)))
            await context.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return shown


@pytest.mark.parametrize("length", [1, 4, 6])
@pytest.mark.parametrize(
    ("scale_bits", "gated"), [((4, 6), False), ((4, 6), True), ((None, None), False)]
)
def test_the_entry_is_there_at_its_latency_and_no_cycle_before(
    length: int, scale_bits: tuple[int | None, int | None], gated: bool
) -> None:
    """One step of ones, and nothing else: what o shows, whatever valid_o says."""
    design = _lane((4, 4), scale_bits, length=length, gated=gated)
    ones = np.ones((1, length), np.int64)
    steps = replace(ONE_STEP, weight=ones, activation=ones)
    due = 3 + design.latency_cycles
    shown = _shown(design, steps, lambda unit: unit.o)
    assert shown == [0] * due + [length] * (len(shown) - due)
    shown = _shown(design, steps, lambda unit: unit.valid_o)
    assert [cycle for cycle, valid in enumerate(shown) if valid] == [due]


@pytest.mark.parametrize("gated", [True, False])
def test_gating_keeps_the_data_path_still(gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step with a scale, then random ones, with gaps, whose scale product rounds to zero."""
    design = replace(ROUNDED, gated=gated)
    scale = np.array([15, *[1] * 39])
    steps = replace(
        random_steps(design, 40, seed=2),
        start_cycles=np.arange(40) * 2,
        weight_scale=scale,
        activation_scale=scale,
    )
    trees: list[AdderTree] = []
    after(AdderTree, lambda self, m: trees.append(self))(monkeypatch)
    sums = _shown(design, steps, lambda unit: trees[0].o)
    changes = int((np.diff(sums) != 0).sum())
    assert changes == 1 if gated else changes > 40
