"""Robust errors of models over chips, each measured once, kept with archsim or in a user's cache.

A point is a model (by the hash of its file), chips of one kind, a rate, how many pictures and the
first chip.  What is known of it is a number of wrong pictures for that chip and those behind it.
Every measured point is written behind the others at once, so that a run that was ended goes on
where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from archsim.errors import require, require_positive
from archsim.robust.chips import Chips
from archsim.robust.evaluate import error_percent
from archsim.robust.model import RobustModel
from workloads.cache_folder import cache_folder
from workloads.counts import counted
from workloads.labelled import Labelled
from workloads.threads import in_threads

SHIPPED = Path(__file__).parent / "models" / "measured.jsonl"

MOST_CHIPS = 100_000

Progress = Callable[[str], None]
Key = tuple[str, str, float, int, int]


def cache_file() -> Path:
    """Where a user's own measurements are kept (it need not exist)."""
    return cache_folder() / "robust.jsonl"


def fingerprint(model: RobustModel) -> str:
    """Of a model's codes, ranges and scheme."""
    return hashlib.sha256(model.packed()).hexdigest()[:16]


@dataclass
class Measurements:
    """Errors of so many chips on `images` of a set's pictures, taken at even distances.

    pictures: the set, asked for only where something must be measured.  files: where known points
    are read from; new ones are written behind the last.
    """

    images: int
    chips: int
    pictures: Callable[[], Labelled]
    files: tuple[Path, ...] = ()
    progress: Progress = lambda _: None
    _known: dict[Key, list[int]] = field(default_factory=dict[Key, list[int]])

    def __post_init__(self) -> None:
        require_positive(images=self.images, chips=self.chips)
        require(self.chips <= MOST_CHIPS, f"chips must be at most {MOST_CHIPS}, not {self.chips}")
        for path in self.files:
            for key, wrong in _read(path):
                if len(wrong) > len(self._known.get(key, ())):
                    self._known[key] = wrong

    def errors(
        self, model: RobustModel, of: Chips, rate: float, *, only: int | None = None
    ) -> list[float]:
        """Per cent of the pictures that are wrong, by chip.

        One chip where there are no errors; only: this chip and no other.
        """
        first = 0 if only is None else only
        count = self.chips if rate and only is None else 1
        key = (fingerprint(model), repr(of), rate, self.images, first)
        wrong = self._known.get(key, [])
        if len(wrong) < count:
            chips, pictures = counted(count, "chip"), counted(self.images, "picture")
            self.progress(f"{rate:.2%} of bits wrong, {chips}, {pictures}")
            wrong = wrong + self._measure(model, of, rate, range(first + len(wrong), first + count))
            self._known[key] = wrong
            self._keep(key, wrong)
        return [100 * one / self.images for one in wrong[:count]]

    @cached_property
    def _chosen(self) -> Labelled:
        whole = self.pictures()
        require(
            self.images <= len(whole),
            f"--images must be at most {len(whole)}, those of {whole.name}, not {self.images}",
        )
        return whole.spread(self.images)

    def _measure(
        self, model: RobustModel, of: Chips, rate: float, chips: Iterable[int]
    ) -> list[int]:
        codes, chosen = model.codes, self._chosen

        def one(chip: int) -> int:
            read = of.read(codes, model.scheme.bits, chip, rate)
            return round(error_percent(model, chosen, read, at_once=1) * len(chosen) / 100)

        return in_threads(one, chips)

    def _keep(self, key: Key, wrong: list[int]) -> None:
        if not self.files:
            return
        path = self.files[-1]
        with suppress(OSError):  # what cannot be kept is measured again
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*key, wrong]) + "\n")


def _read(path: Path) -> Iterable[tuple[Key, list[int]]]:
    """The points of a file; lines that are damaged are passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError):
            model, chips, rate, images, first, wrong = cast("list[Any]", json.loads(line))
            key = (str(model), str(chips), float(rate), int(images), int(first))
            yield key, [int(one) for one in wrong]


__all__ = ["Measurements", "cache_file", "fingerprint"]
