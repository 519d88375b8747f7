"""The points of machines at low voltage that come with archsim are what is measured today."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import pytest

from archsim.machine.registry import load_design
from archsim.robust.machine_points import SHIPPED, Key, MachinePoints, ats_of, known_points
from archsim.robust.measured import fingerprint
from archsim.robust.model import shipped
from workloads.labelled import labelled

MODEL = "mnist-int8-randbet-1"
IMAGES = 100
SLOW_MACHINES = ("volta", "scnn")
"""Of which a point takes seconds."""

KNOWN = dict(known_points(SHIPPED))


def _sample() -> dict[tuple[str, str], Key]:
    """By machine, memory and form the point of chip 0 that tells most: of which nearest to half of
    the pictures are wrong."""
    found: dict[tuple[str, str], Key] = {}
    for key, value in KNOWN.items():
        if len(key) != 5 or key[3:] != ("0", str(IMAGES)) or "," in key[2]:
            continue
        kind = (key[1], key[2].rpartition(" ")[0])
        if kind not in found or abs(value - IMAGES / 2) < abs(KNOWN[found[kind]] - IMAGES / 2):
            found[kind] = key
    return found


SAMPLE = _sample()


@lru_cache
def _measuring(chips: int = 1) -> MachinePoints:
    """With nothing known and nothing kept."""
    return MachinePoints(
        model=shipped(MODEL), images=IMAGES, chips=chips,
        pictures=lambda: (labelled("mnist", "test"), labelled("mnist", "train")),
    )  # fmt: skip


def _measured(key: Key) -> Any:
    return round(_measuring().errors(load_design(key[1]), ats_of(key[2]))[0] * IMAGES / 100)


def test_every_machine_and_form_has_a_sample() -> None:
    assert {key[0] for key in KNOWN} == {fingerprint(shipped(MODEL))}
    assert {machine for machine, _ in SAMPLE} == {"edge-16", "vsq-16", "volta", "scnn"}
    for form in ("plain", "boveda", "secded"):
        assert {("edge-16", f"ifmap {form}"), ("edge-16", f"weight {form}")} <= SAMPLE.keys()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, id=" ".join(kind),
            marks=[pytest.mark.slow] if kind[0] in SLOW_MACHINES and kind[1] else [],
        )
        for kind in SAMPLE
    ],
)  # fmt: skip
def test_a_shipped_point_is_measured_again(kind: tuple[str, str]) -> None:
    """A model or a memory that has changed makes points stale: measure them anew."""
    key = SAMPLE[kind]
    assert _measured(key) == KNOWN[key]


@pytest.mark.parametrize("memory", ["ifmap boveda", "weight boveda", "ifmap secded"])
def test_a_shipped_energy_is_measured_again(memory: str) -> None:
    key = SAMPLE["edge-16", memory]
    found = _measuring().energy(load_design(key[1]), ats_of(key[2]))
    kept = KNOWN[*key[:3], "energy", "16nm"]
    assert found.total_pj == pytest.approx(kept["total_pj"], rel=1e-9)
    assert found.by_memory_pj == pytest.approx(kept["by_memory_pj"], rel=1e-9)


def _counts(known: Mapping[Key, Any]) -> Iterator[tuple[Key, dict[int, int]]]:
    """Of whole memories, by key without chip and pictures: of each chip that is kept its count."""
    found: dict[Key, dict[int, int]] = {}
    for key, value in known.items():
        if len(key) == 5 and key[3].isdecimal() and key[4] == str(IMAGES):
            found.setdefault(key[:3], {})[int(key[3])] = value
    yield from found.items()


def _stale(known: Mapping[Key, Any], errors: Callable[[Key, int], list[float]]) -> list[str]:
    """Counts that are others than what is measured; errors: of a key, on so many chips."""
    found: list[str] = []
    for key, kept in _counts(known):
        measured = errors(key, max(kept) + 1)
        counts = {chip: round(measured[chip] * IMAGES / 100) for chip in kept}
        if counts != kept:
            found.append(f"{key[1]}, {key[2]}: kept {kept}, measured {counts}")
    return found


def test_counts_of_any_chips_are_compared() -> None:
    """Also where the first chip, or a later one, is not kept."""
    at, more = ("model", "edge-16", "weight plain 0.9"), ("model", "volta", "weight plain 0.9")
    known = {(*at, "1", "100"): 7, (*more, "0", "100"): 3, (*more, "energy", "16nm"): {}}
    asked: list[tuple[Key, int]] = []

    def errors(key: Key, chips: int) -> list[float]:
        asked.append((key, chips))
        return [3.0, 7.0][:chips]

    assert not _stale(known, errors)
    assert asked == [(at, 2), (more, 1)]
    (said,) = _stale({**known, (*at, "0", "100"): 4}, errors)
    assert "edge-16" in said and "{1: 7, 0: 4}" in said


@pytest.mark.slow
def test_every_shipped_count_is_measured_again() -> None:
    def errors(key: Key, chips: int) -> list[float]:
        return _measuring(chips).errors(load_design(key[1]), ats_of(key[2]))

    assert not _stale(KNOWN, errors)
