"""The figures of SCNN's evaluation that are given by layer or by density, from the data file."""

from __future__ import annotations

from archsim.papers import figures
from archsim.papers.figures import WIDEST, Figure, read_paper

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


def sweep_figures() -> dict[str, Figure]:
    """Figures 8 and 12 by "CORE at DENSITY.quantity"."""
    paper, found = read_paper("scnn"), dict[str, Figure]()
    series = [("latency", CORES[key], paper["sweep"][key]) for key in CORES]
    series += [("energy", core, values) for core, values in paper["energy_sweep"].items()]
    for name, core, values in series:
        for density, value in zip(paper["sweep"]["densities"], values, strict=True):
            figure = quantity(name, f"{core} at {density}", float(value))
            found[figure.key] = figure
    return found


CORES = {"both": "SCNN", "weights": "SparseW", "activations": "SparseA"}
"""A row of figure 8 in the data file, and the core's name."""


def quantity(name: str, label: str, value: float) -> Figure:
    """A value of one of the data file's quantities, with its tolerance.

    A share whose reading error is more than a quarter of it says something of its complement only:
    that is compared, with the reading error for its tolerance.
    """
    given = read_paper("scnn")["quantities"][name]
    tolerance, reading = float(given["tolerance"]), float(given.get("reading", 0))
    tolerance = tolerance * value / 100 if given["relative"] else min(tolerance, WIDEST * value)
    small = reading > WIDEST * value
    return Figure(
        key=f"{label}.{name}",
        group=given["group"],
        figure=f"{label}: {'all but ' if small else ''}{given['figure']}",
        value=100 - value if small else value,
        unit=given["unit"],
        tolerance=reading if small else tolerance,
        why="the reading error: the rest of 100 % is compared" if small else given["why"],
        source=given["source"],
        complement=small,
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


__all__ = ["CORES", "layer_figures", "quantity", "sweep_figures", "unpublished"]
