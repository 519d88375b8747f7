"""Cells of weights and biases that fail are found once for a run, and anew for other weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.layer.intake import Drawing
from archsim.machine.registry import load_design, with_settings
from archsim.tiled import kept_reads
from archsim.tiled.changed_operands import OperandReads
from archsim.tiled.timing import TileRun, layer_output
from workloads.layers import Conv2d

SMALL = (
    "ifmap_memory.capacity_bytes=2048", "accumulator_memory.capacity_bytes=4096",
    "weight_memory.capacity_bytes=2048",
)  # fmt: skip


def _layer(name: str, filters: int) -> Conv2d:
    return Conv2d(
        name=name, channels=12, ifmap_height=7, ifmap_width=9, filters=filters, kernel_height=3,
        kernel_width=2, pad_top=1, bias=True, batch=2,
    )  # fmt: skip


LAYERS = _layer("one", 20), _layer("other", 20), _layer("third", 36)


def _design(names: str, rate: float, sizes: tuple[str, ...] = ()) -> Any:
    faults = [f"{name}_memory.{one}" for name in names.split()
              for one in ("kind=faulty", f"rate={rate}")]  # fmt: skip
    return with_settings(load_design("edge-16"), [*sizes, *faults])


def _drawn(design: Any, layer: Conv2d, seed: int) -> Any:
    """With operands of its own, which may be written over."""
    found = design.intake.synthetic(layer, Drawing(seed=seed))
    own = {name: np.array(getattr(found, name)) for name in ("ifmap", "weight", "bias")}
    return replace(found, **own)


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["weight", "bias", "weight bias", "ifmap weight", "ifmap"]),
    st.sampled_from([0.002, 0.05]),
    st.sampled_from([(), SMALL, ("dataflow=output_stationary", *SMALL)]),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=3, max_size=7),
)
def test_a_run_computes_what_a_new_one_does(
    names: str, rate: float, sizes: tuple[str, ...], asked: list[tuple[int, int]]
) -> None:
    """Layers in any order, with other ifmaps, with other weights, and with weights and biases that
    are written over in place."""
    design = _design(names, rate, sizes)
    given = {layer.name: _drawn(design, layer, 0) for layer in LAYERS}
    run = TileRun(design, lambda layer: given[layer.name], {})
    for number, (which, what) in enumerate(asked):
        layer = LAYERS[which]
        if what == 0:
            drawn = _drawn(design, layer, number)
            given[layer.name] = replace(given[layer.name], ifmap=drawn.ifmap)
        elif what == 1:
            given[layer.name] = _drawn(design, layer, number)
        elif what == 2:
            given[layer.name].weight[-1, -1, -1, -1] ^= 0x55
        elif what == 3:
            given[layer.name].bias[-1] ^= 0x555
        expected = layer_output(design, layer, given[layer.name])
        found: Any = run.result(layer).ofmap
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(("most", "times"), [(kept_reads.MOST_KEPT, 1), (100, 3)])
def test_weights_are_read_once(most: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many elements as are kept, 20 biases in any case; those of an ifmap are always new.
    Layers of one shape have weights of their own."""
    found: list[str] = []
    changes = OperandReads.changes

    def counted(self: OperandReads) -> Any:
        found.append(self.loads.name)
        return changes(self)

    monkeypatch.setattr(OperandReads, "changes", counted)
    monkeypatch.setattr(kept_reads, "MOST_KEPT", most)
    design = _design("ifmap weight bias", 0.01)
    given = {layer.name: _drawn(design, layer, at) for at, layer in enumerate(LAYERS[:2])}
    run = TileRun(design, lambda layer: given[layer.name], {})
    for _ in range(3):
        for layer in LAYERS[:2]:
            run.result(layer)
    assert sorted(found) == 2 * ["bias"] + 6 * ["ifmap"] + 2 * times * ["weight"]


def test_what_is_kept_is_not_written_over() -> None:
    design, layer = _design("weight", 0.01), LAYERS[0]
    run = TileRun(design, lambda _: _drawn(design, layer, 1), {})
    run.result(layer)
    (kept,) = run._known.reads.values()  # pyright: ignore[reportPrivateUsage]
    (_, (seen_as, _)) = kept._each["weight"]  # pyright: ignore[reportPrivateUsage]
    assert not seen_as.flags.writeable
