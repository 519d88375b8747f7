"""Number formats as a core sees them: the seam between a layer's operands and the core's words."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from archsim.layer.intake import Intake
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from workloads.layers import Conv2d, MatMul

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
        """Ifmap and weights as the scratchpads hold them, split as `archsim.layer.layout` says.

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
