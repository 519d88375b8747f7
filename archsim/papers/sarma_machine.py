"""Our training machine beside itself without skipping, on operands drawn from measured densities.

The dense machine is the same core with as many multipliers, which takes every row in its turn and
computes every output.  Both are cycle-exact; the images are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from archsim.papers.figures import Progress, Row, unpublished
from archsim.papers.sarma_steps import COLUMNS, MEAN, ideal, step_at
from workloads.training.drawn import DrawnStep

MACHINE = "sparsetrain"
NETWORK = "resnet34"
EPOCHS = ("1", MEAN)

SHOWN = {"FP": "FP", "BP": "BP", "FP_BP": "FP and BP", "WG": "WG", "all": "FP, BP and WG"}


def machine_rows(progress: Progress) -> list[Row]:
    """Speedups of a ResNet's passes over the dense machine, with their shares of the ideal."""
    rows: list[Row] = []
    for when in EPOCHS:
        said = "mean of the training" if when == MEAN else f"epoch {when}"
        progress(f"{MACHINE}, {NETWORK}, {said}")
        for column, name in SHOWN.items():
            figure = unpublished(
                key=f"{MACHINE}.{NETWORK}.{when}.{column}",
                group=f"{MACHINE} over its dense self: {NETWORK}, {said}",
                figure=name,
                unit="1",
                source="the paper's networks, masks and machine are not published",
            )
            ours, best = speedup(when, column), ideal(NETWORK, when, column)
            share = f"{100 * ours / best:.0f} % of the ideal, {best:.2f}"
            rows.append(figure.row(ours, reason=share))
    return rows


def speedup(when: str, column: str) -> float:
    """Cycles of the dense machine over ours, of the passes of a column."""
    passes, _ = COLUMNS[column]
    dense, ours = cycles(MEAN, skips=False), cycles(when, skips=True)
    return _sum(dense, passes) / _sum(ours, passes)


def _sum(found: dict[str, int], passes: Sequence[str]) -> int:
    return sum(found[name] for name in passes)


@cache
def cycles(when: str, *, skips: bool) -> dict[str, int]:
    """Of each pass; of the machine that does not skip they are the same whatever the operands."""
    network, found = step_at(NETWORK, when), dict[str, int]()
    training = network.training
    assert training is not None and training.step is not None
    activity = training.step.activity
    assert activity is not None
    design = load_design(MACHINE) if skips else dense_self(load_design(MACHINE))
    operands = DrawnStep(step=training.step, activity=activity, bits=design.intake.source_bits)
    run = design.machine_model().run(network, operands, {})
    for layer in network.matrix_layers:
        name = training.passes[layer.name]
        found[name] = found.get(name, 0) + run.result(layer).cycles
    return found


def dense_self(design: Design) -> Design:
    """The same machine without a window and without masks of outputs.  Raises `InputError` for a
    machine that has neither."""
    return with_settings(design, ["look_ahead=0", "look_aside=0", "skip_outputs=false"])


__all__ = ["EPOCHS", "MACHINE", "NETWORK", "SHOWN", "cycles", "dense_self", "machine_rows",
           "speedup"]  # fmt: skip
