"""Points drawn with the dots of Braille letters, 2 × 4 a character, their ends written on axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from archsim.study_report.tables import written

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a Braille letter behind U+2800: [row][column]."""

Point = tuple[float, float]


def scatter(points: Sequence[Point], columns: int, rows: int) -> list[str]:
    """Lines of at most `columns` characters: a picture of `rows`, and its axes.

    points: two at least, all finite.  Axes are logarithmic where all values are above 0.  Points
    are joined by steps, as a front is: behind each, its second value holds to the next.
    """
    xs, low_x, high_x = _placed([x for x, _ in points])
    ys, low_y, high_y = _placed([y for _, y in points])
    margin = max(len(low_y), len(high_y))
    width = columns - margin - 2
    cells = [[0] * width for _ in range(rows)]
    across = [round(x * (2 * width - 1)) for x in xs]
    down = [round((1 - y) * (4 * rows - 1)) for y in ys]
    ordered = sorted(zip(across, down, strict=True))
    for column, row in ordered:
        _dot(cells, column, row)
    for (left, level), (right, after) in pairwise(ordered):
        for column in range(left, right, 2):
            _dot(cells, column, level)
        for row in range(min(level, after), max(level, after), 2):
            _dot(cells, right, row)
    labels = [high_y, *[""] * (rows - 2), low_y]
    lines = [
        f"{label:>{margin}} ┤" + "".join(chr(0x2800 + bits) for bits in row)
        for label, row in zip(labels, cells, strict=True)
    ]
    gap = max(width - len(low_x) - len(high_x), 1)
    return [
        *lines,
        " " * (margin + 1) + "└" + "─" * width,
        " " * (margin + 2) + low_x + " " * gap + high_x,
    ]


def _dot(cells: list[list[int]], column: int, row: int) -> None:
    cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]


def _placed(values: Sequence[float]) -> tuple[list[float], str, str]:
    """Places between 0 and 1, and the ends as texts."""
    low, high = min(values), max(values)
    scaled = [math.log(one) for one in values] if low > 0 else list(values)
    first, last = min(scaled), max(scaled)
    spread = (last - first) or 1.0
    return [(one - first) / spread for one in scaled], written(low), written(high)


__all__ = ["scatter"]
