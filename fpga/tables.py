"""Reports of placements for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from archsim.cli.output import output_console
from fpga.report import FpgaReport

__all__ = ["show"]


def show(reports: Sequence[FpgaReport]) -> None:
    """Print reports of one target: a row each, and what the figures mean."""
    console = output_console()
    first = reports[0]
    chip = first.target.chip
    console.print(f"{chip.family} {chip.name}, seed {first.target.seed}")
    console.print(_table(reports))
    for report in reports:
        console.print(_path(report))
    tools = ", ".join(f"{name} {version}" for name, version in first.tools.items())
    console.print(f"Without the wrapper's registers; {tools}.")


def _table(reports: Sequence[FpgaReport]) -> Table:
    chip = reports[0].target.chip
    table = Table()
    table.add_column("unit", overflow="fold")
    for heading in ("LUT4", "carry", "flip-flops", "block RAM", "DSP", "MHz"):
        table.add_column(heading, justify="right", no_wrap=True)
    if any(report.cells.lut_rams for report in reports):
        table.add_column("LUT RAM", justify="right", no_wrap=True)
    for report in reports:
        cells = report.cells
        row = [
            report.name,
            f"{cells.lut4:,}",
            f"{cells.carry:,}",
            f"{cells.flip_flops:,}",
            f"{cells.block_rams} of {chip.block_rams}",
            f"{cells.dsps} of {chip.dsps}",
            f"{report.fmax_hz / 1e6:.1f}",
        ]
        if len(table.columns) > len(row):
            row.append(f"{cells.lut_rams:,}")
        table.add_row(*row)
    return table


def _path(report: FpgaReport) -> str:
    path = report.path
    verdict = "reaches" if report.meets_clock else "misses"
    share = report.places / report.places_on_chip
    return (
        f"{report.name}: {verdict} {report.target.clock_hz / 1e6:g} MHz; slowest path "
        f"{path.start} to {path.end}, {path.logic_ns:.2f} ns in cells and {path.routing_ns:.2f} ns "
        f"in wires{'' if path.in_unit else ' (of the wrapper)'}; {share:.1%} of the chip's "
        f"look-up tables, {report.wrapper.flip_flops:,} flip-flops of the wrapper beside it"
    )
