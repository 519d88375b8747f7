"""Einstein sums of one or two tensors, as a matrix product where they are one.

Of two tensors, labels are of one of four kinds: in both and in the result (batch), in both and
summed (K), in the first alone (M), in the second alone (N).  A label of one tensor alone that is
not in the result is summed before the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError

Labels = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Term:
    """A tensor of `shape` and the label of each axis; kept: those that are not broadcast."""

    labels: Labels
    shape: tuple[int, ...]
    kept: Labels

    def arranged(self, array: NDArray[Any], order: Labels) -> NDArray[Any]:
        """The tensor with axes in an order of all kept labels."""
        axes = tuple(at for at, one in enumerate(self.labels) if one not in self.kept)
        return np.squeeze(array, axes).transpose([self.kept.index(one) for one in order])


@dataclass(frozen=True, kw_only=True)
class Einsum:
    """An equation with the shapes of its tensors; swapped: the second is the ifmap."""

    terms: tuple[Term, ...]
    result: Labels
    sizes: dict[str, int]
    swapped: bool = False

    @property
    def ordered(self) -> tuple[Term, ...]:
        """Ifmap and weight."""
        return self.terms[::-1] if self.swapped else self.terms

    def _of(self, number: int, *, shared: bool, made: bool) -> Labels:
        """Labels of an operand by whether the other has them and whether the result has."""
        mine, other = self.ordered[number].kept, self.ordered[1 - number].kept
        found = [one for one in mine if (one in other) == shared and (one in self.result) == made]
        order = self.result if made else mine
        return tuple(sorted(found, key=order.index))

    @cached_property
    def batch(self) -> Labels:
        """Labels of independent products."""
        return self._of(0, shared=True, made=True)

    @cached_property
    def rows(self) -> Labels:
        """M."""
        return self._of(0, shared=False, made=True)

    @cached_property
    def columns(self) -> Labels:
        """N."""
        return self._of(1, shared=False, made=True)

    @cached_property
    def summed(self) -> Labels:
        """K."""
        return self._of(0, shared=True, made=False)

    @property
    def is_product(self) -> bool:
        """Whether a matrix product computes it: sums of products, or an outer product."""
        return len(self.terms) == 2 and bool(self.summed or (self.rows and self.columns))

    def alone(self, number: int) -> Labels:
        """Labels of the ifmap (0) or the weight (1) that are summed before the product."""
        return self._of(number, shared=False, made=False)

    def size(self, labels: Labels) -> int:
        """Elements along some labels."""
        return prod(self.sizes[one] for one in labels)

    def is_turned(self, number: int) -> bool:
        """Whether an operand's axes are in no order that a product reads them in."""
        own = self.rows if number == 0 else self.columns
        left = self._long(one for one in self.ordered[number].kept if one not in self.alone(number))
        orders = (self.batch + own + self.summed, self.batch + self.summed + own)
        return left not in [self._long(order) for order in orders]

    @property
    def result_is_turned(self) -> bool:
        """Whether the result's axes are in another order than the product's."""
        return self._long(self.result) != self._long(self.batch + self.rows + self.columns)

    def _long(self, labels: Any) -> Labels:
        return tuple(one for one in labels if self.sizes[one] > 1)

    def summed_alone(self, number: int, array: NDArray[Any]) -> NDArray[Any]:
        """An operand with what is summed before the product summed, its axes kept as 1."""
        term, alone = self.ordered[number], self.alone(number)
        axes = tuple(at for at, one in enumerate(term.labels) if one in alone)
        return array.sum(axis=axes, keepdims=True) if axes else array

    def operand(self, number: int, array: NDArray[Any]) -> NDArray[Any]:
        """An operand [batch, M, K] or [batch, K, N], of what `summed_alone` gives."""
        term, alone = self.ordered[number], self.alone(number)
        matrix = (self.rows, self.summed) if number == 0 else (self.summed, self.columns)
        order = (*alone, *self.batch, *matrix[0], *matrix[1])
        shape = (self.size(self.batch), self.size(matrix[0]), self.size(matrix[1]))
        return term.arranged(array, order).reshape(shape)


def parsed(equation: str, shapes: Sequence[tuple[int, ...]], *, swapped: bool = False) -> Einsum:
    """An equation as ONNX and NumPy write it.  Raises WorkloadError for one that is wrong, that has
    more than two tensors or takes a diagonal."""
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    written = left.split(",")
    if len(written) != len(shapes) or not 1 <= len(shapes) <= 2:
        raise WorkloadError(
            f"equation {equation!r} must be of one or two tensors, as many as are given, not "
            f"{len(written)} and {len(shapes)}; write more as several"
        )
    labels = [
        _labels(one, len(shape), equation) for one, shape in zip(written, shapes, strict=True)
    ]
    sizes = _sizes(labels, shapes, equation)
    result = _result(labels, sizes, right if arrow else None, equation)
    if len(set(result)) < len(result) or any(one not in sizes for one in result):
        raise WorkloadError(
            f"equation {equation!r}: the result must have labels of its tensors, once"
        )
    terms = tuple(
        Term(labels=own, shape=shape, kept=tuple(
            one for one, size in zip(own, shape, strict=True) if size == sizes[one]))
        for own, shape in zip(labels, shapes, strict=True)
    )  # fmt: skip
    return Einsum(terms=terms, result=result, sizes=sizes, swapped=swapped)


def _sizes(
    labels: Sequence[Labels], shapes: Sequence[tuple[int, ...]], equation: str
) -> dict[str, int]:
    """By label; a size of 1 goes with any."""
    sizes: dict[str, int] = {}
    for own, shape in zip(labels, shapes, strict=True):
        for label, size in zip(own, shape, strict=True):
            known = sizes.get(label, 1)
            if known != size and 1 not in (known, size):
                raise WorkloadError(
                    f"equation {equation!r}: {label!r} must be one size, not {known} and {size}"
                )
            sizes[label] = max(known, size)
    return sizes


def _result(
    labels: Sequence[Labels], sizes: dict[str, int], written: str | None, equation: str
) -> Labels:
    """Labels of the result; where none are written, of those that stand once, in order."""
    dots = sorted((one for one in sizes if one.startswith(".")), key=lambda one: -int(one[1:]))
    if written is None:
        counts = Counter(label for own in labels for label in own)
        once = sorted(one for one, many in counts.items() if many == 1 and one not in dots)
        return (*dots, *once)
    before, spread, after = written.partition("...")
    if dots and not spread:
        raise WorkloadError(f"equation {equation!r}: the result must have '...' too")
    return (*before, *(dots if spread else ()), *after)


def _labels(written: str, rank: int, equation: str) -> Labels:
    """Of a tensor; axes of an ellipsis are ".1" for the last, ".2" for the one before."""
    before, dots, after = written.partition("...")
    named = before + after
    if not all(one.isascii() and one.isalpha() for one in named):
        raise WorkloadError(f"equation {equation!r}: labels must be letters, not {written!r}")
    if len(set(named)) < len(named):
        raise WorkloadError(
            f"equation {equation!r} takes a diagonal of {written!r}, which is no product; take it "
            f"before"
        )
    extra = rank - len(named)
    if extra < 0 or (extra and not dots):
        raise WorkloadError(f"equation {equation!r}: {written!r} must have {rank} axes")
    return (*before, *(f".{extra - at}" for at in range(extra)), *after)


__all__ = ["Einsum", "Term", "parsed"]
