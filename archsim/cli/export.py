"""`archsim export`: write a study as Parquet, CSV, Optuna's journal, or one design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import Force
from archsim.cli.output import say
from archsim.errors import require
from archsim.files import require_new
from workloads.counts import counted


def export(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A new file: .parquet, .csv, .log (Optuna's journal), or .toml (a design).",
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option(metavar="OBJECTIVE", help="Of which the design of a .toml has the least."),
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Of which network, where a study has several.")
    ] = None,
    point: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Of which point the design of a .toml is.")
    ] = None,
    force: Force = False,
) -> None:
    """Write what a study keeps: all points, its best design, or that of a point.

    Examples:

    \b
      archsim export study/ points.parquet
      archsim export study/ points.log
      archsim export study/ best.toml --by energy
      archsim export study/ design.toml --point 3
    """
    from archsim.sweeps.exporting import ENDINGS, export_best, export_point
    from archsim.sweeps.objectives import column_of
    from archsim.sweeps.study import Study

    known = [*ENDINGS, ".toml"]
    require(file.suffix in known, f"{file} must end in {', '.join(known)}")
    design = file.suffix == ".toml"
    require(
        design or (by is None and network is None and point is None),
        "--by, --network and --point are of a design: .toml",
    )
    require(
        point is None or (by is None and network is None), "give --point, or --by and --network"
    )
    require_new(file)
    with Study.open(study, read_only=True) as kept:
        if point is not None:
            export_point(kept, file, point)
            say(f"{file}: the design of point {point}")
            return
        if design:
            objective = column_of(by) if by else kept.objectives[0]
            number = export_best(kept, file, objective, network)
            say(f"{file}: the design of point {number}, of the least {objective}")
            return
        ENDINGS[file.suffix](kept, file)
        say(f"{file}: {counted(kept.count, 'point')}")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("export")(export)
