"""Max pooling in the SCNN core: RTL, model and oracle under stalls, chains, random cases."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scnn_bench import passes
from scnn_passes import Shape, oracle_answer, random_run
from scnn_pools import (
    APART,
    FLAT,
    FOUR,
    ONE,
    PADDED,
    PLANE,
    POINT,
    ROW,
    SIX,
    STRIDED,
    THREE,
    TWO,
    WIDE,
    Chain,
    one,
)

from archsim.errors import InputError
from archsim.machines.scnn.words import pass_words
from archsim.ports import differences
from rtl.cases import Draw, random_case
from rtl.scnn import COUNTS
from rtl.sparse_cases import random_runs
from rtl.sparse_conformance import SparseCase
from workloads.pooling import MaxPool

KEPT = Chain(
    shapes=(
        replace(PLANE, plane=(8, 6), pool=TWO),
        Shape(plane=(4, 3), channels=3, filters=4, kernel=(3, 3), pad=(1, 1), pool=WIDE),
        Shape(plane=(4, 3), channels=4, filters=2, pool=TWO),
    ),
    keeps=(True, True),
    longest=2,
)
STRIPS = one(
    replace(PLANE, plane=(9, 6)),
    replace(THREE, pad=(1, 1)),
    replace(FOUR, iaram_bytes=32),
    longest=2,
)
CASES = {
    "3x3, two apart": one(PLANE, THREE, longest=2),
    "2x2": one(PLANE, TWO, longest=2),
    "2x2, a stride": one(STRIDED, TWO, SIX, longest=2),
    "padded": one(PLANE, PADDED, SIX, longest=2, seed=4),
    "apart": one(PLANE, APART, SIX, longest=2),
    "a window of one": one(PLANE, ONE, ROW),
    "a plane of one": one(POINT, WIDE),
    "a row": one(FLAT, MaxPool(window=(1, 3), stride=(1, 2)), ROW, longest=1),
    "strips": STRIPS,
    "pooled and not": Chain(
        shapes=(replace(FLAT, pool=MaxPool(window=(1, 2), stride=(1, 2))), FLAT, FLAT), design=ROW
    ),
    "ofmaps that stay": KEPT,
}


@pytest.mark.parametrize("name", CASES)
def test_rtl_model_and_oracle_answer_alike(name: str) -> None:
    """Every word of every port and its cycle, and the counts."""
    case = CASES[name].made
    model, oracle = case.answer(), oracle_answer(case)
    for found in differences(oracle.transfers, model.transfers):
        assert found.first is None, str(found)
    assert {name: model.actions[name] for name in COUNTS} == oracle.actions
    assert passes(case)


def test_cases_are_what_they_say() -> None:
    assert len(STRIPS.made.passes) > 2
    actions = {name: chain.made.answer().actions for name, chain in CASES.items()}
    assert all(found["window_read"] > 0 for found in actions.values())
    assert {name for name, found in actions.items() if not found["copy_sum"]} == {
        "2x2", "2x2, a stride", "a window of one", "a plane of one", "pooled and not",
    }  # fmt: skip
    for run in KEPT.made.runs:
        assert np.mean(run.operands.ifmap != 0) > 0.2


def test_random_cases_are_pooled() -> None:
    """With copies, conv groups, ofmaps that stay, and more than one pass of a plane."""
    seen = Counter[str]()
    for number in range(150):
        case = random_case(5, number, replace(FOUR, iaram_bytes=40, banks=8), longest_words=2000)
        assert isinstance(case, SparseCase)
        pooled = [found for found in case.passes if found.run.pool]
        seen["pooled"] += bool(pooled)
        seen["copies"] += any(found.strip.mapping.copy_cycles(0) for found in pooled)
        seen["groups"] += any(found.strip.mapping.groups > 1 for found in pooled)
        seen["conv groups"] += any(found.group for found in pooled)
        seen["kept"] += any(found.strip.mapping.keep_ofmap for found in pooled)
        seen["strips"] += any(found.strip.rows[0] + found.strip.columns[0] for found in pooled)
    assert all(seen[name] > 1 for name in ("copies", "groups", "conv groups", "kept", "strips"))
    assert 20 < seen["pooled"] < 100
    assert all(run.pool is None for run in random_runs(Draw(1), ROW) if run.layer.name == "product")


def test_a_window_that_no_command_holds() -> None:
    shape = replace(FLAT, plane=(1, 40), pool=MaxPool(window=(1, 32), stride=(1, 1)))
    with pytest.raises(InputError) as raised:
        pass_words(ROW, [random_run(ROW, shape, seed=1)])
    assert str(raised.value) == (
        "window_columns must be from 0 to 31 in a command of an scnn core, not 32"
    )
