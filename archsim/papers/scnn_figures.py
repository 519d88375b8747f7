"""The figures of SCNN's evaluation that are given by layer or by density, from the data file."""

from __future__ import annotations

from archsim.papers import figures
from archsim.papers.figures import Figure, read_paper

QUANTITIES = ("speed", "oracle", "utilization", "idle", "dcnn_opt", "scnn")
"""Of figures 9, 10 and 11, a quantity after the other."""


def layer_figures() -> dict[str, Figure]:
    """Figures 9 to 11 by "BAR.quantity"."""
    paper = read_paper("scnn")
    found: dict[str, Figure] = {}
    for name in QUANTITIES:
        for network, layers in paper["layers"].items():
            for layer, values in layers.items():
                bar = f"{network} {layer}"
                found[f"{bar}.{name}"] = quantity(name, bar, float(values[name]))
    return found


def quantity(name: str, label: str, value: float) -> Figure:
    """A value of one of the data file's quantities, with its tolerance."""
    given = read_paper("scnn")["quantities"][name]
    tolerance = float(given["tolerance"])
    return Figure(
        key=f"{label}.{name}",
        group=given["group"],
        figure=f"{label}: {given['figure']}",
        value=value,
        unit=given["unit"],
        tolerance=tolerance * value / 100 if given["relative"] else tolerance,
        why=given["why"],
        source=given["source"],
    )


def unpublished(network: str, name: str, group: str, figure: str = "") -> Figure:
    """A speed-up (or another figure) of ours beside which the paper has nothing."""
    return figures.unpublished(
        key=f"{network}.{name}",
        group=group,
        figure=figure or f"{network}: speed-up, {name}",
        unit="×",
        source="ours",
    )


__all__ = ["layer_figures", "quantity", "unpublished"]
