"""Many mutants, side by side, each in a process of its own; what is known is kept in a file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.mutation.equivalent import reason_of
from tests.mutation.operators import Mutant
from tests.mutation.pool import Pool
from tests.mutation.sources import column_of, line_of
from tests.mutation.trial import Outcome

Run = Callable[[Mutant], tuple[Outcome, str]]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What became of a mutant.

    text: what its line said, without the white space around it; column: where in it the edit is.
    """

    mutant: Mutant
    outcome: Outcome
    seen: str
    seconds: float
    text: str = ""
    column: int = 0

    def line(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @staticmethod
    def read(line: str) -> Found:
        """As it was kept."""
        data = json.loads(line)
        return Found(**data | {"mutant": Mutant(**data["mutant"])})


def sample(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """All mutants in an order of chance, in which lines that say much do not outweigh others.

    A line is drawn first, then one of its mutants: of the first n every unit has its share.
    """
    rng = random.Random(seed)
    lines: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in mutants:
        lines.setdefault((mutant.module, mutant.line), []).append(mutant)
    for group in lines.values():
        rng.shuffle(group)
    order: list[Mutant] = []
    while lines:
        keys = list(lines)
        rng.shuffle(keys)
        for key in keys:
            order.append(lines[key].pop())
            if not lines[key]:
                del lines[key]
    return order


def follow_edits(file: Path, made: list[Mutant]) -> None:
    """Leave of what is known the faults that can still be made, where their lines are now.

    A line that was moved, in its file or with it, is found by what it says; of several the nearest
    one.
    """
    if not file.exists():
        return
    before = known(file)
    alike: dict[tuple[Any, ...], list[Mutant]] = {}
    for mutant in set(made) - before.keys():
        same = (line_of(mutant), column_of(mutant), mutant.operator, mutant.before, mutant.after)
        alike.setdefault(same, []).append(mutant)
    kept, there = [], set(made)
    for mutant, found in before.items():
        if mutant not in there:
            same = (found.text, found.column, mutant.operator, mutant.before, mutant.after)
            others = alike.get(same, [])
            if not others:
                continue
            others.sort(key=lambda other: _distance(other, mutant), reverse=True)
            found = replace(found, mutant=others.pop())
        kept.append(found)
    file.write_text("".join(f"{found.line()}\n" for found in kept), encoding="utf-8")


def _distance(one: Mutant, other: Mutant) -> tuple[int, int]:
    """Names of modules that differ, from the last on; lines between."""
    names = [mutant.module.split(".")[::-1] for mutant in (one, other)]
    alike = next((n for n, (a, b) in enumerate(zip(*names, strict=False)) if a != b), 99)
    return -alike, abs(one.line - other.line)


def known(file: Path) -> dict[Mutant, Found]:
    """What an earlier campaign found; a line cut off by a kill is left out."""
    found: dict[Mutant, Found] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                one = Found.read(line)
            except (ValueError, KeyError, TypeError):
                continue
            found[one.mutant] = one
    return found


AGAIN = ("survived", "hung", "caught by tests")
"""What `verify` does not catch."""


def counts(outcome: str) -> bool:
    """Whether a mutant is one of the sample: it changes hardware that can be made."""
    return outcome in ("caught", *AGAIN)


def unexplained(found: Found) -> bool:
    """Whether `verify` does not catch it, and no reason is known."""
    mutant = found.mutant
    return found.outcome in AGAIN and not reason_of(mutant, found.text, found.column)


def keep(file: Path, found: Found) -> None:
    """Add to what is known; of a fault the last word counts."""
    with file.open("a", encoding="utf-8") as kept:
        kept.write(found.line() + "\n")


def campaign(  # noqa: PLR0913
    order: list[Mutant], run: Run, file: Path, *, wanted: int, processes: int, seconds: float,
    again: bool = False,
) -> Iterator[Found]:  # fmt: skip
    """Try mutants in their order until `wanted` of them count; yields each as it is known.

    again: those that were not caught, without a reason, are tried once more, before any others.
    """
    order, before = _to_try(order, file, again=again)
    counted = 0
    with _added_to(file) as add, Pool(run, processes, seconds) as pool:
        for mutant in order:
            if counted >= wanted:
                break
            if mutant in before:
                counted += counts(before[mutant].outcome)
                yield before[mutant]
                continue
            pool.start(mutant)
            for ended in pool.ended(all_of_them=False):
                found = add(_found(*ended))
                counted += counts(found.outcome)
                yield found
        for ended in pool.ended(all_of_them=True):
            yield add(_found(*ended))


RunBatch = Callable[[list[Mutant]], Iterator[tuple[Mutant, Outcome, str, float]]]


def campaign_in_batches(
    order: list[Mutant], run: RunBatch, file: Path, *, wanted: int, again: bool = False
) -> Iterator[Found]:
    """As `campaign`, for trials that take many mutants at once; yields those that are tried."""
    order, before = _to_try(order, file, again=again)
    waiting = iter(order)
    counted = 0
    with _added_to(file) as add:
        while counted < wanted:
            batch: list[Mutant] = []
            for mutant in waiting:
                if mutant not in before:
                    batch.append(mutant)
                    if len(batch) == LARGEST_BATCH or counted + len(batch) == wanted:
                        break
                    continue
                counted += counts(before[mutant].outcome)
                yield before[mutant]
                if counted + len(batch) >= wanted:
                    break
            if not batch:
                return
            for mutant, outcome, seen, seconds in run(batch):
                found = add(_found(mutant, (outcome, seen), round(seconds, 1)))
                counted += counts(found.outcome)
                yield found


LARGEST_BATCH = 150


def _to_try(
    order: list[Mutant], file: Path, *, again: bool
) -> tuple[list[Mutant], dict[Mutant, Found]]:
    """Mutants in the order in which they are tried, and those that are known."""
    before = known(file)
    if not again:
        return order, before
    missed = {one for one, found in before.items() if unexplained(found)}
    rest = {one: found for one, found in before.items() if one not in missed}
    return sorted(order, key=lambda mutant: mutant not in missed), rest


@contextmanager
def _added_to(file: Path) -> Iterator[Callable[[Found], Found]]:
    """What adds to a file of what is known, and gives it back."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and not file.read_bytes().endswith(b"\n"):  # cut off by a kill
        with file.open("a", encoding="utf-8") as cut:
            cut.write("\n")
    with file.open("a", encoding="utf-8") as kept:

        def add(found: Found) -> Found:
            kept.write(found.line() + "\n")
            kept.flush()
            return found

        yield add


def _found(mutant: Mutant, answer: Any, seconds: float) -> Found:
    alone: dict[str, tuple[Outcome, str]] = {
        "late": ("hung", ""), "ended": ("caught", "the simulator's process ended")
    }  # fmt: skip
    outcome, seen = alone[answer] if isinstance(answer, str) else answer
    return Found(
        mutant=mutant, outcome=outcome, seen=seen, seconds=seconds,
        text=line_of(mutant), column=column_of(mutant),
    )  # fmt: skip
