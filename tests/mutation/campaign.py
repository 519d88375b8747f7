"""Many mutants, side by side, each in a process of its own; what is known is kept in a file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
    samples: seeds in whose sample it is: of their order all faults before it are known too.
    kind: of design that it was tried on, which the file's name says.
    """

    mutant: Mutant
    outcome: Outcome
    seen: str
    seconds: float
    text: str = ""
    column: int = 0
    samples: tuple[int, ...] = ()
    kind: str = ""

    def line(self) -> str:
        """As it is kept."""
        data = asdict(self)
        del data["kind"]
        return json.dumps(data, ensure_ascii=False)

    @staticmethod
    def read(line: str, kind: str = "") -> Found:
        """As it was kept."""
        data = json.loads(line)
        given = {"mutant": Mutant(**data["mutant"]), "samples": tuple(data.get("samples", ()))}
        return Found(**data | given, kind=kind)


def sample(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """All mutants in an order of chance, in which lines that say much do not outweigh others.

    A line is drawn first, then one of its mutants: of the first n every unit has its share.  Each
    has its place by what its line says, so that edits elsewhere leave the order of the others.
    """

    def chance(*what: object) -> bytes:
        return hashlib.blake2b(repr((seed, *what)).encode(), digest_size=16).digest()

    lines: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in sorted(mutants):
        lines.setdefault((mutant.module, mutant.line), []).append(mutant)
    alike: Counter[tuple[str, str]] = Counter()
    placed: list[tuple[int, bytes, Mutant]] = []
    for (module, line), group in lines.items():
        says = module, line_of(group[0]) or str(line)
        alike[says] += 1
        key = *says, alike[says]
        group.sort(key=lambda one: chance(key, column_of(one), one.operator, one.after))
        placed += [(turn, chance(key, turn), one) for turn, one in enumerate(group)]
    return [mutant for _, _, mutant in sorted(placed)]


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


def kind_of(file: Path) -> str:
    """The kind of design of a file of what is known: `KIND-SIDE.jsonl`."""
    return file.stem.rpartition("-")[0].replace("-", " ")


def known(file: Path) -> dict[Mutant, Found]:
    """What an earlier campaign found; a line cut off by a kill is left out."""
    found: dict[Mutant, Found] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                one = Found.read(line, kind_of(file))
            except (ValueError, KeyError, TypeError):
                continue
            found[one.mutant] = one
    return found


AGAIN = ("survived", "hung", "caught by tests")
"""What `verify` does not catch."""


def counts(outcome: str) -> bool:
    """Whether a mutant is one of the sample: it changes hardware that can be made."""
    return outcome in ("caught", *AGAIN)


def is_of_sample(found: Found) -> bool:
    """Whether it counts, as far as is known: survivors without effect do not."""
    mutant = found.mutant
    if found.outcome not in AGAIN:
        return counts(found.outcome)
    reason = reason_of(mutant, found.text, found.column, found.kind)
    return reason is None or reason.reach


def unexplained(found: Found) -> bool:
    """Whether `verify` does not catch it, and no reason is known."""
    mutant = found.mutant
    return found.outcome in AGAIN and not reason_of(mutant, found.text, found.column, found.kind)


def not_tested(found: Found) -> bool:
    """Whether it is of a sample and survives, the tests of its unit not yet tried; also what only
    layers too large for a case would show."""
    reason = reason_of(found.mutant, found.text, found.column, found.kind)
    counted = reason is None or reason.reach or reason.choice
    survived = found.outcome in ("survived", "hung") and counted
    return survived and bool(found.samples) and not found.seen


def keep(file: Path, found: Found) -> None:
    """Add to what is known; of a fault the last word counts."""
    with file.open("a", encoding="utf-8") as kept:
        kept.write(found.line() + "\n")


class _Sample:
    """The faults of an order up to the first that is not known: nothing is left out of these.

    What is found later than what lies behind it is not, so that a run that is cut off has no share
    of caught ones that is too large.
    """

    def __init__(
        self, order: list[Mutant], seed: int, found: Mapping[Mutant, Found],
        add: Callable[[Found], Found],
    ) -> None:  # fmt: skip
        self.order, self.seed, self.found, self.add = order, seed, dict(found), add
        self.at = self.counted = 0

    def knows(self, *found: Found) -> None:
        """What became of some more; says so of those that are in the sample now."""
        self.found.update((one.mutant, one) for one in found)
        while self.at < len(self.order) and self.order[self.at] in self.found:
            one = self.found[self.order[self.at]]
            if self.seed not in one.samples:
                one = replace(one, samples=(*one.samples, self.seed))
                self.found[one.mutant] = self.add(one)
            self.counted += is_of_sample(one)
            self.at += 1


def campaign(  # noqa: PLR0913
    order: list[Mutant], run: Run, file: Path, *, wanted: int, processes: int, seconds: float,
    seed: int = 1, again: bool = False,
) -> Iterator[Found]:  # fmt: skip
    """Try mutants in their order until `wanted` of them count; yields each as it is known.

    seed: of the order.  again: those that were not caught, without a reason, are tried once more,
    before any others.
    """
    before = known(file)
    waiting, done = _to_try(order, before, again=again)
    with _added_to(file) as add, Pool(run, processes, seconds) as pool:
        drawn = _Sample(order, seed, done, add)
        drawn.knows()
        counted = sum(is_of_sample(one) for one in before.values() if seed in one.samples)
        yield from (done[mutant] for mutant in order if mutant in done)
        for mutant in waiting:
            if counted >= wanted and not (again and mutant in before):
                break
            pool.start(mutant)
            for ended in pool.ended(all_of_them=False):
                found = add(_found(*ended, before, kind_of(file)))
                counted += is_of_sample(found) and found.mutant not in before
                drawn.knows(found)
                yield found
        for ended in pool.ended(all_of_them=True):
            found = add(_found(*ended, before, kind_of(file)))
            drawn.knows(found)
            yield found


RunBatch = Callable[[list[Mutant]], Iterator[tuple[Mutant, Outcome, str, float]]]


def campaign_in_batches(
    order: list[Mutant], run: RunBatch, file: Path, *, wanted: int, seed: int = 1,
    again: bool = False,
) -> Iterator[Found]:  # fmt: skip
    """As `campaign`, for trials that take many mutants at once."""
    before = known(file)
    waiting, done = _to_try(order, before, again=again)
    with _added_to(file) as add:
        drawn = _Sample(order, seed, done, add)
        drawn.knows()
        yield from (done[mutant] for mutant in order if mutant in done)
        while waiting:
            missed = sum(mutant in before for mutant in waiting[:LARGEST_BATCH])
            size = max(missed, min(LARGEST_BATCH, wanted - drawn.counted))
            batch, waiting = waiting[:size], waiting[size:]
            if not batch:
                return
            for mutant, outcome, seen, seconds in run(batch):
                found = add(
                    _found(mutant, (outcome, seen), round(seconds, 1), before, kind_of(file))
                )
                drawn.knows(found)
                yield found


LARGEST_BATCH = 150


def _to_try(
    order: list[Mutant], before: Mapping[Mutant, Found], *, again: bool
) -> tuple[list[Mutant], dict[Mutant, Found]]:
    """Mutants in the order in which they are tried, and those that are known."""
    missed = {one for one, found in before.items() if again and unexplained(found)}
    done = {one: found for one, found in before.items() if one not in missed}
    there = [mutant for mutant in order if mutant in missed]
    return [*there, *(mutant for mutant in order if mutant not in before)], done


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


def _found(
    mutant: Mutant, answer: Any, seconds: float, before: Mapping[Mutant, Found], kind: str
) -> Found:
    alone: dict[str, tuple[Outcome, str]] = {
        "late": ("hung", ""), "ended": ("caught", "the simulator's process ended")
    }  # fmt: skip
    outcome, seen = alone[answer] if isinstance(answer, str) else answer
    earlier = before.get(mutant)
    if outcome == "survived" and earlier is not None and earlier.outcome == "caught by tests":
        outcome, seen = earlier.outcome, earlier.seen
    return Found(
        mutant=mutant, outcome=outcome, seen=seen, seconds=seconds,
        text=line_of(mutant), column=column_of(mutant),
        samples=before[mutant].samples if mutant in before else (), kind=kind,
    )  # fmt: skip
