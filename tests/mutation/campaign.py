"""Many mutants, side by side, each in a process of its own; what is known is kept in a file."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.mutation.equivalent import reason_of
from tests.mutation.operators import Mutant
from tests.mutation.sources import column_of, line_of
from tests.mutation.trial import Outcome, limit_memory

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
    before = known(file)
    if again:
        missed = {
            one for one, found in before.items()
            if found.outcome in AGAIN and not reason_of(one, found.text, found.column)
        }  # fmt: skip
        order = sorted(order, key=lambda mutant: mutant not in missed)
        before = {one: found for one, found in before.items() if one not in missed}
    file.parent.mkdir(parents=True, exist_ok=True)
    counted = 0
    if file.exists() and not file.read_bytes().endswith(b"\n"):  # cut off by a kill
        with file.open("a", encoding="utf-8") as cut:
            cut.write("\n")
    with file.open("a", encoding="utf-8") as kept, _Pool(run, processes, seconds) as pool:
        waiting = iter(order)
        for mutant in waiting:
            if counted >= wanted:
                break
            if mutant in before:
                counted += counts(before[mutant].outcome)
                yield before[mutant]
                continue
            pool.start(mutant)
            for found in pool.ended(all_of_them=False):
                counted += counts(found.outcome)
                kept.write(found.line() + "\n")
                kept.flush()
                yield found
        for found in pool.ended(all_of_them=True):
            kept.write(found.line() + "\n")
            kept.flush()
            yield found


class _Pool:
    """Forked processes, at most so many at once, each killed when its time is over."""

    def __init__(self, run: Run, processes: int, seconds: float) -> None:
        self.run, self.processes, self.seconds = run, processes, seconds
        self.running: dict[Any, tuple[Any, Mutant, float]] = {}
        """By the end of a pipe: the process, what it tries, since when."""

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *error: object) -> None:
        for process, _, _ in self.running.values():
            _kill(process)

    def start(self, mutant: Mutant) -> None:
        """Begin with a mutant."""
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=_in_child, args=(self.run, mutant, there)
        )
        process.start()
        there.close()
        self.running[here] = process, mutant, time.monotonic()

    def ended(self, *, all_of_them: bool) -> Iterator[Found]:
        """Those that have ended; waits until another one may start, or for all."""
        most = 0 if all_of_them else self.processes - 1
        while len(self.running) > most:
            for ready in wait(list(self.running), timeout=1):
                yield self._result(ready)
            now = time.monotonic()
            for late in [one for one in self.running if now - self.running[one][2] > self.seconds]:
                process, mutant, _begun = self.running.pop(late)
                _kill(process)
                yield _found(mutant, "hung", "", self.seconds)

    def _result(self, ready: Any) -> Found:
        process, mutant, begun = self.running.pop(ready)
        try:
            outcome, seen = ready.recv()
        except EOFError:  # killed by the system, or a crash in compiled code
            outcome, seen = "caught", "the simulator's process ended"
        process.join()
        ready.close()
        seconds = round(time.monotonic() - begun, 1)
        return _found(mutant, outcome, seen, seconds)


def _found(mutant: Mutant, outcome: Outcome, seen: str, seconds: float) -> Found:
    return Found(
        mutant=mutant, outcome=outcome, seen=seen, seconds=seconds,
        text=line_of(mutant), column=column_of(mutant),
    )  # fmt: skip


def _in_child(run: Run, mutant: Mutant, answer: Connection) -> None:
    os.setsid()
    limit_memory()
    answer.send(run(mutant))


def _kill(process: Any) -> None:
    """The process, and the compilers that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.join()
