"""Sequences of layers made small: what fails in one layer, or only in two, ends as no more."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from archsim.machines.systolic.design import Systolic
from rtl.cases import random_case
from rtl.conformance import Case
from rtl.coverage.shrink import follow, shrink
from rtl.layer_sequence import SequenceCase
from rtl.tile_conformance import TileCase

DESIGN = Systolic(rows=2, columns=2)


def sequence(layers: int) -> SequenceCase:
    """One of at least so many layers, some with a bias and some without."""
    for number in range(400):
        case = random_case(3, number, DESIGN, longest_words=4_000)
        if isinstance(case, SequenceCase) and len(case.layers) >= layers:
            kinds = {one.layer.bias for one in case.layers}
            if kinds == {True, False}:
                return case
    raise AssertionError("no such case is drawn")


def layers_of(case: Case) -> tuple[TileCase, ...]:
    if isinstance(case, SequenceCase):
        return case.layers
    assert isinstance(case, TileCase)
    return (case,)


def one_with_bias(case: Case) -> bool:
    return any(one.layer.bias for one in layers_of(case))


def bias_then_none(case: Case) -> bool:
    """A fault in state that lives between layers."""
    biases = [one.layer.bias for one in layers_of(case)]
    return (True, False) in pairwise(biases)


@pytest.mark.parametrize(("fails", "left"), [(one_with_bias, 1), (bias_then_none, 2)])
def test_what_is_left_is_what_fails(fails: Callable[[Case], bool], left: int) -> None:
    case = sequence(3)
    if not fails(case):
        case = next(one for one in (sequence(n) for n in (4, 5, 6)) if fails(one))
    smallest, way = shrink(case, lambda one: fails(one) and one.answer().cycles > 0)
    assert fails(smallest)
    assert len(layers_of(smallest)) == left
    assert all(np.count_nonzero(one.operands.ifmap) <= 1 for one in layers_of(smallest))
    assert sum(one.macs for one in layers_of(smallest)) <= left
    again = follow(case, way)
    assert (again.details(), again.macs) == (smallest.details(), smallest.macs)
    assert again.answer().cycles == smallest.answer().cycles > 0


def test_a_sequence_is_made_of_fewer_layers_or_lesser_ones() -> None:
    case = sequence(2)
    for smaller in case.smaller():
        there = layers_of(smaller)
        assert len(there) <= len(case.layers)
        assert sum(one.macs for one in there) <= case.macs
        assert isinstance(smaller, TileCase) or smaller.design == case.design
