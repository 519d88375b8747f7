"""What a build for a board left, as one HTML page that needs no other file."""

from __future__ import annotations

import base64
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.plots.units import significant
from archsim.report.cards import Card
from archsim.report.tables import NOTHING, Column, Table
from archsim.report.templates import template_of
from archsim.simulate import networked, simulate
from fpga.boards import Board
from fpga.build import BoardBuild
from fpga.fit import taken
from fpga.floor_plan import floor_plan

__all__ = ["NetworkTime", "board_page", "build_record", "network_times", "rate_text"]

_CELLS = {
    "lut4": "LUT4",
    "carry": "carry",
    "lut_rams": "LUT RAM",
    "flip_flops": "flip-flops",
    "block_rams": "block RAM",
    "dsps": "DSP",
}


@dataclass(frozen=True, kw_only=True)
class NetworkTime:
    """How many cycles a network takes on the core; where that is not known, why."""

    network: str
    cycles: int | None
    why: str = ""

    def seconds(self, clock_hz: float) -> float | None:
        """Of one inference."""
        return None if self.cycles is None else self.cycles / clock_hz


def network_times(design: Design, names: Sequence[str]) -> list[NetworkTime]:
    """Of built-in networks and files, timed without values.

    Raises `WorkloadError` for a network that is not known.
    """
    found: list[NetworkTime] = []
    for name in names:
        network = networked(name)
        try:
            cycles, why = simulate(design, network).cycles, ""
        except InputError as error:
            cycles, why = None, str(error)
        found.append(NetworkTime(network=network.name, cycles=cycles, why=why))
    return found


def rate_text(time: NetworkTime, clock_hz: float) -> str:
    """How long an inference takes at a clock, and how many a second that is."""
    seconds = time.seconds(clock_hz)
    if seconds is None:
        return time.why
    return f"{significant(seconds)} s an inference, {significant(1 / seconds)} a second"


def build_record(made: BoardBuild, board: Board, times: Sequence[NetworkTime]) -> dict[str, Any]:
    """A build as plain data, with what it takes of the chip and how long networks take."""
    clocks = [*made.fmax_hz.values()]
    fastest = made.fmax_hz[str(made.seed)]
    return {
        **made.record(),
        "utilisation": {
            name: {"takes": takes, "has": has, "share": _share(takes, has)}
            for name, (takes, has) in taken(made.cells, board.chip).items()
        },
        "spread_hz": {
            "least": min(clocks),
            "median": statistics.median(clocks),
            "most": max(clocks),
        },
        "networks": [
            {
                **asdict(one),
                "seconds": one.seconds(made.clock_hz),
                "seconds_at_fmax": one.seconds(fastest),
            }
            for one in times
        ],
    }


def board_page(
    made: BoardBuild,
    design: Design,
    board: Board,
    *,
    places: Path,
    times: Sequence[NetworkTime] = (),
    command_line: str = "",
) -> str:
    """The page; places: the file of `fpga.places`, of which the floor plan is drawn."""
    from archsim.machine.registry import design_name, design_toml
    from archsim.version import VERSION

    return template_of(Path(__file__).parent, "board.html").render(
        made=made,
        name=design_name(design),
        summary=design.summary,
        board=board.says,
        version=VERSION,
        command_line=command_line,
        cards=_cards(made, board, times),
        used=_used(made, board),
        modules=_modules(made),
        seeds=_seeds(made),
        networks=_networks(made, times),
        floor_plan=_picture(json.loads(places.read_text(encoding="utf-8"))),
        toml=design_toml(design),
    )


def _share(takes: int, has: int) -> float:
    """Of what a chip has, which may be nothing."""
    return takes / has if has else 0.0


def _cards(made: BoardBuild, board: Board, times: Sequence[NetworkTime]) -> list[Card]:
    fastest = made.fmax_hz[str(made.seed)]
    verdict = "fast enough" if made.meets_clock else "TOO SLOW"
    found = [
        Card(
            name="Clock",
            value=fastest,
            text=f"{fastest / 1e6:.1f} MHz",
            note=f"{verdict} for the board's {made.clock_hz / 1e6:g} MHz",
        )
    ]
    for name, (takes, has) in taken(made.cells, board.chip).items():
        share = _share(takes, has)
        found.append(
            Card(
                name=name[0].upper() + name[1:],
                value=share,
                text=f"{share:.0%}",
                note=f"{takes:,} of {has:,}",
            )
        )
    for one in times[:1]:
        seconds = one.seconds(made.clock_hz)
        if seconds is not None:
            note = f"inferences a second of {one.network} at {made.clock_hz / 1e6:g} MHz"
            found.append(
                Card(name="Rate", value=1 / seconds, text=significant(1 / seconds), note=note)
            )
    return found


def _used(made: BoardBuild, board: Board) -> Table:
    rows = [
        [name, f"{takes:,}", f"{has:,}", f"{100 * takes / has:.1f}" if has else NOTHING]
        for name, (takes, has) in taken(made.cells, board.chip).items()
    ]
    return _numbers("used", "What the core takes of the chip", ["what", "takes", "has", "%"], rows)


def _modules(made: BoardBuild) -> Table:
    def counts(cells: Mapping[str, int]) -> list[str]:
        return [f"{cells[key]:,}" for key in _CELLS]

    rows = [[name, *counts(cells)] for name, cells in made.by_module.items()]
    columns = ["module", *_CELLS.values()]
    total = ["all", *counts(asdict(made.cells))]
    return _numbers("modules", "Cells by module", columns, rows, total)


def _seeds(made: BoardBuild) -> Table:
    rows = [[seed, f"{hz / 1e6:.1f}"] for seed, hz in made.fmax_hz.items()]
    return _numbers("seeds", "Clock by seed of the placer", ["seed", "MHz"], rows)


def _networks(made: BoardBuild, times: Sequence[NetworkTime]) -> Table:
    fastest = made.fmax_hz[str(made.seed)]
    names = [
        f"at {hz / 1e6:.4g} MHz, {what}"
        for hz in (made.clock_hz, fastest)
        for what in ("s", "a second")
    ]
    rows: list[list[str]] = []
    for one in times:
        cells = [one.network, NOTHING if one.cycles is None else f"{one.cycles:,}"]
        for hz in (made.clock_hz, fastest):
            seconds = one.seconds(hz)
            known = seconds is not None
            cells += [significant(seconds), significant(1 / seconds)] if known else [NOTHING] * 2
        rows.append(cells)
    columns = ["network", "cycles", *names]
    return _numbers("networks", "Time of one inference", columns, rows)


def _numbers(
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    total: Sequence[str] = (),
) -> Table:
    """The first column is text, the others are numbers."""
    heads = [Column(name=one, number=at > 0) for at, one in enumerate(columns)]
    return Table(name=name, caption=caption, columns=heads, rows=rows, total=total)


def _picture(places: dict[str, Any]) -> str:
    drawn = io.BytesIO()
    floor_plan(places).savefig(
        drawn, format="png", dpi=130, facecolor="white", metadata={"Software": None}
    )
    return base64.b64encode(drawn.getvalue()).decode()
