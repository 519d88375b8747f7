"""The command: see the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import track

from tests.mutation.campaign import campaign, counts, sample
from tests.mutation.report import table
from tests.mutation.sources import ROOT, all_mutants
from tests.mutation.subjects import SUBJECTS
from tests.mutation.trial import ModelTrials, RtlTrials

OUT = ROOT / "out" / "mutation"


def main(  # noqa: PLR0913
    kind: Annotated[str, typer.Argument(help=f"A kind of design: {', '.join(SUBJECTS)}.")],
    side: Annotated[Literal["rtl", "model"], typer.Option(help="Where the faults are.")] = "rtl",
    count: Annotated[int, typer.Option("--sample", help="How many mutants.")] = 300,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 1,
    processes: Annotated[int, typer.Option(help="Mutants at once.")] = 2,
    seconds: Annotated[float, typer.Option(help="At most, a mutant.")] = 240,
    out: Annotated[Path, typer.Option(help="Folder of what is known.")] = OUT,
    report: Annotated[bool, typer.Option("--report", help="Only what is known.")] = False,
) -> None:
    """Put small faults into a design's RTL or model and see which `archsim verify` catches.

    What is found is kept, so that the same command goes on where it was ended.

    Examples:

    \b
      python -m tests.mutation systolic --sample 20
      python -m tests.mutation scnn --side model --seed 2
    """
    if kind not in SUBJECTS:
        raise typer.BadParameter(f"{kind} is none of {', '.join(SUBJECTS)}")
    file = out / f"{kind}-{side}.jsonl"
    if not report:
        trials = (RtlTrials if side == "rtl" else ModelTrials)(SUBJECTS[kind])
        mutants = all_mutants(trials.elaborate, side)
        typer.echo(f"{kind}, {side}: {len(mutants):,} mutants can be made")
        running = campaign(
            sample(mutants, seed), trials.run, file,
            wanted=count, processes=processes, seconds=seconds,
        )  # fmt: skip
        tried = list(track(running, description="mutants", total=None))
        typer.echo(table([found for found in tried if counts(found.outcome)], tried))
    else:
        from tests.mutation.campaign import known

        tried = list(known(file).values())
        typer.echo(table([found for found in tried if counts(found.outcome)], tried))


if __name__ == "__main__":
    typer.run(main)
