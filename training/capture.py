"""Training a network for a while, and the zeros of some of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archsim.capture_file import packed_capture
from archsim.errors import require, require_seed
from archsim.robust.model import packed_arrays
from archsim.version import VERSION
from training.flow_step import FlowStep
from training.gradients import torch_module
from workloads.errors import WorkloadError
from workloads.flow import INPUT
from workloads.labelled import Labelled
from workloads.layers import Conv2d, Network
from workloads.training.captured import Capture, ifmaps_of, network_digest

Progress = Callable[[int, int, str], None]
"""Told the steps done, of how many, and what to show."""

MOST_EPOCHS = 1000


@dataclass(frozen=True, kw_only=True)
class CaptureRecipe:
    """epochs: after how many a step is captured, 0 for the very first step.  data: the set of
    pictures, of which the first `pictures` are an epoch; batch: of them a step.  rate: of learning.

    Raises `InputError` for numbers that make no training.
    """

    epochs: tuple[int, ...] = (0, 1)
    data: str = "fashion-mnist"
    pictures: int = 2000
    batch: int = 50
    rate: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        good = bool(self.epochs) and all(0 <= one <= MOST_EPOCHS for one in self.epochs)
        require(good, f"--epochs must be from 0 to {MOST_EPOCHS}, not {self.epochs}")
        require(self.pictures > 0, f"--pictures must be positive, not {self.pictures}")
        good = 1 <= self.batch <= self.pictures
        require(good, f"--batch must be 1 to the {self.pictures} pictures, not {self.batch}")
        require(0 < self.rate <= 10, f"--learning-rate must be above 0 to 10, not {self.rate:g}")
        require_seed(self.seed)

    @property
    def steps(self) -> int:
        """Until the last step that is captured."""
        return max(self.epochs) * (self.pictures // self.batch) + 1


class CapturedEpoch(NamedTuple):
    """epoch: trained before; loss, right: of the captured step; content: of its file."""

    epoch: int
    loss: float
    right: float
    density: float
    content: bytes


def captured_epochs(
    network: Network, recipe: CaptureRecipe, data: Labelled, progress: Progress, *, threads: int = 1
) -> Iterator[CapturedEpoch]:
    """Train, and give a captured step for each epoch that is asked for, in their order.

    Raises WorkloadError for a network that does not take pictures or is not computed here, and for
    more pictures than there are or a batch of the network above that of a step.
    """
    shape = _input_shape(network)
    if shape[0] > recipe.batch:
        raise WorkloadError(
            f"{network.name}: its batch is {shape[0]}, and a step has {recipe.batch} pictures"
        )
    step = FlowStep(network, seed=recipe.seed, rate=recipe.rate, threads=threads)
    if recipe.pictures > len(data):
        raise WorkloadError(f"{data.name} has {len(data)} pictures, not {recipe.pictures}")
    chosen, done = data.spread(recipe.pictures), 0
    for epoch in range(max(recipe.epochs) + 1):
        order = np.random.Generator(np.random.Philox(key=[recipe.seed, 2 + epoch]))
        shuffled = order.permutation(recipe.pictures)
        for number in range(recipe.pictures // recipe.batch):
            own = shuffled[number * recipe.batch : (number + 1) * recipe.batch]
            loss, right = step.step(_fitted(chosen.pictures[own], shape), chosen.labels[own])
            if not np.isfinite(loss):
                raise WorkloadError(
                    f"{network.name}: the loss is {loss} after {done + 1} steps; say a lower "
                    f"--learning-rate than {recipe.rate:g}"
                )
            done += 1
            progress(done, recipe.steps, f"epoch {epoch}, loss {loss:.3f}")
            if number == 0 and epoch in recipe.epochs:
                yield _captured(step, recipe, epoch, (loss, right))
            if done == recipe.steps:
                return


def _captured(
    step: FlowStep, recipe: CaptureRecipe, epoch: int, met: tuple[float, float]
) -> CapturedEpoch:
    network = step.network
    batch = _input_shape(network)[0]
    masks = step.masks(batch)
    said = (
        f"captured from {batch} of {recipe.batch} pictures of {recipe.data} after {epoch} epochs "
        f"of {recipe.pictures}"
    )
    capture = Capture(
        network=f"{network.name} with batch {batch}",
        digest=network_digest(network),
        source=said,
        tensors=masks.tensors,
        gradients=masks.gradients,
    )
    loss, right = met
    made = {**asdict(recipe), "epochs": [epoch], "loss": loss, "right": right, "archsim": VERSION}
    whole = sum(mask.size for mask in masks.tensors.values())
    ones = sum(int(np.count_nonzero(mask)) for mask in masks.tensors.values())
    content = packed_arrays(packed_capture(capture, made))
    return CapturedEpoch(epoch, loss, right, ones / whole if whole else 1.0, content)


def _input_shape(network: Network) -> tuple[int, int, int, int]:
    """[batch, colours, height, width] of what the network begins with."""
    first = dict(ifmaps_of(network)).get(INPUT)
    if not isinstance(first, Conv2d):
        raise WorkloadError(f"{network.name} does not begin with a convolution of pictures")
    return first.batch, first.channels, first.ifmap_height, first.ifmap_width


def _fitted(pictures: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """From 0 to 1, grey in every colour, bilinearly enlarged (without making borders up)."""
    colours, sides = shape[1], shape[2:]
    values: Any = pictures.astype(np.float32) / np.float32(255)
    if values.shape[1] != colours:
        values = np.repeat(values.mean(axis=1, keepdims=True), colours, axis=1)
    if values.shape[2:] == sides:
        return np.ascontiguousarray(values)
    torch = torch_module()
    whole = torch.nn.functional.interpolate(torch.from_numpy(values), size=sides, mode="bilinear")
    return whole.numpy()


__all__ = ["CaptureRecipe", "CapturedEpoch", "captured_epochs"]
