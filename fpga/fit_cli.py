"""`archsim fpga fit`: the largest design of a family for a board."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from archsim.cli.options import AsJson, DesignName, Settings
from archsim.cli.output import output_console, phase, progress_bar
from archsim.errors import InputError, require_rate
from archsim.files import scratch_folder
from archsim.machine.design import Design
from fpga.board_cli import on_board
from fpga.boards import BOARDS, Board, board_named
from fpga.largest import Point, Search, family_of, largest_that_fits, map_design


def fit_board(  # noqa: PLR0913
    design: DesignName,
    board: Annotated[str, typer.Option(help=f"One of {', '.join(BOARDS)}.")],
    settings: Settings = None,
    grow: Annotated[
        str,
        typer.Option(
            metavar="FIELD,FIELD", help="What makes it larger. Without: what its kind says."
        ),
    ] = "",
    clock_mhz: Annotated[
        float | None, typer.Option(help="To be met. Without: the board's, divided as by build.")
    ] = None,
    place: Annotated[
        bool,
        typer.Option("--place/--no-place", help="Place what is found; smaller ones if it is slow."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Find the largest design of a family that fits a board and meets a clock.

    The smallest is mapped by yosys behind its byte link; what larger ones take more is estimated by
    their components, and the largest that should fit is mapped, which corrects the estimate: some
    three sizes are mapped in all. Clocks of these are estimated: cells as they are, wires guessed.
    What is found is placed, which takes minutes to hours: its own clock stands beside the estimate.
    What was mapped or placed is found again: a search that was interrupted goes on where it was.

    Example:

    \b
      archsim fpga fit core.toml --board ulx3s-25k --no-place
      archsim fpga fit vsq-16 --board ulx3s-85k --grow lanes --clock-mhz 25
    """
    where = board_named(board)
    if clock_mhz is None:
        clock_mhz = where.clock_hz / where.divisor / 1e6
    require_rate(**{"--clock-mhz": clock_mhz})
    clock_hz = clock_mhz * 1e6
    chosen = on_board(design, settings)
    sized = family_of(chosen, [one for one in grow.split(",") if one])
    with progress_bar("mapping", quiet=as_json) as bar:
        seen: list[Point] = []

        def mapped(one: Design) -> Any:
            known = "".join(f", {point.size}: {point.verdict}" for point in seen[-2:])
            return map_design(one, where, lambda what: phase(bar, f"{one.size}: {what}{known}"))

        found = largest_that_fits(sized, where, clock_hz=clock_hz, mapped=mapped, told=seen.append)
        placed = _placed(found, where, clock_hz, bar) if place else {}
    best = _best(found, placed, clock_hz, place)
    if best is None:
        raise InputError(
            f"the design must be smaller or slower for {where.name}; "
            f"of size 1: {found.points[0].verdict}"
        )
    record: dict[str, Any] = {
        "board": where.name,
        "clock_mhz": clock_hz / 1e6,
        "points": [_record(point, placed) for point in found.points],
        "largest": best.record()["design"],
    }
    if as_json:
        print(json.dumps(record, indent=2))
    else:
        _show(record, where)


def _placed(found: Search, board: Board, clock_hz: float, bar: Any) -> dict[int, float]:
    """Clocks of what was placed, by size: the largest that fits, and smaller ones until one is
    fast enough."""
    from fpga.build import build

    clocks: dict[int, float] = {}
    for point in sorted(found.points, key=lambda one: -one.size):
        design = point.design
        if design is None or not point.fits:
            continue
        with scratch_folder("archsim-fit") as folder:
            made = build(
                design,
                board,
                folder=Path(folder),
                progress=lambda what, design=design: phase(bar, f"{design.size}: {what}"),
            )
        clocks[point.size] = max(made.fmax_hz.values())
        if clocks[point.size] >= clock_hz:
            break
    return clocks


def _best(found: Search, placed: dict[int, float], clock_hz: float, place: bool) -> Point | None:
    if not place:
        return found.largest
    fast = [one for one in found.points if placed.get(one.size, 0.0) >= clock_hz]
    return max(fast, key=lambda one: one.size, default=None)


def _record(point: Point, placed: dict[int, float]) -> dict[str, Any]:
    clock = placed.get(point.size)
    return {**point.record(), "placed_mhz": None if clock is None else round(clock / 1e6, 1)}


def _show(record: dict[str, Any], board: Board) -> None:
    console = output_console()
    console.print(f"{board.says}, {record['clock_mhz']:g} MHz")
    table = Table()
    table.add_column("size", justify="right")
    for heading in ("LUT4", "flip-flops", "block RAM", "DSP", "estimated MHz", "placed MHz"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for one in record["points"]:
        cells = one["cells"] or {}
        counts = [cells.get(key) for key in ("lut4", "flip_flops", "block_rams", "dsps")]
        about = "" if one["mapped"] else "about "
        shown = ["" if count is None else f"{about}{count:,}" for count in counts]
        clocks = [one["estimated_mhz"] or None, one["placed_mhz"]]
        shown += ["" if clock is None else f"{clock:.1f}" for clock in clocks]
        table.add_row(str(one["size"]), *shown, one["verdict"])
    console.print(table)
    console.print(f"the largest that fits: {record['largest']}")
