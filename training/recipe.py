"""What is trained, how, and for how long: one value, kept with every model and checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, get_args

from archsim.codecs.robust_quantization import RobustScheme, normal, rquant
from archsim.errors import (
    InputError,
    nearest,
    require,
    require_positive,
    require_rate,
    require_seed,
)
from archsim.robust.random_flips import require_error_rate
from workloads.labelled import SETS
from workloads.simplenet import SimpleNet

Method = Literal["float", "normal", "rquant", "clipping", "randbet", "pattern"]

METHODS: tuple[Method, ...] = get_args(Method)

SIZES = {"mnist": (1, 28, 10), "fashion-mnist": (1, 28, 10), "cifar10": (3, 32, 10)}
"""Colours, side and classes by set of pictures."""

FULL = {
    "mnist": {"channels": 32, "epochs": 100},
    "fashion-mnist": {"channels": 32, "epochs": 100},
    "cifar10": {"channels": 64, "epochs": 250},
}
"""The paper's networks and schedules (its Fashion-MNIST's are MNIST's: it has none)."""

MOMENTUM, DECAY = 0.9, 5e-4
"""Of stochastic gradient descent, after Nesterov."""

RATE_DROP = 0.1
RATE_DROPS = (2 / 5, 3 / 5, 4 / 5)
"""The learning rate falls to a tenth after these parts of all batches."""

GRADIENT_LIMIT = 0.05
"""Gradients of the perturbed network are cut to +- this."""

THRESHOLD, CLEAN_MARGIN = 1.75, 1.15
"""Errors are injected into the next batch if the clean loss is below their product, and the mean of
the clean and the perturbed loss is at most the threshold (CIFAR-10's and MNIST's, in nats)."""

MOST_EPOCHS = 10_000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training.

    method: `float` (quantised only afterwards), `normal`, `rquant`, `clipping` (RQuant, weights
    kept within +-clip), `randbet` (the same, with errors at `rate` drawn for every batch) or
    `pattern` (with the errors of chip number `chip` at `rate`, always the same).
    bits: of a code.  channels: of the first layer (`SimpleNet`).  learning_rate: at the start.
    Raises InputError for what cannot be trained.
    """

    method: Method = "randbet"
    data: str = "mnist"
    bits: int = 8
    clip: float | None = None
    rate: float = 0.0
    chip: int = 0
    channels: int = 8
    epochs: int = 4
    batch: int = 128
    learning_rate: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"no method {self.method!r}; {nearest(self.method, METHODS)}")
        if self.data not in SETS:
            raise InputError(f"no set of pictures {self.data!r}; {nearest(self.data, SETS)}")
        require_positive(epochs=self.epochs, batch=self.batch)
        require(self.epochs <= MOST_EPOCHS, f"epochs must be at most {MOST_EPOCHS}")
        require_rate(learning_rate=self.learning_rate)
        require_seed(self.seed)
        require(self.chip >= 0, f"chip must not be negative, not {self.chip}")
        require_error_rate(self.rate)
        wants = self.method in ("randbet", "pattern")
        given = f"above 0 (--rate 0.01), not {self.rate:g}" if wants else f"(--rate {self.rate:g})"
        require(
            wants == (self.rate > 0),
            f"{self.method} {'needs a' if wants else 'takes no'} rate of errors {given}",
        )
        require(
            self.method != "clipping" or self.clip is not None,
            "clipping needs the largest magnitude of a weight (--clip 0.1)",
        )
        require(
            self.method == "pattern" or self.chip == 0,
            f"{self.method} takes no chip (--chip {self.chip}); pattern does",
        )
        rquant(self.bits, self.clip)  # refuses bits and clips
        SimpleNet(channels=self.channels)  # refuses widths

    @property
    def scheme(self) -> RobustScheme:
        """How its weights are stored."""
        return (normal if self.method == "normal" else rquant)(self.bits, self.clip)

    @property
    def network(self) -> SimpleNet:
        """What is trained."""
        colours, side, classes = SIZES[self.data]
        return SimpleNet(channels=self.channels, colours=colours, side=side, classes=classes)

    @property
    def passes(self) -> int:
        """Networks computed for a batch, forth and back: the perturbed one beside the clean one."""
        return 2 if self.rate else 1

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Of a batch, counted from 0, of so many in all."""
        drops = sum(step >= part * steps for part in RATE_DROPS)
        return self.learning_rate * RATE_DROP**drops

    def macs(self, pictures: int) -> int:
        """Products of the whole training: forth, and twice as many back."""
        return 3 * self.network.macs * pictures * self.epochs * self.passes

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class Recorded(Protocol):
    """A recipe as plain data."""

    def record(self) -> dict[str, Any]:
        """Its fields by name."""
        ...


def difference(one: Recorded, other: dict[str, Any]) -> str:
    """The first field in which a record differs: "epochs 3, not 4"; "" if none does."""
    for name, mine in one.record().items():
        if other.get(name) != mine:
            return f"{name} {other.get(name)}, not {mine}"
    return ""


__all__ = ["FULL", "METHODS", "Method", "Recipe", "Recorded", "difference"]
