"""`archsim synth`: map a design to standard cells: area and clock."""

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import AsJson, DesignName, Force, Settings
from archsim.cli.output import output_console, progress_bar, say
from archsim.errors import require
from archsim.files import new_folder, require_new
from archsim.machine.registry import load_design, with_settings
from rtl.synthesis.result import Synthesis, Target

FILES = ("synthesis.json", "netlist.v", "area.csv")
"""In the folder that is asked for."""


def synth(  # noqa: PLR0913
    design: DesignName,
    target: Annotated[
        Target, typer.Option(help="What to map to: cells of a Liberty library.")
    ] = "cells",
    liberty: Annotated[
        Path | None,
        typer.Option(metavar="FILE.lib", help="Cell library; without it, Debian's osu018."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="New folder: synthesis.json, netlist.v, area.csv."
        ),
    ] = None,
    settings: Settings = None,
    depth: Annotated[int, typer.Option(help="Levels of the hierarchy to print.")] = 2,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Use an answer that was found before.")
    ] = True,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Map a design's RTL to standard cells: area by module and by class, and the slowest path.

    Memories stay macros: their sizes are listed, and their area is not in any figure.  Areas are
    of cells alone and delays of gates alone, without wires: compare designs by them.

    Example:

    \b
      archsim synth edge-16 --set rows=8 --set columns=8 -o synthesis
    """
    from rtl.synthesis.synthesize import synthesize

    require(depth >= 0, f"--depth must not be negative, not {depth}")
    if output is not None:
        require_new(output, folder=True, names=FILES)
    chosen = with_settings(load_design(design), settings or [])
    with progress_bar("starting", quiet=as_json) as bar:

        def show(phase: str, done: int, total: int | None) -> None:
            bar.update(bar.task_ids[0], description=phase, completed=done, total=total)

        places = {} if liberty is None else {"library": liberty}
        outcome = synthesize(chosen, **places, target=target, use_cache=cache, progress=show)
    if output is not None:
        save(outcome.synthesis, outcome.netlist, output)
    if as_json:
        print(outcome.synthesis.to_json())
    else:
        report(outcome.synthesis, depth)


def save(synthesis: Synthesis, netlist: str, folder: Path) -> None:
    """Write the result, the netlist and the hierarchy as a table into a new folder."""
    with new_folder(folder) as work:
        texts = (synthesis.to_json() + "\n", netlist, synthesis.to_csv())
        for name, text in zip(FILES, texts, strict=True):
            (work / name).write_text(text, encoding="utf-8")
    say(f"{folder}: {', '.join(FILES)}")


def report(synthesis: Synthesis, depth: int) -> None:
    """Print the result for people."""
    from rtl.synthesis import tables

    console = output_console()
    console.print(tables.heading(synthesis))
    console.print(tables.hierarchy_table(synthesis, depth))
    console.print(tables.class_table(synthesis))
    console.print(tables.memory_table(synthesis))
    console.print(tables.closing(synthesis))


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("synth")(synth)
