"""Files of trained models; weights read from chips that err; how often a network then does."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archsim.codecs.robust_quantization import normal, rquant
from archsim.errors import InputError
from archsim.memories.faulty.laws import Columns
from archsim.robust.chips import Chips, chip_flips
from archsim.robust.evaluate import deviation, error_percent, true_error_bound
from archsim.robust.model import (
    RobustModel,
    model_of,
    packed_arrays,
    read_model,
    shipped,
    shipped_names,
)
from workloads.labelled import Labelled
from workloads.simplenet import SimpleNet

NETWORK = SimpleNet(channels=2)


@pytest.fixture
def model() -> RobustModel:
    return model_of(NETWORK, rquant(4, 0.5), NETWORK.draw(1), {"seed": 1})


def test_a_model_is_read_back(model: RobustModel, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(model.packed())
    found = read_model(path)
    assert found.packed() == model.packed()
    assert (found.network, found.scheme, found.made) == (NETWORK, rquant(4, 0.5), {"seed": 1})
    for name, values in model.values().items():
        assert (found.values()[name] == values).all() and values.shape == NETWORK.shapes[name]


def test_values_of_other_codes_are_of_their_places(model: RobustModel) -> None:
    codes = model.codes
    assert codes.size == NETWORK.weights and codes.max() < 16
    at = sum(int(np.prod(shape)) for shape in list(NETWORK.shapes.values())[:4])
    codes[at] ^= 8
    changed = model.values(codes)
    for name, values in model.values().items():
        wrong = np.flatnonzero(changed[name] != values).tolist()
        assert wrong == ([0] if name == "conv2.weight" else []), name


def _repacked(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with np.load(path) as file:
            arrays = dict(file)
        change(arrays)
        path.write_bytes(packed_arrays(arrays))

    return damage


def _head(change: dict[str, Any]) -> Callable[[Path], None]:
    def apply(arrays: dict[str, Any]) -> None:
        head = json.loads(bytes(arrays["head"])) | change
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)

    return _repacked(apply)


def _no_arrays(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("note.txt", "none")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "No such file"),
        (lambda path: path.write_bytes(b""), "not a model"),
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "not a model"),
        (lambda path: path.write_text("weights"), "not a model"),
        (_no_arrays, "not a model"),
        (_repacked(lambda arrays: arrays.pop("codes")), "not a model"),
        (_repacked(lambda arrays: arrays.update(codes=arrays["codes"][1:])), "codes of a byte"),
        (_repacked(lambda arrays: arrays.update(codes=arrays["codes"] | 16)), "be below 16"),
        (_repacked(lambda arrays: arrays.update(ranges=arrays["ranges"][1:])), "not ranges"),
        (_repacked(lambda arrays: arrays.update(ranges=-arrays["ranges"])), "not ranges"),
        (_head({"format": 2}), "format 2"),
        (_head({"network": {"channels": 3}}), "channels must be even"),
        (_head({"scheme": {"bits": 12}}), "bits must be at most 8"),
        (_head({"scheme": {"size": 12}}), "not a model"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused_in_a_line(
    model: RobustModel, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(model.packed())
    damage(path)
    with pytest.raises(InputError, match=said):
        read_model(path)


def test_a_file_that_unpacks_without_end_is_refused(
    model: RobustModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(model.packed())
    monkeypatch.setattr("archsim.robust.model.MOST_BYTES", NETWORK.weights)
    with pytest.raises(InputError, match=f"more than {NETWORK.weights} bytes, unpacked"):
        read_model(path)


def test_shipped_models_are_small_and_say_how_they_were_made() -> None:
    for name in shipped_names():
        one = shipped(name)
        assert len(one.packed()) < 1_000_000
        assert one.made["recipe"]["bits"] == one.scheme.bits
        assert one.made["command"].startswith("archsim --threads 1 train randbet")
        assert 0 < one.made["clean_error_percent"] < 10
    with pytest.raises(InputError, match="no shipped model 'mnist'"):
        shipped("mnist")


def test_chips_errors_are_persistent_and_of_the_codes_bits() -> None:
    for bits in (2, 4, 8):
        lower, higher = (chip_flips(9, 5000, bits, rate) for rate in (0.01, 0.05))
        assert not (lower & ~higher).any() and not (higher >> bits).any()
        assert 0.04 < np.unpackbits(higher).sum() / (5000 * bits) < 0.06
        assert (chip_flips(10, 5000, bits, 0.05) != higher).any()


def test_cells_that_read_one_change_zeros_alone() -> None:
    chips = Chips(zero_to_one=1.0, columns=128, law=Columns(shape=0.5))
    zeros, ones = np.zeros(4096, np.uint8), np.full(4096, 255, np.uint8)
    assert chips.read(zeros, 8, 2, 0.05).any()
    assert (chips.read(ones, 8, 2, 0.05) == ones).all()


def pictures(count: int = 70) -> Labelled:
    draws = np.random.default_rng(3)
    shown = draws.integers(0, 255, (count, 1, 28, 28)).astype(np.uint8)
    return Labelled("mnist", shown, (np.arange(count) % 10).astype(np.uint8))


def test_errors_are_counted_batch_by_batch(model: RobustModel) -> None:
    """One logit larger than all others, whatever the picture: right for a tenth of the labels."""
    weights = {name: np.zeros_like(one) for name, one in NETWORK.draw(0).items()}
    weights["classify.bias"][3] = 1
    sure = model_of(NETWORK, normal(8), weights, {})
    assert error_percent(sure, pictures()) == 90
    weights["conv1.bias"][:] = np.inf
    with pytest.raises(InputError, match="finite"):
        model_of(NETWORK, normal(8), weights, {})
    wide = Labelled("x", np.zeros((2, 3, 32, 32), np.uint8), np.zeros(2, np.uint8))
    with pytest.raises(InputError, match="where the model takes"):
        error_percent(sure, wide)


def test_the_bound_is_the_papers() -> None:
    assert true_error_bound(10_000, 1_000_000) == pytest.approx(4.1, abs=0.05)
    assert true_error_bound(10_000, 20) > 70


def test_the_deviation_is_over_chips() -> None:
    assert deviation({0: 1.0, 1: 3.0}) == (2.0, 1.0)
