"""What `archsim power` prints."""

from __future__ import annotations

from rich import box
from rich.table import Table

from rtl.synthesis.power import PowerReport

__all__ = ["closing", "heading", "module_table"]


def heading(report: PowerReport) -> str:
    """The whole core in two lines."""
    return (
        f"{report.design_name} on {report.library}: {report.workload}\n"
        f"{report.cycles:,} cycles, {report.macs:,} useful multiply-accumulates, "
        f"{report.energy().total_pj / 1e3:,.1f} nJ"
    )


def module_table(report: PowerReport, depth: int) -> Table:
    """Instances down to `depth`, each with all in it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("instance", overflow="fold")
    for name in ("pJ/cycle", "loads", "cells", "clock", "pJ/MAC", "%", "toggles"):
        table.add_column(name, justify="right", no_wrap=True)
    whole = report.energy().total_pj
    for one in report.modules:
        levels = len(one.path.split(".")) if one.path else 0
        if levels > depth:
            continue
        energy = report.energy(one.path)
        parts = (energy.total_pj, energy.switching_pj, energy.internal_pj, energy.clock_pj)
        table.add_row(
            f"{'  ' * levels}{one.path.rpartition('.')[2] or 'core'}",
            *(f"{part / report.cycles:,.2f}" for part in parts),
            f"{report.energy_per_mac_pj(one.path):,.2f}",
            f"{100 * energy.total_pj / whole:.1f}",
            f"{report.activity(one.path):.4f}",
        )
    return table


def closing(report: PowerReport) -> str:
    """How the netlist compares with the model, and what the energies leave out."""
    verdict = report.verdict
    compared = "nothing was computed"
    if verdict is not None:
        said = "netlist and model are equal" if verdict.equal else "NETLIST AND MODEL DIFFER"
        compared = f"{verdict.transfers:,} transfers compared: {said}"
    return (
        f"{compared}\nloads, cells, clock: parts of pJ/cycle; toggles: of a net in a cycle\n"
        "without wires, glitches, clock tree and memories"
    )
