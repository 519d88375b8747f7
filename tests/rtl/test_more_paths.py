"""Other ways to the same figures that `verify` takes see a fault in one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from archsim.codecs import vsquant
from archsim.layer import float_intake
from archsim.machine.registry import load_design, with_settings
from archsim.machines.scnn import biases, channel, served
from archsim.machines.sparsetrain import work
from archsim.machines.sparsetrain.block_work import LEAST, PRODUCTS
from archsim.machines.vsq import vector_kernels
from rtl import sparse_paths, tile_paths, value_paths
from rtl.cases import random_case
from rtl.conformance import Case
from rtl.draw import Draw
from rtl.layer_verification import LayerVerification
from rtl.registry import verification_of
from workloads.layers import Conv2d

DESIGNS = {
    "scnn": ["grid_rows=1", "grid_columns=2", "weight_lanes=2", "ifmap_lanes=2", "banks=4",
             "iaram_bytes=100", "oaram_bytes=100", "weight_fifo_vectors=4"],
    "edge-16": ["rows=4", "columns=3",
                *(f"{name}_memory.capacity_bytes=2048" for name in ("ifmap", "weight"))],
    "volta": ["octets=1", "rows=4"],
    "vsq-16": ["lanes=2", "vector=4", "hold_cycles=3"],
    "sparsetrain": ["pes=2", "lanes=4", "rows=4", "columns=4", "depth=3"],
}  # fmt: skip


def told(name: str, cases: int = 10) -> set[str]:
    """Figures that the first cases of a design show to be apart; numbers of passes left out."""
    design = with_settings(load_design(name), DESIGNS[name])
    drawn: list[Case] = [random_case(5, number, design) for number in range(cases)]
    found = {one for case in drawn for one in case.figures_apart()}
    return {" ".join(word for word in one.split() if not word.isdigit()) for one in found}


@pytest.mark.parametrize("name", DESIGNS)
def test_without_a_fault_nothing_is_told(name: str) -> None:
    assert told(name) == set()


def memory(change: Callable[[Any], None]) -> Any:
    """What the model says of a design's channels, with a change in its state."""
    sound = served._memory_of  # pyright: ignore[reportPrivateUsage]

    def faulty(design: Any) -> Any:
        found = sound(design)
        change(found.view(channel.STATE)[0])
        return found

    return faulty


def longer_bursts(state: Any) -> None:
    state["burst_words"] += 1


def another_channel(state: Any) -> None:
    state["channel"][channel.OFMAP] = channel.OFMAP


def another_rate(state: Any) -> None:
    state["word_ticks"][channel.WEIGHT] += 1 << 14


@pytest.mark.parametrize("change", [longer_bursts, another_channel, another_rate])
def test_a_sparse_channel_that_is_another_is_told(
    change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes and layers share it: only the queue of transfers says otherwise."""
    monkeypatch.setattr(served, "_memory_of", memory(change))
    found = told("scnn")
    assert any("a queue" in one for one in found)
    assert not any("passes and layers" in one for one in found)


def test_more_strips_and_smaller_groups_than_need_be_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if every list went into the FIFO, and a plane into the PEs."""
    monkeypatch.setattr(sparse_paths, "longest_list", lambda *given: 0)
    monkeypatch.setattr(sparse_paths, "strips_of", lambda *given, from_one: (1,) * from_one)
    assert told("scnn") == {"filters in a group", "strips, and the fewest that fit"}


def test_words_behind_a_latency_that_are_too_early_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = biases.BiasPort.__init__

    def early(self: Any, *given: Any, **named: Any) -> None:
        sound(self, *given, **named)
        self._first = 1

    monkeypatch.setattr(biases.BiasPort, "__init__", early)
    assert "bias by latency and idle cycles" in told("scnn")


def test_strips_that_overlap_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = sparse_paths.pass_words

    def twice(*given: Any) -> Any:
        found = sound(*given)
        return [*found, found[-1]]

    monkeypatch.setattr(sparse_paths, "pass_words", twice)
    assert "outputs of passes and of the layer" in told("scnn", 3)


def another(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """A function answers one more: of several numbers the first, of an array the last."""
    sound = getattr(module, name)

    def more(*given: Any) -> Any:
        found = sound(*given)
        if isinstance(found, tuple):
            return (found[0] + 1, *found[1:])
        return found + (np.arange(1 - found.size, 1) == 0).reshape(found.shape)

    monkeypatch.setattr(module, name, more)


@pytest.mark.parametrize(
    ("name", "module", "function", "said"),
    [
        ("edge-16", tile_paths, "block_problem", "blocks of groups of tiles and of words"),
        ("edge-16", tile_paths, "count_many", "counts of a layer without a tiling"),
        ("volta", float_intake, "_encoded", "ifmap patterns by table and one by one"),
        ("vsq-16", value_paths, "sums_of", "sums by products and loops"),
        ("vsq-16", vector_kernels, "bounds", "bound of a tile by loops and arrays"),
        ("vsq-16", vsquant, "rounded_ratio", "weight values that are not the nearest"),
    ],
)
def test_values_and_figures_that_are_another_are_told(
    name: str, module: Any, function: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    another(monkeypatch, module, function)
    assert said in told(name, 3)


def test_outputs_that_wait_otherwise_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = tile_paths.join_gaps
    monkeypatch.setattr(tile_paths, "join_gaps", lambda ports: sound([one + 1 for one in ports]))
    found = told("edge-16", 3)
    assert "a first output that is late" in found
    monkeypatch.setattr(
        tile_paths, "join_gaps", lambda ports: sound([np.cumsum(one + 3) for one in ports])
    )
    assert "outputs by a closed form and by rows" in told("edge-16", 3)


@pytest.mark.parametrize("step", tile_paths.STEPS)
def test_a_step_that_is_not_made_of_its_factors_is_told(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = tile_paths.columns_of

    def faulty(tiles: Any) -> Any:
        found = sound(tiles)
        return found._replace(**{step: getattr(found, step) + 1})

    monkeypatch.setattr(tile_paths, "columns_of", faulty)
    assert f"{step} and its factors" in told("edge-16", 1)


def test_a_schedule_that_stops_too_early_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = tile_paths.cycles_within
    monkeypatch.setattr(tile_paths, "cycles_within", lambda *given: sound(*given) + 1)
    assert "cycles by plan and with a limit" in told("edge-16", 2)


@pytest.mark.parametrize(
    ("column", "name"), [(LEAST, "cycles without bounds"), (PRODUCTS, "products")]
)
def test_what_blocks_are_said_to_do_and_do_not_is_told(
    column: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = work.block_work

    def faulty(*given: Any) -> Any:
        found = sound(*given)
        found[:, column] += np.arange(len(found)) == 0
        return found

    monkeypatch.setattr(work, "block_work", faulty)
    assert f"{name} of blocks and of pairs" in told("sparsetrain", 2)


def test_windows_that_are_laid_out_wrongly_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and sums are both made of them, so that the RTL says the same."""
    sound = work.window_vectors
    monkeypatch.setattr(work, "window_vectors", lambda *given: np.flip(sound(*given), axis=1))
    assert "sums by vectors and by taps" in told("sparsetrain", 4)


def test_layers_of_the_training_machine_have_zeros_on_every_side() -> None:
    """And kernels apart: their windows are laid out by the host, which only sums can tell."""
    design, kind = load_design("sparsetrain"), verification_of(load_design("sparsetrain"))
    assert isinstance(kind, LayerVerification)
    drawn = [kind.random_layer(Draw(7, n), design) for n in range(200)]
    layers = [layer for layer in drawn if isinstance(layer, Conv2d)]
    for name, least in (("pad_top", 1), ("pad_left", 1), ("pad_bottom", 1), ("pad_right", 1),
                        ("dilation_height", 2), ("dilation_width", 2)):  # fmt: skip
        assert any(getattr(layer, name) >= least for layer in layers), name
