"""Stutz et al., MLSys 2021: networks whose weights bear random bit errors, ours beside theirs.

Ours are the models of `archsim.robust`, evaluated on chips of the fault maps
(`archsim.memories.faulty`): narrower than the paper's and trained for a fiftieth of its schedule.
What was measured once is kept (`archsim.robust.measured`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from archsim.papers.evidence import Measured, switch
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    read_paper,
    silent,
    unpublished,
)
from archsim.papers.randbet_more import energy_rows, pattern_rows, profiled_rows, step_rows
from archsim.robust.chips import Chips
from archsim.robust.evaluate import true_error_bound
from archsim.robust.measured import SHIPPED, Measurements, cache_file
from archsim.robust.model import RobustModel, shipped
from workloads.counts import counted
from workloads.labelled import labelled

IMAGES, CHIPS = 1000, 20
"""Without options: what archsim has measured already."""

RATES = (0.01, 0.05, 0.1, 0.125, 0.15, 0.175, 0.2)
"""The paper's for MNIST."""

WIDEST_POINTS = 10.0

HOW = "archsim paper randbet"

MISSING = "a quarter of the paper's width, and 2 of its 100 epochs (note 1)"


def compare(
    progress: Progress = silent, *, images: int | None = None, chips: int | None = None
) -> Comparison:
    """The tables; images: of the test set at even distances; chips: of each kind.

    Raises WorkloadError where something must be measured and the pictures are not installed.
    """
    measured = Measurements(
        images=IMAGES if images is None else images,
        chips=CHIPS if chips is None else chips,
        pictures=lambda: labelled("mnist", "test"),
        files=(SHIPPED, cache_file()),
        progress=progress,
    )
    data = read_paper("randbet")
    models = {str(one["model"]): shipped(one["model"]) for one in data["mnist"]}
    rows = [row for one in data["mnist"] for row in _mnist_rows(one, models, measured)]
    rows += energy_rows(models, measured, RATES)
    rows += [
        *profiled_rows(models, measured),
        *pattern_rows(measured),
        *step_rows(models, measured),
    ]
    return Comparison(
        paper="randbet",
        title=str(data["title"]),
        rows=tuple(rows),
        notes=_notes(measured, models["mnist-int8-rquant"]),
    )


def _mnist_rows(
    one: Mapping[str, Any], models: Mapping[str, RobustModel], measured: Measurements
) -> Iterator[Row]:
    """Of one model: its clean error, and the mean over chips at each rate."""
    model = models[one["model"]]
    group = f"MNIST, {one['key']}" + (f" ({one['setting']})" if "setting" in one else "")
    clean = float(model.made["clean_error_percent"])
    yield _figure(one, group, "clean error", one.get("clean")).row(clean, missing=MISSING)
    there = _mean(measured.errors(model, Chips(), 0.0))
    published = one.get("robust", {})
    for rate in RATES:
        errors = measured.errors(model, Chips(), rate)
        ours, percent = _mean(errors), f"{100 * rate:g}"
        figure = _figure(one, group, f"robust error at {percent} %", published.get(percent))
        evidence: list[Measured] = []
        if figure.value is not None:
            without = max(float(one["clean"]) + ours - there, 0.0)
            evidence = [switch("with the paper's clean error below it", without, HOW)]
        remark = f"± {_deviation(errors):.2f} over {counted(len(errors), 'chip')}"
        yield figure.row(ours, remark, measured=evidence, missing=MISSING)


def _figure(one: Mapping[str, Any], group: str, what: str, value: float | None) -> Figure:
    key, source = f"{one['key']}: {what}", "supplementary material, MNIST table"
    if value is None:
        return unpublished(key=key, group=group, figure=what, unit="%", source=source)
    return Figure(
        key=key,
        group=group,
        figure=what,
        value=float(value),
        unit="%",
        tolerance=min(0.25 * float(value), WIDEST_POINTS),
        why="a quarter of the figure, at most 10 points, by which chips of one rate differ",
        source=source,
    )


def _notes(measured: Measurements, model: RobustModel) -> tuple[str, ...]:
    bound = true_error_bound(measured.images, measured.chips)
    return (
        f"Note 1. Our MNIST networks have {model.network.weights:,} weights, the paper's "
        f"1,082,826, and were trained for {model.made['recipe']['epochs']} epochs of its 100 "
        "(docs/how-to/low-voltage-training.md). Clean errors are of all 10,000 test pictures.",
        f"Note 2. Robust errors are means over {measured.chips} chips, on {measured.images} test "
        "pictures at even distances; --images and --chips take more, and keep what they measure. "
        f"By the paper's bound the true error is, in 99 of 100 cases, below the mean plus "
        f"{bound:.0f} points: it wants many chips (4.1 points at 10,000 pictures and a million).",
        "Note 3. CIFAR-10 is in no package: of the paper's tables on it, orderings alone stand "
        "beside ours. Its steps are not in order at low rates: asymmetric and unsigned codes are "
        "worse than Normal up to 0.1 %, and unsigned better than asymmetric signed ones from 0.1 % "
        "on only.",
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _deviation(values: list[float]) -> float:
    mean = _mean(values)
    return (sum((one - mean) ** 2 for one in values) / len(values)) ** 0.5


__all__ = ["CHIPS", "IMAGES", "RATES", "compare"]
