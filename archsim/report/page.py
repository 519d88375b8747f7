"""The page as a whole: what is on it, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from archsim.errors import InputError
from archsim.occupancy import occupancy
from archsim.operand_notes import operand_notes
from archsim.plots.breakdown import area_parts, energy_parts
from archsim.plots.component_bars import network_memory_traffic
from archsim.plots.gantt import Window, layer_run
from archsim.plots.roofline import roofline
from archsim.report import captions, tables
from archsim.report.cards import cards
from archsim.report.figures import Figure, Plan, make_figure
from archsim.report.templates import template_of

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount
    from archsim.machine.design import Design
    from archsim.machine.over_time import OverTime
    from archsim.result import NetworkResult

_FOLDER = Path(__file__).parent

GANTT_TILES = 12
"""Of a layer, in the page; `result.plot.gantt` shows any others."""


def write_report(
    result: NetworkResult,
    path: Path,
    *,
    account: EnergyAccount | None = None,
    activity: OverTime | None = None,
    command_line: str = "",
    why_no_energy: str = "",
) -> None:
    """Write `report_html` to a file that must not exist yet: whole, or not at all.

    Raises `InputError` if the file exists or cannot be written.
    """
    from archsim.files import require_new, write_new

    require_new(path)
    text = report_html(
        result,
        account=account,
        activity=activity,
        command_line=command_line,
        why_no_energy=why_no_energy,
    )
    write_new({path: text})


def report_html(
    result: NetworkResult,
    *,
    account: EnergyAccount | None = None,
    activity: OverTime | None = None,
    command_line: str = "",
    why_no_energy: str = "",
) -> str:
    """The report of a result as one HTML page that needs no other file and no network.

    account: energy and area of this result; without one the page has neither.
    activity: the run over time (`archsim.tiled.timeline.binned`); without it every layer is one
    bin. command_line: what made the result, if it was made on the command line. why_no_energy: said
    where there is no account; "" if none was asked for. The page depends on its arguments alone: no
    date, no machine, no user is in it.
    """
    from archsim.machine.registry import design_from_record, design_toml

    design = design_from_record(dict(result.design), result.design_name)
    prices, sources = (None, ()) if account is None else tables.price_table(account)
    return template_of(_FOLDER, "page.html").render(
        result=result,
        account=account,
        command_line=command_line,
        why_no_energy=why_no_energy or "no technology was chosen",
        subtitle=_subtitle(result, design),
        operands=operand_notes(result),
        toml=design_toml(design),
        cards=cards(result, account),
        figures=_figures(result, design, account, activity),
        layers=tables.layer_table(result, account),
        parameters=tables.design_table(result.design),
        memories=tables.memory_table(network_memory_traffic(result)),
        prices=prices,
        sources=sources,
        missing={} if account is None else tables.missing(account),
    )


def _subtitle(result: NetworkResult, design: Design) -> str:
    return f"{design.summary}, {result.clock_hz / 1e6:,.6g} MHz"


def _figures(
    result: NetworkResult,
    design: Design,
    account: EnergyAccount | None,
    activity: OverTime | None,
) -> dict[str, Figure]:
    """All figures by name."""
    plans: list[Plan] = [
        *_time_plans(result, design, activity),
        *_traffic_plans(result, design),
        *(() if account is None else _cost_plans(account)),
    ]
    return {plan.name: make_figure(result, plan) for plan in plans}


def _time_plans(result: NetworkResult, design: Design, activity: OverTime | None) -> Iterator[Plan]:
    yield Plan(
        name="cycles",
        heading="Cycles of every layer, by cause",
        draw=lambda plot: plot.cycles(),
        caption=captions.cycles(result),
    )
    yield Plan(
        name="activity",
        heading="Utilisation and stalls over time",
        draw=lambda plot: plot.activity(activity),
        caption=captions.activity(result, binned=activity is not None),
    )
    yield Plan(
        name="utilization",
        heading="Utilisation of every layer",
        draw=lambda plot: plot.utilization(),
        caption=captions.utilization(result),
    )
    yield from _pe_plans(result, design)
    yield Plan(
        name="roofline",
        heading="Roofline",
        draw=lambda plot: plot.roofline(),
        caption=captions.roofline(roofline(result, design), design),
    )


def _pe_plans(result: NetworkResult, design: Design) -> Iterator[Plan]:
    """PEs in space and over time; the tiles of the longest layer."""
    if not any(layer.cycles for layer in result.layers):
        return
    sparse = any(layer.per_pe for layer in result.layers)
    try:
        found = occupancy(result)
    except InputError:  # a machine of which nothing tells
        return
    yield Plan(
        name="pes",
        heading="Load, conflicts and idle cycles of every PE" if sparse else "How busy every PE is",
        draw=lambda plot: plot.pes(None if sparse else found),
        caption=captions.pes(result) if sparse else captions.occupancy(found),
    )
    yield Plan(
        name="pes-over-time",
        heading="How busy the PEs are over time",
        draw=lambda plot: plot.pes_over_time(found),
        caption=captions.over_time(found),
    )
    if not design.machine_model().timed_by_values:
        run, window = layer_run(result), Window(most=GANTT_TILES)
        yield Plan(
            name="gantt",
            heading="Loads, compute and drains of the first tiles",
            draw=lambda plot: plot.gantt(most=GANTT_TILES),
            caption=captions.gantt(run, window.chosen(run, GANTT_TILES)),
        )


def _traffic_plans(result: NetworkResult, design: Design) -> Iterator[Plan]:
    yield Plan(
        name="traffic",
        heading="Off-chip bytes of every layer, by port",
        draw=lambda plot: plot.traffic(),
        caption=captions.traffic(result),
    )
    if design.components:
        yield Plan(
            name="memory-bytes",
            heading="Bytes in and out of every memory",
            draw=lambda plot: plot.memory_bytes(),
            caption=captions.memory_bytes(network_memory_traffic(result)),
        )


def _cost_plans(account: EnergyAccount) -> Iterator[Plan]:
    yield Plan(
        name="energy",
        heading="Energy of every layer, by group of components",
        draw=lambda plot: plot.energy(account),
        caption=captions.energy(account),
    )
    yield Plan(
        name="energy-by-component",
        heading="Energy of every component",
        draw=lambda plot: plot.energy_by_component(account),
        caption=captions.energy_by_component(account),
    )
    yield Plan(
        name="energy-map",
        heading="Where each joule goes",
        draw=lambda plot: plot.energy_map(account),
        caption=captions.breakdown(energy_parts(account), "energy"),
    )
    if account.area_um2 is not None:
        yield Plan(
            name="area-map",
            heading="Where each mm² goes",
            draw=lambda plot: plot.area_map(account),
            caption=captions.breakdown(area_parts(account), "area"),
        )
        yield Plan(
            name="area",
            heading="Area of every component",
            draw=lambda plot: plot.area(account),
            caption=captions.area(account),
        )
