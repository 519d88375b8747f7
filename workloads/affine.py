"""Integers as a file has them: real = (integer − zero point) · scale."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError

WIDEST = 16
"""Bits of integers that a file multiplies; wider ones are sums."""

_NAME = re.compile(r"(u?)int(\d+)")


@dataclass(frozen=True, kw_only=True)
class IntegerType:
    """A type of integers: int8, uint4, …"""

    bits: int
    signed: bool

    @property
    def low(self) -> int:
        """The smallest."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest."""
        return self.low + (1 << self.bits) - 1

    @property
    def centre(self) -> int:
        """What is taken from each integer so that they are signed ones of as many bits."""
        return 0 if self.signed else 1 << (self.bits - 1)

    @property
    def storage(self) -> np.dtype[Any]:
        """NumPy's type that holds them: of 8 bits at least."""
        width = max(8, 1 << (self.bits - 1).bit_length())
        return np.dtype(f"{'' if self.signed else 'u'}int{width}")

    @property
    def name(self) -> str:
        """As ONNX and NumPy have it."""
        return f"{'' if self.signed else 'u'}int{self.bits}"


def integer_type(name: str) -> IntegerType | None:
    """The type of a NumPy or ONNX name in any case; None unless it names integers."""
    found = _NAME.fullmatch(name.lower())
    return IntegerType(bits=int(found[2]), signed=not found[1]) if found else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Affine:
    """A tensor of a file's integers.

    values: any shape, as the file has them.  scale (float32) and zero: of a shape that broadcasts
    along values; a scale or zero point a channel, or a block, is an axis of theirs.
    """

    values: NDArray[np.integer[Any]]
    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    kind: IntegerType

    @property
    def less_zero(self) -> NDArray[np.int64]:
        """Integers less their zero points: zero stands for zero."""
        return self.values.astype(np.int64) - self.zero

    @property
    def real(self) -> NDArray[np.float32]:
        """As DequantizeLinear computes them, in float32."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused later
            return self.less_zero.astype(np.float32) * self.scale

    def spread(self, name: str) -> NDArray[Any]:
        """`scale` or `zero` in the shape of the values."""
        return np.broadcast_to(getattr(self, name), self.values.shape)

    def mapped(self, move: Callable[[NDArray[Any]], NDArray[Any]]) -> Affine:
        """With `move`, which only moves elements, done to values, scales and zero points alike."""
        return Affine(
            values=move(self.values),
            scale=move(self.spread("scale")),
            zero=move(self.spread("zero")),
            kind=self.kind,
        )


def along(values: NDArray[Any], axis: int, shape: tuple[int, ...]) -> NDArray[Any] | None:
    """The values [shape[axis]] along an axis, where they do not differ along any other; or None.

    values: broadcasts to `shape`.
    """
    if values.size == 1:
        return np.broadcast_to(values.reshape(-1), (shape[axis],))
    whole = np.moveaxis(np.broadcast_to(values, shape), axis, 0).reshape(shape[axis], -1)
    first = whole[:, 0]
    return first if bool((whole == first[:, None]).all()) else None


def one_value(values: NDArray[Any]) -> Any:
    """The only value of an array; None where there are several."""
    flat = values.reshape(-1)
    return flat[0].item() if flat.size and bool((flat == flat[0]).all()) else None


def single(values: NDArray[Any], what: str) -> Any:
    """The value of an array of one element; raises WorkloadError for others."""
    if values.size != 1:
        raise WorkloadError(f"{what} must be one number, not of the shape {values.shape}")
    return values.reshape(-1)[0].item()


def broadcast_parameter(
    values: NDArray[Any], shape: tuple[int, ...], axis: int, block: int = 0
) -> NDArray[Any]:
    """A scale or zero point of QuantizeLinear so that it broadcasts along a tensor of `shape`.

    One of a single element stands for all, one of one axis lies along `axis`; with `block`, each
    element along `axis` stands for so many.  Raises WorkloadError for shapes that do not fit.
    """
    if values.size == 1:
        return values.reshape(())
    if not -len(shape) <= axis < len(shape):
        raise WorkloadError(
            f"the axis of scales must be one of the shape {shape}, not number {axis}"
        )
    if block:
        values = np.repeat(values, block, axis=axis)
        values = values[(slice(None),) * (axis % len(shape)) + (slice(0, shape[axis]),)]
    elif values.ndim == 1:
        sides = [1] * len(shape)
        sides[axis] = values.size
        values = values.reshape(sides)
    try:
        np.broadcast_to(values, shape)
    except ValueError:
        raise WorkloadError(
            f"scales and zero points must fit the shape {shape}, not be of {values.shape}"
        ) from None
    return values


__all__ = [
    "WIDEST",
    "Affine",
    "IntegerType",
    "along",
    "broadcast_parameter",
    "integer_type",
    "one_value",
    "single",
]
