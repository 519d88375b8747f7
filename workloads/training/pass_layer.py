"""One product of a training step: a layer that any machine takes, and what it stands for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from workloads.layers import Conv2d, MatMul

Array = NDArray[Any]

Pass = Literal["FP", "BP", "WG"]
"""Forward; the gradient of a layer's input; the gradient of its weight."""

PASSES: tuple[Pass, ...] = ("FP", "BP", "WG")


@dataclass(frozen=True)
class Tensors:
    """What a pass reads of a layer: x its ifmap, w its weight, dy the gradient of its ofmap.

    In the shapes of the forward layer; values, or flags of those that are not zero.  What a pass
    does not read may be left out.
    """

    x: Array | None = None
    w: Array | None = None
    dy: Array | None = None

    def given(self, name: Literal["x", "w", "dy"]) -> Array:
        """One that the pass reads.  Raises ValueError where it was left out."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"the pass reads {name}, which is not given")
        return value


@dataclass(frozen=True, kw_only=True)
class PassLayer(ABC):
    """A layer of a pass of the forward layer `of`.

    Its ofmap is, or is a part of, the gradient (of FP: the ofmap) in the forward layer's shapes;
    the parts of a pass do not overlap, and where no part is, the gradient is 0.
    """

    kind: Pass
    of: Conv2d | MatMul
    layer: Conv2d | MatMul

    @abstractmethod
    def ifmap(self, tensors: Tensors) -> Array:
        """Of `layer`, in its shape (`workloads.operands.operand_shapes`)."""

    @abstractmethod
    def weight(self, tensors: Tensors) -> Array:
        """Of `layer`, in its shape."""

    @abstractmethod
    def part(self, gradient: Array) -> Array:
        """What `layer` computes of a tensor in the forward layer's shape, in its ofmap's shape.

        Also of flags: which of its outputs are needed.
        """

    @abstractmethod
    def put(self, ofmap: Array, gradient: Array) -> None:
        """Write the layer's ofmap where it belongs; the inverse of `part`."""


@dataclass(frozen=True, kw_only=True)
class Forward(PassLayer):
    """FP: the layer as it is."""

    def ifmap(self, tensors: Tensors) -> Array:
        return tensors.given("x")

    def weight(self, tensors: Tensors) -> Array:
        return tensors.given("w")

    def part(self, gradient: Array) -> Array:
        return gradient

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[...] = ofmap


def swapped(values: Array) -> Array:
    """The last two axes exchanged."""
    return np.swapaxes(values, -1, -2)


__all__ = ["PASSES", "Array", "Forward", "Pass", "PassLayer", "Tensors", "swapped"]
