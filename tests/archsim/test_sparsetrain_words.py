"""Words of layers of which little, or nothing, crosses."""

from dataclasses import replace
from typing import Any

import numpy as np

from archsim.machines.sparsetrain.design import SPARSETRAIN
from archsim.machines.sparsetrain.words import ones_of, stream_words, word_counts
from workloads.layers import MatMul
from workloads.operands import ofmap_shape, synthetic

LAYER = MatMul(name="m", m=5, n=6, k=7)
DESIGN = replace(SPARSETRAIN, pes=2, lanes=4, rows=4, columns=4, depth=2, skip_outputs=True)


def work_of(needed: float) -> Any:
    """Of the layer, of which so large a share of the outputs is needed."""
    drawn = synthetic(LAYER, bits=8, density=0.6, seed=2)
    mask = np.random.default_rng(1).random(ofmap_shape(LAYER)) < needed
    model: Any = DESIGN.machine_model()
    return model.answer(LAYER, replace(drawn, needed=mask), {}).work


def test_of_no_outputs_no_values_are_counted() -> None:
    work = work_of(0)
    assert [one.shape for one in ones_of(work)] == [(0,), (0,)]
    words = stream_words(work)
    counts = word_counts(work)
    for name, lanes in (("row_mask", 4), ("row", 4), ("column_mask", 4), ("column", 4)):
        assert words[name].shape == (0, lanes), name
        assert counts[name] == 0


def test_values_of_a_step_are_those_of_its_mask() -> None:
    work = work_of(0.7)
    words, counts = stream_words(work), word_counts(work)
    for name, ones in zip(("row", "column"), ones_of(work), strict=True):
        assert ones.tolist() == words[f"{name}_mask"].sum(axis=1).tolist()
        assert counts[f"{name}_mask"] == len(ones)
        assert counts[name] == len(words[name]) == -(-int(ones.sum()) // 4)
