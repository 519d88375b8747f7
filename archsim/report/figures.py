"""The figures of the page: each drawn wide and narrow, with its legend as text of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.plots import Layout, ResultPlots
from archsim.plots.axes import POINTS_PER_INCH
from archsim.report.svg import page_svg
from archsim.report.theme import GRID, INK, variable

if TYPE_CHECKING:
    from archsim.result import NetworkResult

Draw = Callable[[ResultPlots], Any]

WIDE_PIXELS, NARROW_PIXELS = 800, 340
"""Widths at which a figure's text has its own size; the page's style scales it a little."""

SMALLEST_TEXT_PIXELS = 10.0
_TEXT_PIXELS = 11.5
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S)")
"""A number and its unit stay on one line."""


@dataclass(frozen=True, kw_only=True)
class LegendEntry:
    """colour: as CSS.  shape: "box", "line", "dashed", "dotted" or "dot"."""

    text: str
    colour: str
    shape: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure in the page.

    name: its id.  description: what is drawn, for readers who do not see it, and `caption` what to
    read from it.  wide, narrow: SVG.
    """

    name: str
    heading: str
    description: str
    caption: str
    legend: tuple[LegendEntry, ...]
    wide: str
    narrow: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A figure to be made: what draws it, and its texts."""

    name: str
    heading: str
    draw: Draw
    caption: str


def make_figure(result: NetworkResult, plan: Plan) -> Figure:
    """Draw a figure of a result in both widths."""
    return figure_of(
        plan.name,
        plan.heading,
        lambda layout: plan.draw(ResultPlots(result, layout)),
        plan.caption,
    )


def figure_of(name: str, heading: str, draw: Callable[[Layout], Any], caption: str) -> Figure:
    """Draw a figure in both widths; draw: matplotlib's Axes of a layout."""
    wide, legend, title = _svg(name, draw, narrow=False)
    narrow, _, _ = _svg(name, draw, narrow=True)
    return Figure(
        name=name,
        heading=heading,
        description=f"{heading}. {title}.",
        caption=_BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", caption),
        legend=legend,
        wide=wide,
        narrow=narrow,
    )


def _svg(
    name: str, draw: Callable[[Layout], Any], *, narrow: bool
) -> tuple[str, tuple[LegendEntry, ...], str]:
    """The SVG without title and legend, which are the page's; the legend; the title."""
    import matplotlib as mpl

    settings: Any = mpl
    inches = (NARROW_PIXELS if narrow else WIDE_PIXELS) / POINTS_PER_INCH
    layout = Layout(
        narrow=narrow,
        width_inches=(inches, inches),
        smallest_text_points=SMALLEST_TEXT_PIXELS,
        new_axes=_page_axes,
    )
    with settings.rc_context(_rc(f"archsim-{name}-{narrow}")):
        ax = draw(layout)
        legend, title = tuple(_legend(ax)), ax.get_title().replace(r"\$", "$")
        ax.set_title("")
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        _fit_ticks(ax, narrow=narrow)
        drawn = _drawn(ax)
    return page_svg(drawn, f"{name}-{'narrow' if narrow else 'wide'}"), legend, title


def _drawn(ax: Any) -> str:
    """The SVG of a figure, without a background; `savefig` would draw everything twice."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    ax.patch.set_visible(False)
    ax.figure.patch.set_visible(False)
    text = io.StringIO()
    canvas: Any = FigureCanvasSVG(ax.figure)
    canvas.print_svg(text, metadata={"Date": None})
    return text.getvalue()


def _page_axes(width: float, height: float) -> Any:
    """Axes of a figure that pyplot does not know."""
    from matplotlib.figure import Figure as Canvas

    canvas: Any = Canvas(figsize=(width, height), layout="constrained")
    canvas.get_layout_engine().set(w_pad=0.04, h_pad=0.04)
    return canvas.subplots()


def _rc(salt: str) -> dict[str, Any]:
    """Text as text, ids that depend on the figure alone, and colours that the page replaces."""
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.size": _TEXT_PIXELS,
        "axes.labelsize": _TEXT_PIXELS,
        "xtick.labelsize": _TEXT_PIXELS,
        "ytick.labelsize": _TEXT_PIXELS,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "xtick.color": GRID,
        "ytick.color": GRID,
        "axes.edgecolor": GRID,
        "grid.color": GRID,
    }


def _fit_ticks(ax: Any, *, narrow: bool) -> None:
    """In a narrow figure, few enough numbers along the bottom that none touches another."""
    from matplotlib.ticker import FixedLocator

    chosen = isinstance(ax.xaxis.get_major_locator(), FixedLocator)
    if narrow and ax.get_xscale() == "linear" and not chosen:
        ax.locator_params(axis="x", nbins=4)


def _legend(ax: Any) -> Iterator[LegendEntry]:
    """The legend's entries; a figure of one kind of mark needs none."""
    from matplotlib.colors import to_hex

    handles, labels = ax.get_legend_handles_labels()
    for handle, text in zip(handles, labels, strict=True):
        marks = handle.patches if hasattr(handle, "patches") else [handle]
        if not marks:
            continue
        mark = marks[0]
        filled = hasattr(mark, "get_facecolor") and mark.get_fill()
        colour = mark.get_facecolor() if filled else _line_colour(mark)
        yield LegendEntry(text=text, colour=variable(to_hex(colour)), shape=_shape(mark, filled))


def _line_colour(mark: Any) -> Any:
    return mark.get_color() if hasattr(mark, "get_color") else mark.get_edgecolor()


def _shape(mark: Any, filled: bool) -> str:
    if filled:
        return "box"
    if hasattr(mark, "get_marker") and mark.get_marker() == "o":
        return "dot"
    return {"-": "line", "solid": "line", ":": "dotted"}.get(mark.get_linestyle(), "dashed")
