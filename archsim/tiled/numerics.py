"""Number formats as a core sees them: the seam between a layer's operands and the core's words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul
from workloads.operands import Distribution, Operands

IntegerArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class TiledLayer:
    """A layer, the problem that a core makes of it, and its tiles: [tiles, WALK_COLUMNS].

    The problem is that of single groups, the tiles are those of blocks of `tiling.groups`.
    """

    layer: Conv2d | MatMul
    problem: Problem
    tiling: Tiling
    tiles: IntArray


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How synthetic operands are drawn (`workloads.operands.synthetic`)."""

    density: float = 1.0
    distribution: Distribution = "uniform"
    seed: int = 0


class Intake(Protocol):
    """Operands as a design takes them."""

    @property
    def source_bits(self) -> int:
        """Width at which workloads quantise the operands that `take` is given."""
        ...

    @property
    def whole_files(self) -> bool:
        """Whether `take` accepts a quantised file's integers with their zero points and scales."""
        ...

    def synthetic(self, layer: Conv2d | MatMul, drawing: Drawing) -> Operands:
        """Operands drawn from a seed that `take` accepts."""
        ...

    def take(self, layer: Conv2d | MatMul, operands: Any) -> Any:
        """Operands as the core computes with them, checked; given such, they are only checked.

        Raises `InputError` for operands that are not of the layer's shapes or the core's widths.
        """
        ...


class Numerics(Intake, Protocol):
    """What differs between cores that compute in different formats."""

    @property
    def problem_key(self) -> Hashable:
        """Numerics of one key make the same problem of every layer."""
        ...

    def problem(self, layer: Conv2d | MatMul) -> Problem:
        """The layer as the core sees it: channels count what an ifmap lane holds."""
        ...

    def scaling(self, operands: Any) -> tuple[int, int]:
        """(multiplier, shift) of the layer's command, of what `take` answered."""
        ...

    def may_share(self, operands: Any) -> bool:
        """Whether groups may lie side by side: 0 times any value of the ifmap is 0.

        operands: what `take` answered.
        """
        ...

    def words(self, tiled: TiledLayer, operands: Any) -> dict[str, IntArray]:
        """The payload of every port of data, in order: [words, lanes] each."""
        ...

    def stored(self, layer: Conv2d | MatMul, operands: Any) -> tuple[IntegerArray, IntegerArray]:
        """Ifmap and weights as the scratchpads hold them, split as `archsim.tiled.layout` says.

        Raises `InputError` where a lane of a word is not one value.
        """
        ...

    def ofmap(
        self,
        layer: Conv2d | MatMul,
        tiling: Tiling,
        operands: Any,
        stored: Any = None,
    ) -> Any:
        """What the core computes for a layer: an array [N, K, P, Q] or [b, M, N].

        stored: what `stored` answered, where it has been asked already.
        """
        ...
