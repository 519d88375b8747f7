"""A small language model of LSTM layers, trained with one of the cases of dropout.

The masks are those of the simulated workload (`workloads.training.dropout`).  All that is
drawn is drawn from (seed, what for, number), as in `training.training`: what goes on ends with the
same bits.  Sequences begin with states of 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from archsim.errors import InputError, require, require_positive, require_rate, require_seed
from training.text import Text, Words
from workloads.errors import WorkloadError
from workloads.training.dropout import Dropout, Site

Arrays = dict[str, NDArray[np.float32]]

ORDER = 1
"""What numbers are drawn for, beside weights (0) and masks."""

FIRST, SECOND, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
"""Of Adam (Kingma, Ba: arXiv:1412.6980)."""

MASKS = 1 << 32
"""Masks of a batch are drawn by seed · this + its number."""


@dataclass(frozen=True, kw_only=True)
class LanguageRecipe:
    """case: of dropout, 0 for none; percent, recurrent: as `Dropout`.  units: of an embedding and
    of a layer.  words: of the vocabulary.  clip: of the norm of all gradients.

    Raises InputError for what cannot be trained.
    """

    case: int = 0
    percent: int = 30
    recurrent: bool = False
    layers: int = 2
    units: int = 96
    words: int = 1000
    steps: int = 35
    batch: int = 40
    epochs: int = 8
    learning_rate: float = 0.005
    clip: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive(layers=self.layers, units=self.units, steps=self.steps, batch=self.batch,
                         epochs=self.epochs)  # fmt: skip
        require(self.words > 2, f"the vocabulary must have more than 2 words, not {self.words}")
        require_rate(learning_rate=self.learning_rate, clip=self.clip)
        require_seed(self.seed)
        if self.case:
            try:
                self.dropout(0)
            except WorkloadError as error:
                raise InputError(str(error)) from error

    def dropout(self, number: int) -> Dropout:
        """Of a batch."""
        return Dropout(case=self.case, percent=self.percent, recurrent=self.recurrent,
                       seed=self.seed * MASKS + number)  # fmt: skip

    def masks(self, number: int) -> Arrays:
        """Of a batch, by what reads: [steps, batch, units], 0 or the scale; {} without dropout."""
        if not self.case:
            return {}
        names = [f"lstm{layer}/input" for layer in range(1, self.layers + 1)] + ["output"]
        if self.recurrent:
            names += [f"lstm{layer}/steps" for layer in range(1, self.layers + 1)]
        dropout, found = self.dropout(number), Arrays()
        for name in names:
            site = Site(dropout=dropout, name=name, steps=self.steps, batch=self.batch,
                        units=self.units, recurrent=name.endswith("steps"))  # fmt: skip
            found[name] = site.mask.astype(np.float32) * np.float32(site.scale)
        return found

    def draw(self) -> Arrays:
        """Weights to begin with, evenly within ± 1/√units."""
        random = np.random.Generator(np.random.Philox(key=[self.seed, 0]))
        units, bound = self.units, 1 / math.sqrt(self.units)
        shapes = {"embedding": (self.words, units)}
        for layer in range(1, self.layers + 1):
            shapes |= {f"lstm{layer}/input": (units, 4 * units),
                       f"lstm{layer}/steps": (units, 4 * units)}  # fmt: skip
            shapes[f"lstm{layer}/bias"] = (1, 4 * units)
        shapes |= {"output": (units, self.words), "output/bias": (1, self.words)}
        return {name: random.uniform(-bound, bound, shape).astype(np.float32)
                for name, shape in shapes.items()}  # fmt: skip

    def macs(self, words: int) -> int:
        """Products of a training on so many words a time: forth, and twice as many back."""
        each = 8 * self.units**2 * self.layers + self.units * self.words
        return 3 * each * words * self.epochs

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class Gradients(Protocol):
    """`training.language_gradients.TorchLanguage`, or a simpler one in tests."""

    def __call__(
        self,
        weights: Mapping[str, Any],
        read: Words,
        next_words: Words,
        masks: Mapping[str, Any],
        /,
    ) -> tuple[float, Arrays]:
        """Mean loss of words [steps, batch] in nats, and its gradients by name."""
        ...

    def loss(self, weights: Mapping[str, Any], read: Words, next_words: Words, /) -> float:
        """Without dropout."""
        ...


@dataclass
class LanguageTraining:
    """A training under way: `step` is the batch that is next, of `steps`.

    perplexities: on the measured text after each epoch, NaN for those to come; kept among the
    momenta, with Adam's.
    """

    recipe: LanguageRecipe
    data: Text
    gradients: Gradients
    step: int = 0
    injecting: bool = False
    weights: Arrays = field(default_factory=Arrays)
    momenta: Arrays = field(default_factory=Arrays)

    def __post_init__(self) -> None:
        if self.steps_an_epoch < 1:
            raise InputError(f"{len(self.data)} words are fewer than a batch of "
                             f"{self.recipe.steps} steps takes")  # fmt: skip
        if not self.weights:
            self.weights = self.recipe.draw()
            for name, one in self.weights.items():
                self.momenta[f"first/{name}"] = np.zeros_like(one)
                self.momenta[f"second/{name}"] = np.zeros_like(one)
            self.momenta["perplexities"] = np.full(self.recipe.epochs, np.nan, np.float32)

    @property
    def steps_an_epoch(self) -> int:
        """Batches of whole sequences."""
        return (len(self.data) - 1) // (self.recipe.steps * self.recipe.batch)

    @property
    def steps(self) -> int:
        """Batches of the whole training."""
        return self.steps_an_epoch * self.recipe.epochs

    @property
    def perplexities(self) -> list[float]:
        """After each epoch that is done."""
        done = self.step // self.steps_an_epoch
        return [float(one) for one in self.momenta["perplexities"][:done]]

    def advance(self) -> float:
        """One batch, and its loss; behind an epoch's last the perplexity.  Raises InputError where
        the weights have run away."""
        epoch, number = divmod(self.step, self.steps_an_epoch)
        read, following = self._batch(epoch, number)
        masks = self.recipe.masks(self.step)
        loss, gradients = self.gradients(self.weights, read, following, masks)
        require(math.isfinite(loss), f"the loss of batch {self.step} is no number any more: take a "
                f"smaller learning rate than {self.recipe.learning_rate:g}")  # fmt: skip
        self._descend(gradients)
        self.step += 1
        if number + 1 == self.steps_an_epoch:
            self.momenta["perplexities"][epoch] = self.perplexity()
        return loss

    def perplexity(self) -> float:
        """Of the measured text, without dropout: e to the mean loss of a word."""
        size = self.recipe.steps * self.recipe.batch
        count = (len(self.data.measured) - 1) // size
        require(count > 0, f"the measured text has fewer than {size} words")
        losses = [self.gradients.loss(self.weights, *self._cut(self.data.measured, n * size))
                  for n in range(count)]  # fmt: skip
        return math.exp(sum(losses) / count)

    def _batch(self, epoch: int, number: int) -> tuple[Words, Words]:
        """Sequences of the learned text, [steps, batch], in an order drawn for the epoch."""
        recipe = self.recipe
        random = np.random.Generator(np.random.Philox(key=[recipe.seed, ORDER << 56 | epoch]))
        size = recipe.batch
        chosen = random.permutation(self.steps_an_epoch * size)[number * size : (number + 1) * size]
        places = chosen * recipe.steps + np.arange(recipe.steps)[:, None]
        return self.data.learned[places], self.data.learned[places + 1]

    def _cut(self, words: Words, start: int) -> tuple[Words, Words]:
        places = np.arange(self.recipe.batch) * self.recipe.steps
        places = start + places + np.arange(self.recipe.steps)[:, None]
        return words[places], words[places + 1]

    def _descend(self, gradients: Arrays) -> None:
        """Adam, of gradients whose common norm is clipped."""
        norm = math.sqrt(sum(float(np.vdot(one, one)) for one in gradients.values()))
        scale = np.float32(min(1.0, self.recipe.clip / norm) if norm else 1.0)
        count = self.step + 1
        rate = np.float32(
            self.recipe.learning_rate * math.sqrt(1 - float(SECOND) ** count)
            / (1 - float(FIRST) ** count)
        )  # fmt: skip
        for name, weight in self.weights.items():
            gradient = gradients[name] * scale
            first, second = self.momenta[f"first/{name}"], self.momenta[f"second/{name}"]
            first += (1 - FIRST) * (gradient - first)
            second += (1 - SECOND) * (gradient * gradient - second)
            weight -= rate * first / (np.sqrt(second) + EPSILON)


__all__ = ["Arrays", "Gradients", "LanguageRecipe", "LanguageTraining"]
