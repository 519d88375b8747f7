"""What all figures share: layout, title, legend, texts of marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

NOTE = "note: "
"""A mark's gid begins with it where the rest is its exact figure, to be shown on pointing at it."""

POINTS_PER_INCH = 72


def pyplot_axes(width: float, height: float) -> Any:
    """Axes of a new pyplot figure of so many inches, which notebooks show by themselves."""
    import matplotlib.pyplot as plt

    pyplot: Any = plt
    _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


@dataclass(frozen=True, kw_only=True)
class Layout:
    """For what kind of page figures are drawn.

    narrow: as on a telephone; layers run down the page and names stand above their bars.
    width_inches: of a new figure, the least and the most; the layers decide.
    smallest_text_points: where there is no room for every layer's name in this size, only every
    n-th is written.  new_axes: makes a figure of so many inches wide and high, and its axes.
    """

    narrow: bool = False
    width_inches: tuple[float, float] = (7.0, 18.0)
    smallest_text_points: float = 5.0
    new_axes: Callable[[float, float], Any] = pyplot_axes

    def axes(self, given: Any, wanted_width: float, height: float) -> Any:
        """`given`, or new axes as near to the wanted width as the layout lets it be."""
        if given is not None:
            return given
        least, most = self.width_inches
        return self.new_axes(min(max(least, wanted_width), most), height)


NOTEBOOK = Layout()
"""As in a notebook: upright bars, a figure as wide as its layers need."""


def plain(text: str) -> str:
    """Text that matplotlib shows as it is: a pair of dollars would be read as mathematics."""
    return text.replace("$", r"\$")


def dress(ax: Any, title: str, values: str) -> None:
    """Title, and a grid across the axis of values ("x", "y" or "both"); no box around."""
    ax.set_title(plain(title), wrap=True)
    ax.grid(True, axis=values, linewidth=0.5, alpha=0.5)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def separate_thousands(axis: Any) -> None:
    """Write the axis's numbers in full, all with as many decimals, with thousands marked."""
    from matplotlib.ticker import FuncFormatter

    def text(value: float, _place: int | None) -> str:
        ticks = axis.get_majorticklocs()
        decimals = max(len(f"{tick:.10g}".partition(".")[2]) for tick in ticks)
        return f"{value:,.{decimals}f}"

    axis.set_major_formatter(FuncFormatter(text))


def legend(ax: Any) -> None:
    """Beside the marks, where it hides none; the top of a stack is at the top of the legend."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, reverse=True)


def note(mark: Any, text: str) -> None:
    """Give a mark, which lies within its axes, its exact figure as a text."""
    mark.set_gid(NOTE + text)
    mark.set_in_layout(False)


def shortened(name: str, longest: int) -> str:
    """A name, its middle cut out where it is long."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def told_apart(names: Sequence[str], longest: int) -> list[str]:
    """Names as `shortened`; where several became alike, with what differs kept and its ends cut."""
    short = [shortened(name, longest) for name in names]
    alike: dict[str, list[str]] = {}
    for name, text in zip(names, short, strict=True):
        alike.setdefault(text, []).append(name)
    return [
        text if len(set(alike[text])) == 1 else _around_difference(name, alike[text], longest)
        for name, text in zip(names, short, strict=True)
    ]


def _around_difference(name: str, names: Sequence[str], longest: int) -> str:
    """The part of a name, so long, in whose middle it differs from the others."""
    first = _alike(names)
    last = len(name) - _alike([one[::-1] for one in names])
    room = longest - 2
    start = min(max((first + last - room) // 2, 0), max(len(name) - room, 0))
    cut = name[start : start + room]
    return f"{'…' if start else ''}{cut}{'…' if start + room < len(name) else ''}"


def _alike(names: Sequence[str]) -> int:
    """With how many letters all of them begin."""
    letters = enumerate(zip(*names, strict=False))
    return next((at for at, found in letters if len(set(found)) > 1), min(map(len, names)))
