"""The points of machines at low voltage that come with archsim are what is measured today."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from archsim.machine.registry import load_design
from archsim.robust.machine_points import SHIPPED, Key, MachinePoints, known_points
from archsim.robust.measured import fingerprint
from archsim.robust.model import shipped
from archsim.robust.placed import At
from workloads.labelled import labelled

MODEL = "mnist-int8-randbet-1"
IMAGES = 100
SLOW_MACHINES = ("volta", "scnn")
"""Of which a point takes seconds."""

KNOWN = dict(known_points(SHIPPED))


def _at(failing: str) -> list[At]:
    """Of a key's text, "ifmap plain 0.9, weight plain 0.9"."""
    found: list[At] = []
    for one in failing.split(", ") if failing else ():
        memory, form, voltage = one.split()
        found.append(At(memory, form, float(voltage)))
    return found


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


@lru_cache(maxsize=1)
def _measuring() -> MachinePoints:
    """With nothing known and nothing kept."""
    return MachinePoints(
        model=shipped(MODEL), images=IMAGES, chips=1,
        pictures=lambda: (labelled("mnist", "test"), labelled("mnist", "train")),
    )  # fmt: skip


def _measured(key: Key) -> Any:
    return round(_measuring().errors(load_design(key[1]), _at(key[2]))[0] * IMAGES / 100)


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
    found = _measuring().energy(load_design(key[1]), _at(key[2]))
    kept = KNOWN[*key[:3], "energy", "16nm"]
    assert found.total_pj == pytest.approx(kept["total_pj"], rel=1e-9)
    assert found.by_memory_pj == pytest.approx(kept["by_memory_pj"], rel=1e-9)


@pytest.mark.slow
def test_every_shipped_count_is_measured_again() -> None:
    measuring = MachinePoints(
        model=shipped(MODEL), images=IMAGES, chips=2,
        pictures=lambda: (labelled("mnist", "test"), labelled("mnist", "train")),
    )  # fmt: skip
    stale: list[str] = []
    for key in KNOWN:
        if len(key) != 5 or key[3] != "0" or key[4] != str(IMAGES):
            continue
        _, machine, failing, *_ = key
        found = measuring.errors(load_design(machine), _at(failing))
        kept = [KNOWN[*key[:3], str(chip), key[4]] for chip in range(len(found))]
        if [round(one * IMAGES / 100) for one in found] != kept:
            stale.append(f"{machine}, {failing}: kept {kept}, measured {found}")
    assert not stale
