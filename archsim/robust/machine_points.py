"""Errors and energy of models on machines at low voltage, each measured once and kept.

A point is a model (by the hash of its file), a machine, what stands at which voltage, a chip and a
number of pictures; what is known of it is how many of these are wrong.  Every point is written
behind the others as soon as it is known: a run that was ended goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from archsim.energy import account
from archsim.errors import InputError, require, require_positive
from archsim.machine.design import Design
from archsim.machine.registry import design_name, design_record, load_design
from archsim.robust.measured import MOST_CHIPS, cache_file, fingerprint
from archsim.robust.model import RobustModel
from archsim.robust.on_machine import (
    BATCH,
    CALIBRATED_PICTURES,
    MachineEvaluator,
    calibrated,
    mapped,
    matrix_network,
    require_held,
)
from archsim.robust.placed import At, group_of, memory_of_part, placed
from archsim.robust.where import bit_alone, wrong_in_layer
from archsim.simulate import simulate
from workloads.counts import counted
from workloads.labelled import Labelled

SHIPPED = Path(__file__).parent / "models" / "machines.jsonl"

Key = tuple[str, ...]

Pictures = Callable[[], tuple[Labelled, Labelled]]
"""The set to be tested with and the one to calibrate with."""


def own_file() -> Path:
    """Where a user's own points are kept (it need not exist)."""
    return cache_file().with_name("robust-machines.jsonl")


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Of one picture, in pJ: of all, and of the memory's own components."""

    total_pj: float
    by_memory_pj: dict[str, float]


@dataclass
class MachinePoints:
    """A model on machines: errors on `images` of a set's pictures at even distances, on each chip.

    pictures: asked for only where something must be measured.  files: where known points are read
    from; new ones are written behind the last.  progress: told before each measurement.
    """

    model: RobustModel
    images: int
    chips: int
    pictures: Pictures
    technology: str = "16nm"
    files: tuple[Path, ...] = ()
    progress: Callable[[str], None] = lambda _: None
    _known: dict[Key, Any] = field(default_factory=dict[Key, Any])

    def __post_init__(self) -> None:
        require_positive(images=self.images, chips=self.chips)
        require(self.chips <= MOST_CHIPS, f"chips must be at most {MOST_CHIPS}, not {self.chips}")
        for path in self.files:
            self._known.update(known_points(path))

    def errors(self, design: Design, at: Sequence[At] = ()) -> list[float]:
        """Per cent of the pictures that are wrong, by chip; of one chip where nothing can fail.

        Raises InputError as `archsim.robust.placed.placed`.
        """
        failing = any(one.voltage < 1 for one in at)
        return [self._error(design, at, chip) for chip in range(self.chips if failing else 1)]

    def mean(self, design: Design, at: Sequence[At] = ()) -> float:
        """Of `errors`."""
        found = self.errors(design, at)
        return sum(found) / len(found)

    def energy(self, design: Design, at: Sequence[At] = ()) -> Energy:
        """Of one picture, in batches of `BATCH`."""
        key, own = self._key(design, at, "energy", self.technology), memory_of_part(design)
        groups = {group_of(one.name, own) for one in design.components}
        if not groups <= self._known_groups(key, own).keys():  # or kept when some were one
            self.progress(f"{design_name(design)}: energy, {_said(at)}")
            self._keep(key, self._measured_energy(placed(design, at)))
        found: dict[str, Any] = self._known[key]
        return Energy(total_pj=found["total_pj"], by_memory_pj=self._known_groups(key, own))

    def _known_groups(self, key: Key, own: Mapping[str, str]) -> dict[str, float]:
        """By memory what is known of an energy's components, which may be kept by part."""
        parts: dict[str, float] = self._known.get(key, {}).get("by_memory_pj", {})
        found = dict[str, float]()
        for name, pj in parts.items():
            memory = group_of(name, own)
            found[memory] = found.get(memory, 0.0) + pj
        return found

    def errors_in_layer(self, design: Design, at: At, layer: str) -> list[float]:
        """As `errors`, where a memory fails in one layer alone."""
        return self._alone(
            design, at, f"layer {layer}",
            lambda chip: wrong_in_layer(self._evaluator, design, at, self._test, layer, chip),
        )  # fmt: skip

    def errors_in_bit(self, design: Design, at: At, bit: int) -> list[float]:
        """As `errors`, where one bit of every lane of a plain memory may fail, 0 the lowest."""
        return self._alone(
            design, at, f"bit {bit}",
            lambda chip: self._evaluator.wrong(bit_alone(design, at, bit, chip), self._test),
        )  # fmt: skip

    def _alone(
        self, design: Design, at: At, part: str, wrong: Callable[[int], list[bool]]
    ) -> list[float]:
        return [
            self._counted(design, [at], chip, partial(wrong, chip), part)
            for chip in range(self.chips)
        ]

    def _error(self, design: Design, at: Sequence[At], chip: int) -> float:
        def wrong() -> list[bool]:
            return self._evaluator.wrong(placed(design, at, chip), self._test)

        return self._counted(design, at, chip, wrong)

    def _counted(
        self, design: Design, at: Sequence[At], chip: int, wrong: Callable[[], list[bool]],
        part: str = "",
    ) -> float:  # fmt: skip
        """Per cent of the pictures, known or measured; part: of the memory that may fail."""
        key = self._key(design, at, str(chip), str(self.images), *([part] if part else []))
        if key not in self._known:
            require_held(self.model, design.intake.source_bits)
            placed(design, at, chip)
            said = f"{_said(at)}, {part} alone" if part else _said(at)
            self.progress(
                f"{design_name(design)}: {said}, chip {chip}, {counted(self.images, 'picture')}"
            )
            self._keep(key, sum(wrong()))
        return 100 * self._known[key] / self.images

    def _measured_energy(self, design: Design) -> dict[str, Any]:
        """Counted without operands where no count hangs on values."""
        found, pictures = None, BATCH
        if not design.machine_model().timed_by_values:
            network = matrix_network(self.model, BATCH)
            found = account(simulate(design, network, **mapped(design)), self.technology)
        if found is None or found.bounded:
            shown = self._test.spread(BATCH)
            pictures = len(shown)
            found = account(self._evaluator.simulated(design, shown), self.technology)
        groups, own = dict[str, float](), memory_of_part(design)
        for name, value in found.by_component.items():
            memory = group_of(name, own)
            groups[memory] = groups.get(memory, 0.0) + value / pictures
        return {"total_pj": found.total / pictures, "by_memory_pj": groups}

    @cached_property
    def _sets(self) -> tuple[Labelled, Labelled]:
        return self.pictures()

    @cached_property
    def _test(self) -> Labelled:
        whole = self._sets[0]
        require(
            self.images <= len(whole),
            f"--images must be at most {len(whole)}, those of {whole.name}, not {self.images}",
        )
        return whole.spread(self.images)

    @cached_property
    def _evaluator(self) -> MachineEvaluator:
        trained_with = self._sets[1].spread(CALIBRATED_PICTURES)
        return MachineEvaluator(self.model, calibrated(self.model, trained_with.pictures))

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.model)

    def _key(self, design: Design, at: Iterable[At], *more: str) -> Key:
        failing = ", ".join(one.text for one in sorted(at))
        return (self._fingerprint, _named(design), failing, *more)

    def _keep(self, key: Key, value: Any) -> None:
        self._known[key] = value
        if not self.files:
            return
        path = self.files[-1]
        with suppress(OSError):  # what cannot be kept is measured again
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([list(key), value]) + "\n")


def _said(at: Sequence[At]) -> str:
    return ", ".join(f"{one.memory} {one.form} at {one.voltage:g}" for one in at) or "no errors"


def ats_of(failing: str) -> list[At]:
    """Of a key's text, "ifmap plain 0.9, weight plain 0.9"."""
    parts = [one.split() for one in failing.split(", ") if one]
    return [At(memory, form, float(voltage)) for memory, form, voltage in parts]


def _named(design: Design) -> str:
    """A shipped design's name, or the hash of what another one is."""
    name = design_name(design)
    with suppress(InputError):
        if load_design(name) == design:
            return name
    record = json.dumps(design_record(design), sort_keys=True)
    return hashlib.sha256(record.encode()).hexdigest()[:16]


def known_points(path: Path) -> Iterable[tuple[Key, Any]]:
    """The points of a file; lines that are damaged are passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            key, value = cast("list[Any]", json.loads(line))
            named = tuple(str(part) for part in key)
            if isinstance(value, dict):
                energy = cast("dict[str, Any]", value)
                groups = {str(name): float(pj) for name, pj in energy["by_memory_pj"].items()}
                yield named, {"total_pj": float(energy["total_pj"]), "by_memory_pj": groups}
            else:
                yield named, int(value)


__all__ = ["SHIPPED", "Energy", "MachinePoints", "ats_of", "known_points", "own_file"]
