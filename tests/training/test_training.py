"""The descent in numpy: the rule for errors, the rate, clipping, and that state is all there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny_training import Pull, pictures, recipe

from archsim.errors import InputError
from archsim.robust.chips import chip_flips
from archsim.robust.random_flips import random_flips
from training.recipe import Recipe
from training.training import Training


def trained(one: Recipe, gradients: Pull | None = None) -> Training:
    training = Training(one, pictures(), gradients or Pull())
    while training.step < training.steps:
        training.advance()
    return training


def codes(training: Training) -> list[int]:
    return training.model({}).codes.tolist()


def test_the_same_seed_gives_the_same_bits_and_another_others() -> None:
    first, again, other = (trained(recipe(seed=seed)) for seed in (3, 3, 4))
    assert codes(first) == codes(again)
    assert codes(first) != codes(other)


def test_steps_cover_all_pictures_in_every_epoch() -> None:
    class Seen(Pull):
        labels: list[int]

        def __call__(self, weights: Any, pictures: Any, labels: Any) -> Any:
            self.labels += labels.tolist()
            return super().__call__(weights, pictures, labels)

    seen = Seen()
    seen.labels = []
    training = Training(recipe(method="rquant", rate=0.0), pictures(), seen)
    assert (training.steps_an_epoch, training.steps) == (3, 9)
    orders: list[list[int]] = []
    for _ in range(3):
        seen.labels = []
        for _ in range(3):
            training.advance()
        assert sorted(seen.labels) == sorted(pictures().labels.tolist())
        orders.append(seen.labels)
    assert len({tuple(one) for one in orders}) == 3


@pytest.mark.parametrize(
    ("losses", "injected"),
    [
        ([2.3, 2.1, 2.0, 1.0], [False, False, False, True]),
        ([1.9, 1.9, 1.7, 0.5], [False, True, False, True]),
        ([2.0124, 1.0, 1.0, 1.0], [False, True, True, True]),
        ([2.0126, 1.0, 1.0, 1.0], [False, False, True, True]),
        ([1.0, 1.0, 2.51, 1.0, 1.0, 0.1], [False, True, False, True]),
        ([1.0, 1.0, 2.49, 1.0, 0.1, 0.1], [False, True, True, True]),
    ],
)
def test_errors_are_injected_where_the_losses_allow_it(
    losses: list[float], injected: list[bool]
) -> None:
    """Clean loss below 1.15 x 1.75; mean with the perturbed, 0 where none was, at most 1.75."""
    training = Training(recipe(), pictures(), Pull(*losses))
    found: list[bool] = []
    for _ in range(4):
        found.append(training.advance().perturbed is not None)
    assert found == injected


def test_weights_that_run_away_are_told() -> None:
    training = Training(recipe(), pictures(), Pull(1.0, float("nan")))
    training.advance()
    with pytest.raises(InputError, match=r"batch 1 is no number any more: .* than 0\.05"):
        training.advance()


def test_the_rate_falls_at_two_three_and_four_fifths() -> None:
    one = recipe(learning_rate=0.05)
    rates = [one.learning_rate_at(step, 10) for step in range(10)]
    expected = [0.05] * 4 + [0.005] * 2 + [0.0005] * 2 + [0.00005] * 2
    np.testing.assert_allclose(rates, expected)


def test_weights_stay_within_the_clip_and_perturbed_ones_too() -> None:
    gradients = Pull()
    training = trained(recipe(clip=0.03, rate=0.3), gradients)
    for weights in (training.weights, *gradients.seen):
        assert max(np.abs(one).max() for one in weights.values()) <= 0.03 * (1 + 1e-6)


def test_a_step_is_nesterovs_with_decay() -> None:
    one = recipe(method="float", rate=0.0, clip=None, learning_rate=0.01)
    training = Training(one, pictures(), Pull())
    weight = training.weights["conv2.weight"].astype(np.float64)
    momentum = np.zeros_like(weight)
    for _ in range(3):
        gradient = (weight - 0.07) * 4 + 5e-4 * weight
        momentum = 0.9 * momentum + gradient
        weight = weight - 0.01 * (gradient + 0.9 * momentum)
        training.advance()
    np.testing.assert_allclose(training.weights["conv2.weight"], weight, rtol=1e-4)


def test_the_gradient_of_errors_is_cut_and_halved() -> None:
    """From weights of 0 with the clean gradient -0.28: the mean with one cut to 0.05."""
    training = Training(recipe(rate=1.0, learning_rate=0.01), pictures(), Pull(0.5))
    training.injecting = True
    training.weights = {name: np.zeros_like(one) for name, one in training.weights.items()}
    training.advance()
    gradient = (-0.28 - 0.05) / 2
    np.testing.assert_allclose(training.weights["conv1.bias"], -0.01 * 1.9 * gradient, rtol=1e-5)


def test_the_second_gradient_is_of_the_codes_with_errors() -> None:
    chosen = recipe(method="pattern", chip=7, rate=0.1)
    gradients = Pull()
    training = Training(chosen, pictures(), gradients)
    training.injecting = True
    stored = training.model({})
    training.advance()
    clean, perturbed = gradients.seen
    wrong = stored.values(stored.codes ^ chip_flips(7, stored.codes.size, 8, 0.1))
    for name, values in stored.values().items():
        assert (clean[name] == values).all() and (perturbed[name] == wrong[name]).all()
    assert (perturbed["conv4.weight"] != clean["conv4.weight"]).mean() > 0.3


def test_fixed_patterns_are_the_chips_and_random_ones_differ() -> None:
    chosen = recipe(method="pattern", chip=7, rate=0.1)
    training = Training(chosen, pictures(), Pull())
    count = chosen.network.weights
    flips = training._flips()  # pyright: ignore[reportPrivateUsage]
    assert flips.tolist() == chip_flips(7, count, 8, 0.1).tolist()
    training.step = 1
    assert training._flips().tolist() == flips.tolist()  # pyright: ignore[reportPrivateUsage]
    drawn = Training(recipe(rate=0.1), pictures(), Pull())
    first = drawn._flips()  # pyright: ignore[reportPrivateUsage]
    drawn.step = 1
    assert drawn._flips().tolist() != first.tolist()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.05, 0.5, 1.0])
def test_random_flips_are_as_many_as_asked_for(rate: float) -> None:
    for bits in (2, 4, 8):
        masks = random_flips(20_000, bits, rate, np.random.default_rng(bits))
        planes = np.array([np.count_nonzero(masks >> bit & 1) for bit in range(8)])
        assert not planes[bits:].any()
        sigma = np.sqrt(20_000 * rate * (1 - rate))
        assert (np.abs(planes[:bits] - 20_000 * rate) <= 5 * sigma).all()


def test_errors_drawn_in_several_goes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = np.random.default_rng(2), np.random.default_rng(2)  # the parts take four
    expected = random_flips(5000, 8, 0.02, whole)
    monkeypatch.setattr("archsim.robust.random_flips.MARGIN", 0.001)
    assert random_flips(5000, 8, 0.02, parts).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": 1.5}, "rate must be from 0 to 1, not 1.5"),
        ({"rate": 0.0}, r"randbet needs a rate of errors above 0 \(--rate 0.01\), not 0"),
        ({"method": "rquant"}, r"rquant takes no rate of errors \(--rate "),
        ({"method": "clipping", "rate": 0.0, "clip": None}, r"clipping needs .* \(--clip 0.1\)"),
        ({"chip": 3}, r"randbet takes no chip \(--chip 3\)"),
        ({"epochs": 0}, "epochs must be positive, not 0"),
        ({"data": "minst"}, "no set of pictures 'minst'; did you mean mnist"),
        ({"bits": 9}, "bits must be at most 8, not 9"),
        ({"learning_rate": float("inf")}, "learning_rate must be positive"),
    ],
)
def test_recipes_that_cannot_be_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        recipe(**given)
