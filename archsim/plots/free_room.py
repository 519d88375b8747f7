"""Names beside points, where they hide no point, no line and no other name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archsim.plots.axes import POINTS_PER_INCH

_LETTER_POINTS, _LINE_POINTS = 6.8, 13.0
_MARK_POINTS, _LINE_WIDTH_POINTS = 6.0, 4.0
_SAMPLES = 80
"""Boxes along a straight line."""

_BESIDE = (
    ((0, -7), "center", "top"),
    ((8, 0), "left", "center"),
    ((-8, 0), "right", "center"),
    ((0, 7), "center", "bottom"),
    ((0, -22), "center", "top"),
)
"""Where a name may stand: offset from its point in points, and the side that is kept there."""


class FreeRoom:
    """What of the axes is free: not points, not straight lines drawn so far, not names."""

    def __init__(self, ax: Any, points: Sequence[tuple[float, float]]) -> None:
        self._ax = ax
        self._scale: float = ax.figure.dpi / POINTS_PER_INCH
        marks: list[tuple[float, float]] = []
        if points:
            marks = ax.transData.transform(points).tolist()
        self._taken = [self._box(x, y, _MARK_POINTS, _MARK_POINTS) for x, y in marks]
        for line in ax.get_lines():
            ends: list[tuple[float, float]] = ax.transData.transform(line.get_xydata()).tolist()
            if len(ends) == 2:
                self._taken += self._along(*ends)

    def _along(self, start: tuple[float, float], end: tuple[float, float]) -> list[Any]:
        """Boxes along a straight line."""
        shares = [step / _SAMPLES for step in range(_SAMPLES + 1)]
        middles = [
            tuple((1 - share) * a + share * b for a, b in zip(start, end, strict=True))
            for share in shares
        ]
        return [self._box(x, y, _LINE_WIDTH_POINTS, _LINE_WIDTH_POINTS) for x, y in middles]

    def _box(self, x: float, y: float, width: float, height: float) -> Any:
        """A box around (x, y) in pixels, of a size in points."""
        from matplotlib.transforms import Bbox

        width, height = width * self._scale, height * self._scale
        return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)

    def write(self, name: str, point: tuple[float, float]) -> bool:
        """Write a name beside a point; False where there is no room on any side."""
        x, y = self._ax.transData.transform(point)
        width = _LETTER_POINTS * len(name)
        inside = self._ax.get_window_extent()
        for reach, side, level in _BESIDE:
            across = {"left": width / 2, "center": 0.0, "right": -width / 2}[side]
            up = {"bottom": _LINE_POINTS / 2, "center": 0.0, "top": -_LINE_POINTS / 2}[level]
            middle_x = x + (reach[0] + across) * self._scale
            middle_y = y + (reach[1] + up) * self._scale
            box = self._box(middle_x, middle_y, width, _LINE_POINTS)
            fits = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0
            if fits and not box.count_overlaps(self._taken):
                style = {"textcoords": "offset points", "ha": side, "va": level}
                self._ax.annotate(name, point, reach, **style)
                self._taken.append(box)
                return True
        return False
