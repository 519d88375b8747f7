"""Colours of the page, for light and dark: one name for the same thing in both.

Figures are drawn in the colours of `archsim.plots.palette` and in `INK`, `GRID`; in the page each
becomes a CSS variable of its name.
"""

from __future__ import annotations

from archsim.plots import palette

INK, GRID = "#1a1a1b", "#c8c8c9"
"""What matplotlib draws text, axes and grids in: colours that no mark has."""

LIGHT = {
    "background": "#ffffff",
    "raised": "#f5f6f8",
    "rule": "#d9dce1",
    "text": "#1b1e23",
    "soft": "#565c66",
    "accent": "#0b5cab",
    "grid": "#d5d8dd",
    "black": "#30343b",
    "orange": palette.ORANGE,
    "sky": palette.SKY,
    "green": palette.GREEN,
    "yellow": "#dccb1e",
    "blue": palette.BLUE,
    "vermilion": palette.VERMILION,
    "purple": palette.PURPLE,
    "grey": palette.GREY,
}
"""On paper and on a light screen; the palette's yellow is a shade darker, to be seen on white."""

DARK = {
    "background": "#14161a",
    "raised": "#1d2026",
    "rule": "#343943",
    "text": "#e7e9ed",
    "soft": "#a6adb9",
    "accent": "#7ab8ff",
    "grid": "#343943",
    "black": "#d8dbe0",
    "orange": palette.ORANGE,
    "sky": "#7cc7f2",
    "green": "#12ab80",
    "yellow": palette.YELLOW,
    "blue": "#2f86c9",
    "vermilion": "#e2702a",
    "purple": palette.PURPLE,
    "grey": palette.GREY,
}
"""On a dark screen: the palette's darkest colours are lightened, black becomes nearly white."""

VARIABLES = {
    INK: "text",
    GRID: "grid",
    palette.BLACK: "black",
    palette.ORANGE: "orange",
    palette.SKY: "sky",
    palette.GREEN: "green",
    palette.YELLOW: "yellow",
    palette.BLUE: "blue",
    palette.VERMILION: "vermilion",
    palette.PURPLE: "purple",
    palette.GREY: "grey",
}
"""A colour of the figures → the page's variable."""


def variable(colour: str) -> str:
    """A figure's colour ("#0072b2", any case) as CSS.  Raises `KeyError` if the page has none."""
    known = {name.lower(): css for name, css in VARIABLES.items()}
    return f"var(--{known[colour.lower()]})"
