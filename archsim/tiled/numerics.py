"""Number formats as a core sees them: the seam between a layer's operands and the core's words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from archsim.layer.intake import Intake
from archsim.layer.pixel_sums import PixelSums
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import AnyIntArray, IntArray
from archsim.tiled.commands import TileCommand
from archsim.tiled.tile_words import WordLanes
from workloads.layers import Conv2d, MatMul

if TYPE_CHECKING:
    from archsim.tiled.file_numerics import FileOfmap

Spans = Sequence[tuple[int, int]]

IntegerArray = npt.NDArray[np.integer[Any]]

Outputs = tuple[IntArray, ...]
"""[images, groups, P, Q, n] each: the values n = K, and what the format has beside them."""

More = AnyIntArray | PixelSums
"""What is added to sums [images, groups, P, Q, K], or to those of some pixels, modulo 2^32."""

OutputsWith = Callable[[Problem, Any, Any, More], Outputs]
"""Of a problem, its split operands, operands, and what is added to sums of at most so many bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Operands in blocks of groups, int64, an element with the E lanes of a word that it takes.

    ifmap [images, blocks, H, W, C, E], weight [blocks, K, R, S, C, E], bias [blocks, K, E]; E is
    each operand's own.  A block's channels and filters are those of all its groups
    (`Problem.side_by_side`).
    """

    ifmap: IntArray
    weight: IntArray
    bias: IntArray

    def of(self, name: str) -> IntArray:
        """Of "ifmap", "weight" or "bias"."""
        return {"ifmap": self.ifmap, "weight": self.weight, "bias": self.bias}[name]


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

    def stored(self, layer: Conv2d | MatMul, operands: Any) -> tuple[IntegerArray, IntegerArray]:
        """Ifmap and weights as the scratchpads hold them, split as `archsim.layer.layout` says.

        Raises `InputError` where a lane of a word is not one value.
        """
        ...

    def as_file(self, layer: Conv2d | MatMul, operands: Any) -> FileOfmap | None:
        """What a quantised file's operands make; None of others."""
        ...

    def in_words(self, layer: Conv2d | MatMul, operands: Any) -> Any:
        """The operands of which words can be made.  Raises `InputError` where none can."""
        ...

    def split(self, layer: Conv2d | MatMul, operands: Any, stored: Any = None) -> Any:
        """Operands split by groups, as `outputs` takes them.

        stored: what `stored` answered, where it has been asked already.
        """
        ...

    def outputs(self, problem: Problem, tiling: Tiling, split: Any, operands: Any) -> Outputs:
        """What the core computes of split operands of a problem, its memories being exact.

        operands: for what belongs to the whole layer, as its shift.
        """
        ...

    @property
    def outputs_with(self) -> OutputsWith | None:
        """`outputs` with something added to the sums before; None unless sums are whole numbers
        that wrap: then what is added to an operand adds its products, in whatever order."""
        ...

    def partial_sums(self, problem: Problem, split: Any, spans: Spans) -> list[IntArray]:
        """What a channel tile adds to its accumulators in turn: [images, P, Q, K] each.

        problem, split: of that tile alone.  spans: of a kernel's elements [R · S · C], from which
        on and up to which each is summed.
        """
        ...

    def added(self, held: IntArray, sums: IntArray) -> IntArray:
        """What an accumulator that held a sum then holds."""
        ...

    def finished(self, problem: Problem, sums: IntArray, split: Any, operands: Any) -> Outputs:
        """Outputs of the sums [images, 1, P, Q, K] of one group, as the accumulators give them."""
        ...

    def joined(self, layer: Conv2d | MatMul, outputs: Outputs) -> Any:
        """Outputs as the layer's ofmap: [N, K, P, Q] or [b, M, N]."""
        ...

    @property
    def word_lanes(self) -> WordLanes:
        """How words are cut of operands."""
        ...

    def blocks(self, split: Any, groups: int) -> Blocks:
        """Split operands as words are cut of them, so many groups side by side."""
        ...

    def split_of(self, blocks: Blocks) -> Any:
        """The inverse of `blocks` for operands of which each block is a group."""
        ...

    def output_words(self, tiles: Sequence[TileCommand[int]], outputs: Outputs) -> IntArray:
        """The words of the ofmap of a layer's tiles, of outputs in blocks: [words, lanes]."""
        ...
