"""The command: see the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import track

from tests.mutation.batch import Batches
from tests.mutation.campaign import (
    Found,
    campaign,
    campaign_in_batches,
    counts,
    follow_edits,
    keep,
    known,
    not_tested,
    sample,
    unexplained,
)
from tests.mutation.endless import try_verify
from tests.mutation.figures import TESTS, FigureTrials
from tests.mutation.model_trials import ModelTrials
from tests.mutation.page import PAGE, found_file, found_in, page
from tests.mutation.reached import table as reached_table
from tests.mutation.reached import write as write_reached
from tests.mutation.report import table
from tests.mutation.subjects import ALSO, FOUND, REACHED, SUBJECTS, units_of
from tests.mutation.trial import RtlTrials
from tests.mutation.unit_tests import try_tests

Do = Literal["try", "hung", "equal", "tests", "report", "reached", "page"]
Side = Literal["rtl", "model", "figures"]


def main(  # noqa: PLR0913
    kind: Annotated[str, typer.Argument(help=f"A kind of design: {', '.join(SUBJECTS)}; or all.")],
    do: Annotated[
        Do,
        typer.Argument(
            help="try faults; try those that hung by `archsim verify` itself; ask the solver "
            "whether survivors do anything; try them on their units' tests; report what is known; "
            "see how far cases reach; write the page."
        ),
    ] = "try",
    side: Annotated[Side, typer.Option(help="Where the faults are.")] = "rtl",
    count: Annotated[int, typer.Option("--sample", help="How many faults.")] = 300,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 1,
    processes: Annotated[int, typer.Option(help="Faults at once.")] = 2,
    seconds: Annotated[float, typer.Option(help="At most, a fault.")] = 240,
    out: Annotated[Path, typer.Option(help="Folder of what is known.")] = FOUND,
    again: Annotated[
        bool, typer.Option("--again", help="Survivors without reasons once more.")
    ] = False,
) -> None:
    """Put small faults into a design's RTL or model and see which `archsim verify` catches; or
    into what its areas and energies are made of, for the fast tests.

    What is found is kept, so that the same command goes on where it was ended.

    Examples:

    \b
      python -m tests.mutation systolic --sample 20
      python -m tests.mutation scnn --side model --seed 2
      python -m tests.mutation vsq --side figures --sample 20
      python -m tests.mutation scnn tests
      python -m tests.mutation all page
    """
    if kind not in (*SUBJECTS, "all"):
        raise typer.BadParameter(f"{kind} is none of {', '.join(SUBJECTS)}, all")
    kinds = list(SUBJECTS) if kind == "all" else [kind]
    if side == "figures":
        kinds = [one for one in kinds if one in TESTS]
    if do == "reached":
        write_reached(out / REACHED)
        return
    if do == "page":
        PAGE.write_text(page(found_in(out), reached_table(out / REACHED)), encoding="utf-8")
        return
    for one in kinds:
        file = found_file(out, one, side)
        if do == "try":
            trials = _trials(one, side)
            mutants = trials.mutants()
            follow_edits(file, mutants)
            typer.echo(f"{one}, {side}: {len(mutants):,} mutants can be made")
            order = sample(mutants, seed)
            if isinstance(trials, RtlTrials):
                batches = Batches(trials, processes, seconds)
                running = campaign_in_batches(
                    order, batches.run, file, wanted=count, seed=seed, again=again
                )
            else:
                trials.prepare()
                running = campaign(
                    order, trials.run, file,
                    wanted=count, processes=processes, seconds=seconds, seed=seed, again=again,
                )  # fmt: skip
            tried = list(track(running, description="mutants", total=None))
        elif do == "equal":
            tried = _equal(one, file, processes, seconds)
        elif do == "hung":
            tried = _hung(one, file)
        elif do == "tests":
            tried = _tests(one, file, seconds)
        else:
            tried = list(known(file).values())
        typer.echo(table([found for found in tried if counts(found.outcome)], tried))


def _trials(kind: str, side: Side) -> RtlTrials | ModelTrials | FigureTrials:
    if side == "figures":
        return FigureTrials(kind, SUBJECTS[kind])
    if side == "rtl":
        return RtlTrials(SUBJECTS[kind], units_of(kind))
    return ModelTrials((*SUBJECTS[kind], *ALSO.get(kind, ())), units_of(kind))


def _equal(kind: str, file: Path, processes: int, seconds: float) -> list[Found]:
    """Survivors in the RTL that the solver shows to change nothing."""
    batches = Batches(RtlTrials(SUBJECTS[kind], units_of(kind)), processes, seconds)
    left = {one.mutant: one for one in known(file).values() if unexplained(one)}
    tried: list[Found] = []
    for mutant, outcome, seen, _ in batches.ask_solver(list(left)):
        tried.append(replace(left[mutant], outcome=outcome, seen=seen))
        keep(file, tried[-1])
    return tried


def _hung(kind: str, file: Path) -> list[Found]:
    """Faults in the model with which trials took too long."""
    tried: list[Found] = []
    for found in [one for one in known(file).values() if one.outcome == "hung"]:
        subjects = (*SUBJECTS[kind], *ALSO.get(kind, ()))
        outcome, seen = try_verify(found.mutant, subjects)
        if outcome == "caught":
            tried.append(replace(found, outcome=outcome, seen=seen))
            keep(file, tried[-1])
    return tried


def _tests(kind: str, file: Path, seconds: float) -> list[Found]:
    """Survivors of a sample of which it is not known, on the tests of their units."""
    tried: list[Found] = []
    for found in filter(not_tested, list(known(file).values())):
        outcome, seen = try_tests(found.mutant, kind, seconds)
        tried.append(replace(found, outcome=outcome, seen=seen))
        keep(file, tried[-1])
    return [one for one in known(file).values() if one.mutant in {t.mutant for t in tried}]


if __name__ == "__main__":
    typer.run(main)
