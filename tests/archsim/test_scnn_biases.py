"""Biases that come late hold drains back: the model beside the stepped oracle, and its faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_module import Fault, faulty_module
from scnn_passes import Shape, oracle_answer, random_run

from archsim.machines.scnn import biases, timing
from archsim.machines.scnn.design import Scnn
from archsim.timing import Service
from rtl.sparse_conformance import SparseCase

DESIGN = Scnn(
    grid_rows=1, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=8,
    filter_group=2, operand_bits=8, iaram_bytes=400, oaram_bytes=400,
)  # fmt: skip
SHAPES = (
    Shape(plane=(2, 3), channels=1, filters=11, has_bias=True),
    Shape(plane=(3, 4), channels=2, filters=7, kernel=(3, 3), pad=(1, 1), has_bias=True),
)


LARGE_GROUPS = replace(DESIGN, group_rule="dnnsim")
"""Of 8 filters, four times as many as `filter_group` says."""


def _cases() -> list[Any]:
    found: list[Any] = []
    for seed, gap, design in (
        (1, 0, DESIGN), (2, 3, DESIGN), (5, 2, LARGE_GROUPS), (3, 17, DESIGN), (4, 40, DESIGN)
    ):  # fmt: skip
        runs = tuple(random_run(design, shape, seed) for shape in SHAPES)
        words = sum(shape.filters for shape in SHAPES)
        idle = {"bias": np.random.default_rng(seed).integers(0, gap + 1, words)}
        found.append(SparseCase(design=design, runs=runs, idle=idle))
    return found


def test_a_group_may_be_larger_than_twice_the_published_most() -> None:
    sizes = [one.mapping.group_size for one in _cases()[2].answer().timings]
    assert max(sizes) > 2 * DESIGN.filter_group


def _agrees(case: Any) -> bool:
    found, known = case.answer(), oracle_answer(case)
    return all(
        np.array_equal(found.transfers[port].cycle, known.transfers[port].cycle)
        for port in known.transfers
    )


@pytest.mark.parametrize("case", _cases())
def test_the_model_waits_as_the_oracle(case: Any) -> None:
    assert _agrees(case)


def test_a_drain_waits_and_a_queue_is_full() -> None:
    """What the cases are for: words late enough to be waited for, and words with no place."""
    slow, fast = _cases()[-1], _cases()[0]
    free = replace(slow, idle={})
    assert slow.answer().cycles > free.answer().cycles
    crossed = fast.answer().timings[0].bias_cycles
    assert np.diff(crossed)[: 2 * DESIGN.filter_group - 1].max() == 1 < np.diff(crossed).max()


@pytest.mark.parametrize("latency", [0, 1, 30])
def test_the_first_word_waits_for_the_memory_side(latency: int) -> None:
    """Until its latency has gone by since the cycle behind the command."""
    strip = _cases()[0].passes[0].strip
    late = timing.Services(bias=Service(latency_cycles=latency))
    found = timing.pass_timing(DESIGN, strip.mapping, strip.operands, late)
    assert found.bias_cycles[0] == 1 + latency


FAULTS: dict[str, Fault] = {
    "a drain a cycle early": ("TAKEN_CYCLES = 2", "TAKEN_CYCLES = 1"),
    "a drain a cycle late": ("TAKEN_CYCLES = 2", "TAKEN_CYCLES = 3"),
    "gaps ignored": ("before + int(self._intervals[n])", "before + 1"),
    "a queue without an end": ("if n >= self._depth else 0", "if False else 0"),
    "a queue of a place more": ("2 * max(", "1 + 2 * max("),
    "given back a cycle early": ("begin + (k + 1) * mapping", "begin - 1 + (k + 1) * mapping"),
    "given back when the halo begins": ("drain_start + mapping.move_cycles(group)", "drain_start"),
    "the first word with the command": ("1 + service.latency_cycles", "service.latency_cycles"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = _cases()
    copy = faulty_module(biases, tmp_path, FAULTS[name])
    monkeypatch.setattr(timing, "BiasPort", copy.BiasPort)
    assert not all(_agrees(case) for case in cases)
