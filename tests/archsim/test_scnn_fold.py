"""Fully connected layers that are folded: values, cycles, limits, faults.

With memories that compress values: `tests/archsim/test_scnn_fold_compressed.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from faulty_module import faulty_module
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scnn_cases import Case, agrees, answers, operands_of

from archsim.errors import InputError
from archsim.machines.scnn import fold
from archsim.machines.scnn import layer as sparse_layer
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.scnn.fold import Part, folded
from archsim.machines.scnn.layer import (
    layer_passes,
    layer_timing,
    layer_values,
    plan_layer,
    planned_timing,
)
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.machines.scnn.words import LayerRun, pass_words
from workloads.layers import MatMul
from workloads.operands import Operands, synthetic

SMALL = Scnn(
    grid_rows=2, grid_columns=3, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
    iaram_bytes=80, oaram_bytes=30, weight_fifo_vectors=20, bank_queue=2,
)  # fmt: skip
LAYER = MatMul(name="fc", m=2, n=17, k=53, bias=True, relu=True)


def _values_of(parts: tuple[Part, ...], design: Scnn) -> np.ndarray:
    """The parts' ofmaps [M, filters, 1, 1], one after another."""
    return np.concatenate(
        [layer_values(design, part.layer, part.operands) for part in parts], axis=1
    )


def _agrees(parts: tuple[Part, ...], layer: MatMul, operands: Operands, design: Scnn) -> bool:
    found = _values_of(parts, design)[:, :, 0, 0]
    expected = layer_values(design, layer, operands)[0]
    return found.shape == expected.shape and bool((found == expected).all())


@st.composite
def layers(draw: st.DrawFn) -> tuple[Scnn, MatMul, Operands]:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    layer = MatMul(
        name="m", m=whole(1, 3), n=whole(1, 13), k=whole(1, 47), bias=draw(st.booleans()),
        relu=draw(st.booleans()),
    )  # fmt: skip
    design = replace(
        SMALL, grid_rows=whole(1, 3), grid_columns=whole(1, 3), weight_lanes=whole(1, 4),
        ifmap_lanes=whole(1, 4), iaram_bytes=whole(40, 160), oaram_bytes=whole(20, 80),
        bank_queue=whole(1, 5), index_bits=whole(1, 4), banks=2 ** whole(0, 3),
        sparsity=draw(st.sampled_from(["both", "both", "weights", "activations"])),
    )  # fmt: skip
    densities = whole(1, 10) / 10, whole(1, 10) / 10
    return design, layer, operands_of(layer, densities, whole(0, 999))


@settings(deadline=None, max_examples=60)
@given(layers())
def test_parts_are_the_layer_and_keep_the_contract(
    case: tuple[Scnn, MatMul, Operands],
) -> None:
    design, layer, operands = case
    try:
        parts = folded(design, layer, operands, layer_values(design, layer, operands)[0])
    except InputError:
        assume(False)
        return
    assert _agrees(parts, layer, operands, design)
    for part in parts:
        assert part.layer.filters <= design.oaram_vectors
        one = Case(design=design, layer=part.layer, operands=part.operands, seed=1, gap=2)
        known = answers(one)
        assert known is not None and agrees(one, known)


@pytest.mark.parametrize("m", [1, 2])
def test_a_layer_that_does_not_fit_is_folded(m: int) -> None:
    layer = replace(LAYER, m=m)
    operands = synthetic(layer, bits=6, density=0.6, seed=4)
    with pytest.raises(InputError):
        layer_passes(SMALL, layer, operands)
    timing = layer_timing(SMALL, layer, operands)
    parts = folded(SMALL, layer, operands, timing.ofmap[0])
    assert len(parts) == 3 and len(timing.passes) == timing.strips == 3 * m
    assert [part.layer.filters for part in parts] == [6, 6, 5]
    alone = [layer_timing(SMALL, part.layer, part.operands) for part in parts]
    assert timing.cycles == sum(one.cycles for one in alone)
    assert (timing.ofmap == layer_values(SMALL, layer, operands)).all()
    assert timing.products == np.count_nonzero(operands.ifmap[0], axis=0) @ np.count_nonzero(
        operands.weight[0], axis=1
    )


def test_one_that_fits_is_not() -> None:
    """Every input a list with two vectors of weights, for both rows at once."""
    layer = replace(LAYER, k=5, n=3)
    operands = synthetic(layer, bits=6, seed=4)
    timing = layer_timing(SMALL, layer, operands)
    assert timing.passes[0].mapping.channels == 5
    assert timing.passes[0].mapping.columns.outputs == 2


@settings(deadline=None, max_examples=60)
@given(layers())
def test_one_that_fits_is_folded_if_that_moves_less(case: tuple[Scnn, MatMul, Operands]) -> None:
    """Bits are those of the timing; `simulate` and words agree; in a chain it stays whole."""
    design, layer, operands = case
    layer = replace(layer, bias=operands.bias is not None)
    try:
        whole = planned_timing(design, plan_layer(design, layer, operands, whole=True))
        parts = folded(design, layer, operands, layer_values(design, layer, operands)[0])
        layer_passes(design, layer, operands)
    except InputError:
        assume(False)
        return
    alone = [layer_timing(design, part.layer, part.operands) for part in parts]
    less = sum(map(_moved, alone)) < _moved(whole)
    found = layer_timing(design, layer, operands)
    chosen = [one for some in alone for one in some.passes] if less else whole.passes
    assert [one.cycles for one in found.passes] == [one.cycles for one in chosen]
    assert _moved(found) == min(sum(map(_moved, alone)), _moved(whole))
    assert len(pass_words(design, [LayerRun(layer=layer, operands=operands)])) == len(chosen)


def _moved(timing: ScnnTiming) -> int:
    return timing.weight_bits + timing.ifmap_bits + timing.ofmap_bits


def test_few_weights_a_list_are_folded() -> None:
    """GoogLeNet's layer: a tenth of the weights in eight of an input each fill vectors badly."""
    layer = MatMul(name="fc", m=1, n=1000, k=1024)
    operands = operands_of(layer, (0.4, 0.1), seed=1)
    found = layer_timing(SCNN_ISCA17, layer, operands)
    whole = planned_timing(SCNN_ISCA17, plan_layer(SCNN_ISCA17, layer, operands, whole=True))
    assert whole.passes[0].mapping.channels == 1024 and found.passes[0].mapping.channels == 64
    assert found.weight_bits < 0.4 * whole.weight_bits and found.cycles < 0.4 * whole.cycles
    assert np.array_equal(found.ofmap, whole.ofmap)


def test_a_layer_of_alexnet_s_size_makes_at_most_four_products_a_cycle() -> None:
    layer = MatMul(name="fc7", m=1, n=1200, k=4096, relu=True)
    operands = operands_of(layer, (0.4, 0.1), seed=1)
    timing = layer_timing(SCNN_ISCA17, layer, operands)
    mapping = timing.passes[0].mapping
    assert (mapping.channels, mapping.used_pes, len(timing.passes)) == (256, 4, 2)
    assert 0 < timing.products <= SCNN_ISCA17.weight_lanes * timing.cycles


def test_what_no_plane_mends() -> None:
    layer = MatMul(name="fc", m=1, n=2, k=400)
    with pytest.raises(InputError) as raised:
        layer_timing(SMALL, layer, synthetic(layer, bits=6, seed=1))
    assert str(raised.value) == (
        "fc: iaram_bytes must be at least 250 (50 vectors in a PE, for the smallest strip of the "
        "plane), not 80"
    )


def test_products_with_a_weight_each_are_not_folded() -> None:
    layer = MatMul(name="b", m=1, n=17, k=53, batch=2, shared_weight=False)
    with pytest.raises(InputError, match="b: iaram_bytes must be at least"):
        layer_timing(SMALL, layer, synthetic(layer, bits=6, seed=1))


FAULTS = {
    "weights not transposed": ("weight[:, some].T)", "weight[:, some].T[::-1])"),
    "inputs in another order": (
        "_folded(operands.ifmap[0], plane)",
        "_folded(operands.ifmap[0][:, ::-1], plane)",
    ),
    "a part's bias": ("operands.bias[some]", "operands.bias[: some.stop - some.start]"),
    "filters left out": ("range(0, layer.n, size)", "range(0, layer.n - 1, size + 1)"),
}


def _fold_of(folder: Path, name: str | None) -> ModuleType:
    return faulty_module(fold, folder, *([FAULTS[name]] if name else []))


def _caught(module: ModuleType) -> bool:
    operands = synthetic(LAYER, bits=6, density=0.6, seed=4)
    parts = module.folded(SMALL, LAYER, operands, layer_values(SMALL, LAYER, operands)[0])
    return not _agrees(parts, LAYER, operands, SMALL)


def test_the_untouched_fold_passes(tmp_path: Path) -> None:
    assert not _caught(_fold_of(tmp_path, None))


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str, tmp_path: Path) -> None:
    assert _caught(_fold_of(tmp_path, name))


DENSE = replace(LAYER, m=1, n=6, k=12)
"""As many vectors of weights folded as not; of the ifmap 8 instead of 12."""

CHOICE_FAULTS = {
    "activations not counted": (" + beside", ""),
    "weights alone counted": ("_activation_bits(design, strip)\n        + sum(", "sum("),
    "the ifmap not counted": ("strip.operands.ifmap.vectors + ", ""),
}


def _channels(layer: MatMul) -> int:
    operands = synthetic(layer, bits=6, seed=4)
    return layer_timing(SMALL, layer, operands).passes[0].mapping.channels


def test_equal_weights_are_folded_for_fewer_activations() -> None:
    assert _channels(DENSE) == 2
    assert _channels(replace(DENSE, m=2)) == 12


@pytest.mark.parametrize("name", CHOICE_FAULTS)
def test_a_wrong_choice_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = faulty_module(fold, tmp_path, CHOICE_FAULTS[name])
    for function in ("may_move_less", "moved_bits"):
        monkeypatch.setattr(sparse_layer, function, getattr(copy, function))
    assert _channels(DENSE) == 12
