"""What a network of a training step says beside its layers: which pass each belongs to, and what
has to be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from workloads.checks import countable

if TYPE_CHECKING:
    from workloads.training.step import TrainingStep

PHASES = {
    "FP": "forward",
    "BP": "gradients of activations, back through the network",
    "WG": "gradients of weights",
    "update": "the optimiser's step",
}
"""The passes of a training step, in order, and what they do."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """passes: of each layer by its name (`PHASES`).  weight_elements: those of matrix layers;
    trained_elements: of all that is trained, with biases and scales, but without tables of
    embeddings, whose sizes shapes do not tell.

    kept_elements: values of the forward pass that the others read, each once; kept_flag_bits: of
    ReLUs whose values nobody keeps, one an element, and of max poolings, which place has won.
    optimiser_copies: values that the optimiser keeps for each one that is trained.  step: what the
    layers were made of.
    """

    passes: Mapping[str, str] = field(hash=False)
    weight_elements: int
    trained_elements: int
    kept_elements: int
    kept_flag_bits: int
    optimiser_copies: int
    step: TrainingStep | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = {name: value for name, value in vars(self).items() if type(value) is int}
        countable("training step", **counts)


__all__ = ["PHASES", "Training"]
