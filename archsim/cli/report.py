"""`archsim report`: a study as one page, to be looked at, brushed and filtered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import Force
from archsim.cli.output import say
from archsim.errors import require
from archsim.files import require_new

POINTS = 100_000
"""On a page, without `--points`."""


def report(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="The folder of a study (archsim sweep).")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE.html", help="The page; else report.html in the folder."
        ),
    ] = None,
    points: Annotated[
        int,
        typer.Option(metavar="N", help="Points on the page; of more, the fronts and a sample."),
    ] = POINTS,
    force: Force = False,
) -> None:
    """Write a study as one HTML page that needs no other file.

    Fronts over every two objectives, parallel coordinates, how much each field matters, what the
    front's designs share: brushed and filtered together (`docs/how-to/sweeps.md`).  A single
    result's report is made by `archsim run … --report FILE.html`.

    Examples:

    \b
      archsim report study/
      archsim report study/ -o arrays.html --points 20000
    """
    require(points > 0, f"--points must be at least 1, not {points}")
    path = study / "report.html" if output is None else output
    require_new(path)
    from archsim.study_report import write_study_report
    from archsim.sweeps import Study

    with Study.open(study, read_only=True) as opened:
        write_study_report(opened, path, most_points=points)
    say(f"wrote {path}")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("report")(report)
