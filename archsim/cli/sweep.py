"""`archsim sweep`: search a space of designs, and keep every point."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archsim.cli.options import AsJson
from archsim.cli.output import announce_compilation, output_console, progress_bar, say
from archsim.errors import require
from archsim.sweeps.search import METHODS, Search

if TYPE_CHECKING:
    from archsim.sweeps.running import Progress, Ran
    from archsim.sweeps.study import Study

SHOWN = 20
"""Points of a front that are printed."""


def sweep(  # noqa: PLR0913
    space: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SPACE.toml]", help="The space; without it, that of the study in DIR."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The study: a new folder, or one to continue."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="|".join(METHODS), help="How to search; else as the space says."),
    ] = None,
    designs: Annotated[
        int | None, typer.Option(metavar="N", help="Designs that are computed at most.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of what is drawn.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes; without it, one for each processor."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the points, invalid ones too; compute none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search a space of designs, and keep every point in a study (`docs/how-to/sweeps.md`).

    Whatever ends it, the same command continues where it stopped; points that are kept are never
    computed again.

    Examples:

    \b
      archsim sweep space.toml --dry-run
      archsim sweep space.toml -o study/
      archsim sweep -o study/ --method random --designs 5000 --workers 2
    """
    require(space is not None or output is not None, "give a space, or the folder of a study")
    if dry_run:
        require(space is not None, "--dry-run is of a space: give its file")
    require(output is not None, "give the folder of the study: -o DIR")
    assert output is not None
    changes = {"method": method, "designs": designs, "seed": seed}
    announce_compilation(quiet=as_json)
    study, search = _opened(space, output)
    search = replace(search, **{k: v for k, v in changes.items() if v is not None})
    with study:
        ran = _run(study, search, workers or 1, quiet=as_json)
        _tell(study, ran, as_json=as_json)


def _opened(space: Path | None, output: Path) -> tuple[Study, Search]:
    """The study, and the search that its space asks for."""
    from archsim.sweeps.space_file import load_space
    from archsim.sweeps.study import Study

    if space is None:
        return Study.open(output), Search()
    read, search = load_space(space)
    return Study.begin(output, read), search


def _run(study: Study, search: Search, workers: int, *, quiet: bool) -> Ran:
    with progress_bar(f"sweeping {study.space.name or study.path}", quiet=quiet) as bar:

        def told(progress: Progress) -> None:
            best = ", ".join(f"{name} {value:.4g}" for name, value in progress.best.items())
            bar.update(
                bar.task_ids[0],
                completed=progress.done,
                total=progress.total,
                description=f"{progress.kept:,} kept; best {best}",
            )

        return study.run(search, workers=workers, progress=told)


def _tell(study: Study, ran: Ran, *, as_json: bool) -> None:
    fronts = {name: study.front(network=name) for name in study.space.network_names}
    if as_json:
        record: dict[str, Any] = {
            "study": str(study.path),
            "points": study.count,
            "statuses": study.counts,
            "run": vars(ran),
            "fronts": {
                name: json.loads(front.to_json(orient="records", default_handler=str))
                for name, front in fronts.items()
            },
        }
        print(json.dumps(record, indent=2))
        return
    console = output_console()
    for name, front in fronts.items():
        columns = [*study.fields, *study.objectives]
        console.print(f"{name}: {len(front)} points on the front of {', '.join(study.objectives)}")
        console.print(front[columns].head(SHOWN).to_string(index=False))
    say(f"{study.count:,} points in {study.path}; {ran.new:,} of them new")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sweep")(sweep)
