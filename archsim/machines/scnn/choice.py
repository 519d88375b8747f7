"""What can be chosen of how a layer goes through a sparse core, and all the ways that differ.

Memories decide what fits: a choice says the most rows of a strip and the most filters of a group,
and the core takes the largest of both that its memories hold, as it does by default; a fully
connected layer goes as it is, or folded into a plane (`archsim.machines.scnn.fold`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from archsim.layer.problem import problem_of
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.fold import planes_of
from archsim.numbers import ceil_div
from workloads.layers import Conv2d, MatMul


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Of a layer.  strip_rows: the most rows (columns, of a plane of one row) of the ofmap in a
    pass; filter_group: the most filters in a group; plane: rows and columns of the plane of inputs
    into which a fully connected layer is folded, None of one that is not."""

    strip_rows: int
    filter_group: int
    plane: tuple[int, int] | None = None

    def planned(self, design: Scnn) -> Scnn:
        """The design by whose sizes the layer is cut; its queues are the design's own."""
        return replace(design, strip_rows=self.strip_rows, filter_group=self.filter_group)

    @property
    def words(self) -> str:
        """For a person."""
        folded = f"folded into {self.plane[0]}x{self.plane[1]}, " if self.plane else ""
        strips = "" if self.plane else f"strips of at most {self.strip_rows}, "
        return f"{folded}{strips}groups of at most {self.filter_group}"


def strip_sizes(outputs: int) -> list[int]:
    """Rows of strips that cut so many equally, ⌈outputs / n⌉ for each n, the largest first."""
    return sorted({ceil_div(outputs, number) for number in range(1, outputs + 1)}, reverse=True)


def shapes(design: Scnn, layer: Conv2d | MatMul) -> Iterator[Choice]:
    """Every size of strips and every plane, with the largest groups.

    Of sizes that cut a plane into equally many strips there is one.
    """
    problem = problem_of(layer)
    most = min(design.filter_group, problem.filters)
    outputs = problem.out_width if problem.out_height == 1 else problem.out_height
    for size in strip_sizes(outputs):
        if not 0 < design.strip_rows < size:
            yield Choice(strip_rows=size, filter_group=most)
    if isinstance(layer, MatMul) and layer.shared_weight:
        for plane in planes_of(design, layer.k):
            yield Choice(strip_rows=1, filter_group=most, plane=plane)


__all__ = ["Choice", "shapes", "strip_sizes"]
