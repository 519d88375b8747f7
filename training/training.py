"""Training in numpy around somebody's gradients: quantised weights, errors in them, descent.

Everything drawn at random is drawn from (seed, what for, number): the state is nothing but weights,
momenta, the step and whether errors are injected next, and a training that goes on from it ends
with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from archsim.codecs.robust_quantization import quantize_network
from archsim.errors import require
from archsim.robust.chips import chip_flips
from archsim.robust.model import RobustModel, model_of
from archsim.robust.random_flips import random_flips
from training.recipe import (
    CLEAN_MARGIN,
    DECAY,
    GRADIENT_LIMIT,
    MOMENTUM,
    THRESHOLD,
    Recipe,
)
from workloads.labelled import Labelled
from workloads.simplenet import Weights


class Gradients(Protocol):
    """`training.gradients.TorchGradients`, or a simpler one in tests."""

    def __call__(
        self, weights: Mapping[str, Any], pictures: Any, labels: Any, /
    ) -> tuple[float, Weights]:
        """Loss in nats, and its gradients by name."""
        ...

    def logits(self, weights: Mapping[str, Any], pictures: Any, /) -> npt.NDArray[np.float32]:
        """[n, classes]."""
        ...


ORDER, ERRORS = 1, 2
"""What numbers are drawn for, beside the weights to begin with (0)."""


@dataclass(frozen=True)
class Losses:
    """Of one batch, in nats; perturbed: None where no errors were injected."""

    clean: float
    perturbed: float | None


@dataclass
class Training:
    """A training under way: `step` is the batch that is next, of `steps`."""

    recipe: Recipe
    data: Labelled
    gradients: Gradients
    step: int = 0
    injecting: bool = False
    weights: Weights = field(default_factory=dict)
    momenta: Weights = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._scheme = self.recipe.scheme
        self._pictures = self.data.floats()
        self._order: tuple[int, npt.NDArray[np.int64]] | None = None
        if not self.weights:
            self.weights = self.recipe.network.draw(self.recipe.seed)
            self.momenta = {name: np.zeros_like(one) for name, one in self.weights.items()}
            self._clip()

    @property
    def steps_an_epoch(self) -> int:
        """Batches; the last may be smaller."""
        return -(-len(self.data) // self.recipe.batch)

    @property
    def steps(self) -> int:
        """Batches of the whole training."""
        return self.steps_an_epoch * self.recipe.epochs

    def advance(self) -> Losses:
        """One batch.  Raises InputError where the weights have run away."""
        pictures, labels = self._batch()
        losses, gradients = self._gradients(pictures, labels)
        require(
            math.isfinite(losses.clean) and math.isfinite(losses.perturbed or 0.0),
            f"the loss of batch {self.step} is no number any more: take a smaller learning rate "
            f"than {self.recipe.learning_rate:g}",
        )
        self._descend(gradients)
        self.injecting = self._inject_next(losses)
        self.step += 1
        return losses

    def model(self, made: Mapping[str, Any]) -> RobustModel:
        """What it has come to, as it is stored."""
        return model_of(self.recipe.network, self._scheme, self.weights, made)

    def _batch(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
        epoch, number = divmod(self.step, self.steps_an_epoch)
        if self._order is None or self._order[0] != epoch:
            order = self._draws(ORDER, epoch).permutation(len(self.data))
            self._order = (epoch, order)
        size = self.recipe.batch
        chosen = self._order[1][number * size : (number + 1) * size]
        return self._pictures[chosen], self.data.labels[chosen]

    def _draws(self, purpose: int, number: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.recipe.seed, purpose << 56 | number]))

    def _gradients(self, pictures: Any, labels: Any) -> tuple[Losses, Weights]:
        """Straight through the quantisation: gradients by quantised weights move the real ones."""
        if self.recipe.method == "float":
            loss, clean = self.gradients(self.weights, pictures, labels)
            return Losses(loss, None), clean
        stored = quantize_network(self._scheme, self.weights)
        values = {name: one.values() for name, one in stored.items()}
        loss, clean = self.gradients(values, pictures, labels)
        if not self.injecting:
            return Losses(loss, None), clean
        flips = self._flips()
        at = 0
        for name, one in stored.items():
            errors = flips[at : at + one.codes.size].reshape(one.codes.shape)
            values[name] = one.values(one.codes ^ errors)
            at += one.codes.size
        perturbed_loss, perturbed = self.gradients(values, pictures, labels)
        mean = {
            name: (one + perturbed[name].clip(-GRADIENT_LIMIT, GRADIENT_LIMIT)) / np.float32(2)
            for name, one in clean.items()
        }
        return Losses(loss, perturbed_loss), mean

    def _flips(self) -> npt.NDArray[np.uint8]:
        count, bits = self.recipe.network.weights, self.recipe.bits
        if self.recipe.method == "pattern":
            return chip_flips(self.recipe.chip, count, bits, self.recipe.rate)
        return random_flips(count, bits, self.recipe.rate, self._draws(ERRORS, self.step))

    def _inject_next(self, losses: Losses) -> bool:
        """The paper's rule; a loss that was not measured counts as 0."""
        if not self.recipe.rate or losses.clean >= THRESHOLD * CLEAN_MARGIN:
            return False
        return (losses.clean + (losses.perturbed or 0.0)) / 2 <= THRESHOLD

    def _descend(self, gradients: Weights) -> None:
        """Stochastic gradient descent with Nesterov's momentum and decay of all weights."""
        rate = np.float32(self.recipe.learning_rate_at(self.step, self.steps))
        momentum, decay = np.float32(MOMENTUM), np.float32(DECAY)
        for name, weight in self.weights.items():
            gradient = gradients[name] + decay * weight
            kept = momentum * self.momenta[name] + gradient
            self.momenta[name] = kept.astype(np.float32)
            self.weights[name] = (weight - rate * (gradient + momentum * kept)).astype(np.float32)
        self._clip()

    def _clip(self) -> None:
        for name, weight in self.weights.items():
            self.weights[name] = np.asarray(self._scheme.clipped(weight), np.float32)


__all__ = ["Gradients", "Losses", "Training"]
