"""The floating output stage in RTL: equal to the model; faults are caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from faults import Patch, after, drive, placed
from float_output_bench import (
    HALF,
    MIXED,
    Tile,
    Tiles,
    compiled,
    random_tiles,
    run_tiles,
    simulated,
    tile_differences,
)
from float_sum_bench import Sizes, held_late, with_rules
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.float_sum import FloatOutput
from archsim.arithmetic.formats import BF16, FP16, FP32, FloatFormat
from rtl.core import float_output
from rtl.core.float_output import FloatOutputStage, FloatRequantize
from rtl.core.output_stage import OutputStage
from rtl.core.sram import Sram

E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)


@pytest.mark.parametrize("tiles", [MIXED, HALF, replace(MIXED, scalar_bias=True, queue_depth=2)])
def test_tiles_leave_as_the_model_says(tiles: Tiles) -> None:
    for gaps in (0, 3):
        all_tiles = random_tiles(tiles, 8, seed=gaps)
        assert not tile_differences(tiles, all_tiles, simulated(tiles), gaps)


@settings(max_examples=8)
@given(
    columns=st.integers(1, 3), depth=st.integers(1, 9), scalar=st.booleans(),
    accumulator=st.sampled_from([FP16, FP32, E3M2]), ofmap=st.sampled_from([FP16, BF16, E3M2]),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_any_tiles(columns: int, depth: int, scalar: bool, seed: int, **formats: Any) -> None:
    sizes = Sizes(columns=columns, depth=depth, accumulator=formats["accumulator"])
    tiles = Tiles(sizes=sizes, output=FloatOutput(**formats), scalar_bias=scalar)
    assert not tile_differences(tiles, random_tiles(tiles, 3, seed), simulated(tiles), 1)


@pytest.mark.parametrize("tiles", [MIXED, pytest.param(HALF, marks=pytest.mark.slow)])
def test_many_tiles_in_the_emitted_verilog(tiles: Tiles) -> None:
    run = compiled(tiles)
    for gaps in (0, 2):
        assert not tile_differences(tiles, random_tiles(tiles, 300, seed=9), run, gaps)


def test_words_leave_at_their_latency_one_a_cycle() -> None:
    """Read a cycle after `done`, at the port 6 cycles later; seven places for words suffice."""
    assert MIXED.output.latency_cycles == 3
    for queue_depth, interval in ((8, 1), (7, 1), (6, 2)):
        tiles = replace(MIXED, sizes=Sizes(depth=12, columns=1), queue_depth=queue_depth)
        ones = np.full((2, 12, 1), 0x3F800000)
        tile = Tile(steps=1, pixels=12, relu=0, bias=np.array([[0]]), sums=ones)
        crossings = run_tiles(tiles, [tile], simulated(tiles)).crossings
        read = int(crossings["rows"].cycles[-1]) + tiles.sizes.latency + 1
        assert crossings["ofmap"].cycles[:5].tolist() == [read + 6 + n for n in range(5)]
        steps = np.diff(crossings["ofmap"].cycles)
        assert int(steps.max()) == interval


def _latency(cycles: int) -> Patch:
    """The stage believes in another latency of its columns."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(FloatOutputStage, "column_latency_cycles", 3 + cycles)

    return patch


def _relu(change: Callable[[Module, list[Any]], Any]) -> Patch:
    """ReLU as another stage of the pipeline has it."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = FloatOutputStage._column
        monkeypatch.setattr(
            FloatOutputStage,
            "_column",
            lambda self, m, column, stages: plain(self, m, column, [change(m, stages)]),
        )

    return patch


def _late_stage(m: Module, stages: list[Any]) -> Any:
    late = Signal.like(stages[-1])
    m.d.sync += late.eq(stages[-1])
    return late


def _late_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = OutputStage._bias

    def mutated(self: Any, m: Module, *given_: Any) -> Any:
        return held_late(m, plain(self, m, *given_))

    monkeypatch.setattr(OutputStage, "_bias", mutated)


# One cycle early ReLU is still that of the word: a command is taken between two tiles.
OUTPUT_FAULTS: dict[str, Patch] = {
    "words taken one cycle late": _latency(1),
    "words taken one cycle early": _latency(-1),
    "ReLU one cycle late": _relu(_late_stage),
    "ReLU two cycles early": _relu(lambda m, stages: stages[-3]),
    "no ReLU": after(FloatRequantize, lambda self, m: drive(m, self.o, m.submodules["sum"].o)),
    "ReLU of every sign": after(FloatRequantize, lambda self, m: drive(m, self.o[-1], 0)),
    "bias one cycle late": _late_bias,
    "no bias": after(
        FloatRequantize,
        lambda self, m: drive(m, m.submodules["sum"].a[len(self.acc) :], 0),
    ),
    "fewer aligned bits": placed(
        float_output, name="sum", design=with_rules(aligned_fraction_bits=11)
    ),
    "truncated": placed(float_output, name="sum", design=with_rules(rounding="truncate")),
    "subnormal words dropped": placed(
        float_output, name="sum", design=with_rules(subnormal_outputs=False)
    ),
    "a bit dropped in every memory": after(Sram, lambda self, m: drive(m, self.read_data[0], 0)),
}


def _output_caught() -> bool:
    all_tiles = random_tiles(MIXED, 14, seed=2)
    return tile_differences(MIXED, all_tiles, simulated(MIXED))


@pytest.mark.parametrize("name", OUTPUT_FAULTS)
def test_a_fault_in_the_output_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    OUTPUT_FAULTS[name](monkeypatch)
    assert _output_caught()


def test_the_untouched_unit_passes() -> None:
    """The same stimuli show no difference without a fault, so the tests above mean something."""
    assert not _output_caught()
