"""SimpleNet with group normalisation: the network of the papers on bit errors in weights.

Hasanpour et al., "Lets keep it simple" (arXiv:1608.06037), as Stutz et al. (MLSys 2021) train it:
convolutions with biases, each behind it group normalisation and a ReLU, maximum pooling between,
and one fully connected layer.  Widths are multiples of the first layer's: 32 channels on MNIST and
64 on CIFAR-10 in that paper (1,082,826 and 5,498,378 weights).  The normalisation's scale is stored
as its difference from 1, so that small weights mean it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from workloads.errors import WorkloadError

Weights = dict[str, npt.NDArray[np.float32]]

GROUPS = (32, 24, 16, 8)
"""Numbers of groups to try, the first that divides a layer's channels; at most half of these."""

POOL = "pool"

BLOCKS: Mapping[int, tuple[tuple[int, int] | str, ...]] = {
    28: (
        (1, 3), (2, 3), (2, 3), (2, 3), POOL, (2, 3), (2, 3), (4, 3), POOL,
        (8, 3), (32, 1), (4, 1), POOL, (4, 3),
    ),
    32: (
        (1, 3), (2, 3), (2, 3), (2, 3), POOL, (2, 3), (2, 3), (4, 3), POOL,
        (4, 3), (4, 3), POOL, (8, 3), POOL, (32, 1), (4, 1), POOL, (4, 3),
    ),
}  # fmt: skip
"""By the picture's side: channels as a multiple of the first layer's, and the kernel's side."""

MOST_CHANNELS = 1024


@dataclass(frozen=True)
class NormalizedConvolution:
    """A convolution [out, in, kernel, kernel] of step 1 that keeps the size, then the rest.

    side: of its output, before the pooling.  pool: side of the maximum pooling behind it, or 1.
    """

    name: str
    inputs: int
    outputs: int
    kernel: int
    groups: int
    side: int
    pool: int = 1

    @property
    def macs(self) -> int:
        """Products for one picture."""
        return self.side**2 * self.kernel**2 * self.inputs * self.outputs


@dataclass(frozen=True, kw_only=True)
class SimpleNet:
    """The network for square pictures.

    channels: of the first layer.  colours, side: of a picture.  classes: what it tells apart.
    Raises WorkloadError for sizes that there is no such network for.
    """

    channels: int = 32
    colours: int = 1
    side: int = 28
    classes: int = 10

    def __post_init__(self) -> None:
        if not 2 <= self.channels <= MOST_CHANNELS or self.channels % 2:
            raise WorkloadError(
                f"channels must be even and from 2 to {MOST_CHANNELS}, not {self.channels}"
            )
        if self.side not in BLOCKS:
            raise WorkloadError(f"pictures must be 28 or 32 wide, not {self.side}")

    @cached_property
    def convolutions(self) -> tuple[NormalizedConvolution, ...]:
        """In the order of the data."""
        found: list[NormalizedConvolution] = []
        inputs, side = self.colours, self.side
        blocks = (*BLOCKS[self.side], POOL)
        for block, follows in zip(blocks, (*blocks[1:], ""), strict=True):
            if isinstance(block, str):
                continue
            last = len(found) + 1 == sum(not isinstance(one, str) for one in blocks)
            pool = (side if last else 2) if follows == POOL else 1
            outputs = self.channels * block[0]
            found.append(
                NormalizedConvolution(
                    f"conv{len(found) + 1}", inputs, outputs, block[1], _groups(outputs), side, pool
                )
            )
            inputs, side = outputs, side // pool
        return tuple(found)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every weight by name, in order."""
        found: dict[str, tuple[int, ...]] = {}
        for one in self.convolutions:
            found[f"{one.name}.weight"] = (one.outputs, one.inputs, one.kernel, one.kernel)
            found |= dict.fromkeys(
                (f"{one.name}.bias", f"{one.name}.scale", f"{one.name}.shift"), (one.outputs,)
            )
        found["classify.weight"] = (self.classes, self.convolutions[-1].outputs)
        found["classify.bias"] = (self.classes,)
        return found

    @property
    def weights(self) -> int:
        """How many there are, biases and normalisations counted."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    @property
    def macs(self) -> int:
        """Products for one picture."""
        last = self.classes * self.convolutions[-1].outputs
        return sum(one.macs for one in self.convolutions) + last

    def draw(self, seed: int) -> Weights:
        """Weights to begin with: He et al.'s (variance 2 / inputs of a sum); the others are 0."""
        draws = np.random.Generator(np.random.Philox(key=[seed, 0]))
        found: Weights = {}
        for name, shape in self.shapes.items():
            found[name] = np.zeros(shape, np.float32)
            if name.endswith(".weight"):
                spread = np.sqrt(2 / np.prod(shape[1:]))
                found[name] = (spread * draws.standard_normal(shape)).astype(np.float32)
        return found

    def check(self, weights: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Raise WorkloadError unless every weight is there, and of its shape."""
        for name, shape in self.shapes.items():
            if name not in weights:
                raise WorkloadError(f"the weights lack {name}")
            if weights[name].shape != shape:
                raise WorkloadError(f"{name} must be of shape {shape}, not {weights[name].shape}")


def _groups(channels: int) -> int:
    """Of a layer of so many channels, as the authors' implementation chooses them."""
    for wanted in GROUPS:
        groups = min(wanted, channels // 2)
        if channels % groups == 0:
            return groups
    raise WorkloadError(f"no number of groups of {GROUPS} divides {channels} channels")


__all__ = ["NormalizedConvolution", "SimpleNet", "Weights"]
