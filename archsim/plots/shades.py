"""Numbers from 0 to 1 as shades of one colour, which are read on a light and on a dark ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Shares = npt.NDArray[np.float64]

SHADE = (0x1F / 255, 0x7F / 255, 0xC4 / 255)
"""A blue between the two of the page's themes: a picture has one for both."""

PALEST, DARKEST, DARKEST_NUMBERED = 0.04, 0.95, 0.7
"""Opacity of nothing and of all; less where a number is to be read on it."""

MOST_CELLS = 256
"""Along an axis; of more lines several are one, with their mean."""


def shades(
    ax: Any, shares: Shares, extent: tuple[float, float, float, float], *, numbered: bool = False
) -> None:
    """A picture of shares [rows, columns], each 0 to 1.

    extent: left, right, bottom, top of the picture, in the axes' coordinates.
    """
    darkest = DARKEST_NUMBERED if numbered else DARKEST
    shown = _fewer(_fewer(shares, 0), 1)
    pixels = np.empty((*shown.shape, 4))
    pixels[..., :3] = SHADE
    pixels[..., 3] = PALEST + (darkest - PALEST) * np.clip(shown, 0, 1)
    ax.imshow(pixels, extent=extent, aspect="auto", interpolation="none")


def _fewer(values: Shares, axis: int) -> Shares:
    """Means of neighbours along an axis, so that there are few enough."""
    count = values.shape[axis]
    if count <= MOST_CELLS:
        return values
    ends = np.unique(np.arange(MOST_CELLS + 1) * count // MOST_CELLS)
    sums = np.add.reduceat(values, ends[:-1], axis=axis)
    sizes = np.diff(ends)
    return sums / (sizes[:, None] if axis == 0 else sizes)


def scale_bar(ax: Any, most: float, name: str, *, narrow: bool) -> None:
    """What the shades stand for, to the right of the axes: from 0 to `most`, in percent."""
    bar = ax.inset_axes((1.03, 0.0, 0.05 if narrow else 0.025, 1.0))
    shades(bar, np.linspace(1, 0, 64)[:, None], (0, 1, 0, 100 * most))
    bar.patch.set_visible(False)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.yaxis.set_label_position("right")
    bar.set_ylabel(name)
    bar.set_ylim(0, 100 * most)
    for side in bar.spines.values():
        side.set_visible(False)
