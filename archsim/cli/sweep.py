"""`archsim sweep`: search a space of designs, and keep every point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archsim.cli.options import AsJson
from archsim.cli.output import announce_compilation, output_console, progress_bar, say
from archsim.errors import require
from archsim.free_memory import free_mib
from archsim.sweeps.search import METHODS, Search

if TYPE_CHECKING:
    from archsim.sweeps.running import Progress, Ran
    from archsim.sweeps.space import Space
    from archsim.sweeps.study import Study
    from archsim.sweeps.workers import Workers

MOST_WORKERS = 1024

WORKER_MIB = 400
"""Of a process with its libraries; measured on networks with 54 layers."""

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
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Compute on the workers of this Dask scheduler: tcp://host:8786.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the points, invalid ones too; compute none.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Look at the study in DIR, while another process writes it."),
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
      archsim sweep space.toml -o study/ --scheduler tcp://10.0.0.1:8786
      archsim sweep -o study/ --watch
    """
    changes = {"method": method, "designs": designs, "seed": seed}
    if watch:
        computing = (space, method, designs, seed, workers, scheduler, dry_run or None)
        require(
            output is not None and not any(one is not None for one in computing),
            "--watch only looks at a study: give -o DIR, and nothing else but --json",
        )
        from archsim.cli.watch import watch_study

        assert output is not None
        watch_study(output, as_json=as_json)
        return
    chosen = {name: value for name, value in changes.items() if value is not None}
    count = _worker_count(workers)
    if dry_run:
        require(space is not None, "--dry-run is of a space: give its file")
        assert space is not None
        _look(space, chosen, count, as_json=as_json)
        return
    require(workers is None or scheduler is None, "give --workers, or --scheduler with its own")
    require(output is not None, "give the folder of the study: -o DIR")
    assert output is not None
    if workers is not None:
        _require_memory(workers)
    study, search = _opened(space, output, chosen)
    with study:
        _announce(study.space, quiet=as_json)
        asked: int | Workers | None = None if workers is None else count
        if scheduler is not None:
            from archsim.sweeps.cluster import Cluster

            asked = Cluster(study.space, scheduler, told=say)
        ran = _run(study, search, asked, quiet=as_json)
        _tell(study, ran, as_json=as_json)


def _announce(space: Space, *, quiet: bool) -> None:
    """Say that kernels of its machines are compiled, where they have to be."""
    for machine in space.machines:
        model = machine.design.machine_model()
        announce_compilation(model, machine.options, many=True, quiet=quiet)


def _worker_count(workers: int | None) -> int:
    from workloads.threads import threads

    if workers is None:
        return threads()
    require(
        1 <= workers <= MOST_WORKERS, f"--workers must be from 1 to {MOST_WORKERS}, not {workers}"
    )
    return workers


def _require_memory(workers: int) -> None:
    """Refuse more processes than the machine has memory for, where it tells what it has."""
    free = free_mib()
    require(
        not free or workers == 1 or workers * WORKER_MIB <= free,
        f"--workers {workers} take some {workers * WORKER_MIB:,} MiB of memory, and {free:,} "
        "are free",
    )


def _look(path: Path, chosen: Mapping[str, Any], workers: int, *, as_json: bool) -> None:
    """What a sweep would do."""
    from archsim.sweeps.dry_run import dry_run
    from archsim.sweeps.space_file import load_space

    space, search = load_space(path)
    _announce(space, quiet=as_json)
    found = dry_run(space, replace(search, **chosen))
    if as_json:
        print(json.dumps(found.record(workers), indent=2))
        return
    about = "" if found.exact else f" (of {found.looked_at:,} that were drawn; the rest by them)"
    lines = [f"{found.designs:,} designs on {', '.join(space.network_names)}{about}"]
    lines += [f"  {one.name} is mapped by {one.mapper}" for one in space.machines if one.mapper]
    lines += [f"  {count:,} break {text}" for text, count in found.broken.items() if count]
    lines += [f"  {count:,} are refused, such as: {one}" for count, one in found.refused.values()]
    seconds = found.points * found.point_seconds / workers
    lines.append(
        f"{found.points:,} points to compute, {found.point_seconds * 1e3:.3g} ms each: about "
        f"{duration(seconds)} on {workers} worker{'s' * (workers > 1)}, "
        f"{found.file_bytes / 2**20:,.1f} MiB of file, {workers * WORKER_MIB:,} MiB of memory"
    )
    output_console().print("\n".join(lines))


def duration(seconds: float) -> str:
    """In words: "3 min"."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} s"


def _opened(space: Path | None, output: Path, chosen: Mapping[str, Any]) -> tuple[Study, Search]:
    """The study, and the search that its space asks for, but for what was chosen."""
    from archsim.sweeps.space_file import load_space
    from archsim.sweeps.study import Study

    if space is None:
        search = Search(**chosen)
        return Study.open(output), search
    read, search = load_space(space)
    search = replace(search, **chosen)
    return Study.begin(output, read), search


def _run(study: Study, search: Search, workers: int | Workers | None, *, quiet: bool) -> Ran:
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
        if not len(front):
            console.print(f"{name}: {_why_none(study)}")
            continue
        columns = [*study.fields, *study.objectives]
        console.print(f"{name}: {len(front)} points on the front of {', '.join(study.objectives)}")
        console.print(front[columns].head(SHOWN).to_string(index=False))
    say(f"{study.count:,} points in {study.path}; {ran.new:,} of them new")
    if ran.refused or ran.failed:
        error = study.first_error()
        say(f"{ran.refused:,} refused, {ran.failed:,} failed of the new ones, such as: {error}")


def _why_none(study: Study) -> str:
    """Why no point is on a front."""
    if not study.counts.get("done"):
        return f"no point could be computed, such as: {study.first_error()}"
    required = " and ".join(study.space.requirements)
    return f"no point fulfils {required}" if required else "no point has all objectives"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sweep")(sweep)
