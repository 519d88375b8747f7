"""Floating accumulators in RTL: equal to the model in every cycle; faults are caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Const
from faults import Patch, after, drive, placed
from float_strategies import any_format
from float_sum_bench import NEAREST, Rows, Sizes, differences, held_late, random_rows, with_rules
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.arithmetic.cases import RULES
from archsim.arithmetic.formats import BF16, FP16, FP32
from rtl.core import float_accumulators, memory
from rtl.core.float_accumulators import FloatAccumulators
from rtl.core.float_align import Align

SIZES = [
    Sizes(),
    Sizes(accumulator=FP16, rules=NEAREST, columns=3, depth=1),
    Sizes(accumulator=BF16, rules=replace(NEAREST, accumulator_joins=False), columns=1, depth=7),
]


@pytest.mark.parametrize("sizes", SIZES)
def test_rows_are_added_up(sizes: Sizes) -> None:
    for gaps in (0, 3):
        rows = random_rows(sizes, 120, seed=gaps, gaps=gaps)
        assert differences(sizes, rows) == []


@settings(max_examples=15)
@given(
    sizes=st.builds(
        Sizes,
        columns=st.integers(1, 3),
        accumulator=any_format(23),
        rules=st.sampled_from(RULES),
        depth=st.integers(1, 9),
    ),
    seed=st.integers(0, 1000),
)
def test_any_accumulators(sizes: Sizes, seed: int) -> None:
    assert differences(sizes, random_rows(sizes, 25, seed), seed) == []


def test_a_row_may_come_again_after_the_latency_and_no_cycle_before() -> None:
    sizes = Sizes(columns=1, depth=1)
    ones = FP32.encode(np.ones((6, 1)))
    for apart, right in ((sizes.latency, True), (sizes.latency - 1, False)):
        flags = np.zeros(6, np.int64)
        rows = Rows(
            cycle=2 + apart * np.arange(6), half=flags, address=flags, sums=ones,
            overwrite=np.array([1, 0, 0, 0, 0, 0]), last=flags,
        )  # fmt: skip
        assert (differences(sizes, rows) == []) == right


def _total(flags: Callable[[Any], Any], held: Callable[[Any, Any], Any]) -> Patch:
    """Other operands of the adders: whether to overwrite, and what was held."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = FloatAccumulators._total
        monkeypatch.setattr(
            FloatAccumulators,
            "_total",
            lambda self, m, before, overwrite: plain(self, m, held(m, before), flags(overwrite)),
        )

    return patch


def _same(*values: Any) -> Any:
    return values[-1]


def _by(cycles: int) -> Callable[[int], int]:
    return lambda plain: plain + cycles


ACCUMULATOR_FAULTS: dict[str, Patch] = {
    "the token one cycle late": placed(float_accumulators, name="token_delay", cycles=_by(1)),
    "the token one cycle early": placed(float_accumulators, name="token_delay", cycles=_by(-1)),
    "overwriting sums one cycle late": placed(float_accumulators, name="sums_delay", cycles=_by(1)),
    "overwriting sums one cycle early": placed(
        float_accumulators, name="sums_delay", cycles=_by(-1)
    ),
    "what was held one cycle late": _total(_same, held_late),
    "a bit of what was held dropped": _total(_same, lambda m, before: before & ~1),
    "overwriting rows are added": _total(lambda overwrite: Const(0), _same),
    "added rows overwrite": _total(lambda overwrite: Const(1), _same),
    "forwarding ignored": placed(memory, name="half_*", transparent=lambda _: False),
    "rounding": placed(
        float_accumulators, name="adder_*", design=with_rules(rounding="nearest_even")
    ),
    "an aligned bit more": placed(
        float_accumulators, name="adder_*", design=with_rules(aligned_fraction_bits=24)
    ),
    "a bit dropped in the alignment": after(Align, lambda self, m: drive(m, self.o[0], 0)),
    "all rows are last": after(
        FloatAccumulators, lambda self, m: drive(m, self.done, self.count_write)
    ),
    "overwrites counted as reads": after(
        FloatAccumulators, lambda self, m: drive(m, self.count_read, self.count_write)
    ),
    "only one half is read": after(
        FloatAccumulators,
        lambda self, m: drive(m, self.read_data, m.submodules["half_0"].read_data),
    ),
}


def _accumulators_caught() -> bool:
    sizes = Sizes()
    return differences(sizes, random_rows(sizes, 120, seed=3)) != []


@pytest.mark.parametrize("name", ACCUMULATOR_FAULTS)
def test_a_fault_in_the_accumulators_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ACCUMULATOR_FAULTS[name](monkeypatch)
    assert _accumulators_caught()


def test_the_untouched_unit_passes() -> None:
    """The same stimuli show no difference without a fault, so the tests above mean something."""
    assert not _accumulators_caught()
