"""Our training machine beside itself without skipping, on operands drawn from measured densities.

The dense machine is the same core with as many multipliers, which takes every row in its turn and
computes every output.  Both are cycle-exact; the images are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from archsim.machine.registry import load_design, with_settings
from archsim.machines.sparsetrain.estimate import Estimate
from archsim.papers.figures import Progress, Row, unpublished
from archsim.papers.sarma_passes import DENSE, LOSSES, MACHINE, Step, Taken, sparse_step, step_on
from archsim.papers.sarma_steps import COLUMNS, MEAN, ideal, step_at
from workloads.training.measured import measured_epochs
from workloads.training.pass_layer import PASSES

NETWORKS = ("vgg16", "resnet34", "resnet50")
EPOCHS = ("1", MEAN)

SHOWN = {"FP": "FP", "BP": "BP", "FP_BP": "FP and BP", "WG": "WG", "all": "FP, BP and WG"}

SYSTOLIC = ("edge-16", ("rows=8",))
"""A weight-stationary array of 8 × 16 multipliers."""

KEPT = ("row_scratchpad=8192", "column_scratchpad=8192")
"""Of a machine as it is, one with 128 KiB for each operand."""

SCNN = ("scnn", ("grid_rows=2", "grid_columns=4"))
"""8 PEs of 16 multipliers."""

SCNN_NETWORK = "resnet34"

SOURCE = "the paper's networks, masks and machine are not published"


def machine_rows(progress: Progress) -> list[Row]:
    """Speedups over the dense machine, their shares of the ideal, and where the others' went."""
    rows: list[Row] = []
    for network in NETWORKS:
        rows += epoch_rows(network)
        for when in EPOCHS:
            progress(f"{MACHINE}, {network}, {_said(when)}")
            rows += [_speed_row(network, when, column) for column in SHOWN]
        progress(f"{network} on other machines")
        rows += _against(network)
    return rows


def _said(when: str) -> str:
    return "mean of the training" if when == MEAN else f"epoch {when}"


def _row(group: str, key: str, name: str, ours: float, remark: str) -> Row:
    figure = unpublished(key=key, group=group, figure=name, unit="1", source=SOURCE)
    return figure.row(ours, reason=remark)


def _speed_row(network: str, when: str, column: str) -> Row:
    ours, best = speedup(network, when, column), ideal(network, when, column)
    taken = sparse_step(network, when).of(COLUMNS[column][0])
    return _row(
        f"{MACHINE} over its dense self: {network}, {_said(when)}",
        f"{MACHINE}.{network}.{when}.{column}",
        SHOWN[column],
        ours,
        f"{100 * ours / best:.0f} % of the ideal, {best:.2f}; cycles: {shares(taken)}",
    )


def shares(taken: Taken) -> str:
    """Where cycles go, in per cent: "products 40, ends 12, …"."""
    parts = (f"{name} {100 * taken.where[name] / max(taken.cycles, 1):.0f}" for name in LOSSES)
    return ", ".join(parts) + " %"


def speedup(network: str, when: str, column: str) -> float:
    """Cycles of the dense machine over ours, of the passes of a column."""
    passes, _ = COLUMNS[column]
    dense = sparse_step(network, MEAN, DENSE).of(passes)
    return dense.cycles / sparse_step(network, when).of(passes).cycles


def epoch_rows(network: str) -> list[Row]:
    """By epoch, estimated from densities alone."""
    sparse: Any = load_design(MACHINE)
    without: Any = with_settings(sparse, list(DENSE))
    dense = Estimate(without)
    ours, rows = Estimate(sparse), list[Row]()
    for epoch in measured_epochs(network):
        when = str(epoch)
        step = step_at(network, when)
        training = step.training
        assert training is not None
        taken: dict[str, dict[str, int]] = {
            name: dict.fromkeys(PASSES, 0) for name in ("dense", "ours")
        }
        for name, one in (("dense", dense), ("ours", ours)):
            for layer, cycles in one.cycles(step).items():
                taken[name][training.passes[layer]] += cycles
        speed = {
            column: sum(taken["dense"][one] for one in COLUMNS[column][0])
            / sum(taken["ours"][one] for one in COLUMNS[column][0])
            for column in ("FP", "BP", "FP_BP")
        }
        best = ideal(network, when, "FP_BP")
        said = (
            f"estimate; FP {speed['FP']:.2f}, BP {speed['BP']:.2f}; "
            f"{100 * speed['FP_BP'] / best:.0f} % of the ideal, {best:.2f}"
        )
        rows.append(
            _row(
                f"{MACHINE} over its dense self by epoch, an estimate: {network}",
                f"estimate.{network}.{when}",
                f"FP and BP, epoch {epoch}",
                speed["FP_BP"],
                said,
            )
        )
    return rows


def _against(network: str) -> list[Row]:
    """Time, energy and area of a step beside others', at the mean of the training."""
    ours, dense = sparse_step(network, MEAN), sparse_step(network, MEAN, DENSE)
    group = f"others over {MACHINE}: a step of {network}, mean of the training, one image"
    rows = _beside(group, network, "its dense self, as many multipliers", ours, dense)
    area = dense.area_um2 / ours.area_um2
    whole = tuple(COLUMNS["all"][0])
    time = dense.of(whole).cycles / ours.of(whole).cycles
    rows.append(
        _row(
            group,
            f"{network}.equal_area.time",
            "its dense self, of equal area: cycles",
            time * area,
            f"as if {1 / area:.2f} times the multipliers were used as well",
        )
    )
    systolic = step_on(network, MEAN, *SYSTOLIC)
    rows += _beside(group, network, "8 × 16 systolic array", ours, systolic)
    kept = sparse_step(network, MEAN, KEPT)
    beside = group.replace(MACHINE, f"{MACHINE} with scratchpads of 2 × 128 KiB", 1)
    rows += _beside(beside, network, "itself without them", kept, ours)
    rows += _beside(beside, network, "8 × 16 array", kept, systolic)
    if network == SCNN_NETWORK:
        rows += _scnn_rows(group, ours)
    return rows


def _beside(group: str, network: str, name: str, ours: Step, other: Step) -> list[Row]:
    whole = tuple(COLUMNS["all"][0])
    mine, its = ours.of(whole), other.of(whole)
    figures: Iterable[tuple[str, float, str]] = (
        ("cycles", its.cycles / mine.cycles, f"{its.cycles:,} over {mine.cycles:,}"),
        (
            "energy",
            its.energy_pj / mine.energy_pj,
            f"{its.energy_pj * 1e-9:.3g} mJ over {mine.energy_pj * 1e-9:.3g} mJ, DRAM counted",
        ),
        (
            "energy on the chip",
            its.on_chip_pj / mine.on_chip_pj,
            f"{its.on_chip_pj * 1e-9:.3g} mJ over {mine.on_chip_pj * 1e-9:.3g} mJ",
        ),
        (
            "area",
            other.area_um2 / ours.area_um2,
            f"{other.area_um2 * 1e-6:.2f} mm² over {ours.area_um2 * 1e-6:.2f} mm²",
        ),
    )
    key = name.partition(",")[0].replace(" ", "_")
    return [
        _row(group, f"{network}.{key}.{what}", f"{name}: {what}", ratio, said)
        for what, ratio, said in figures
    ]


def _scnn_rows(group: str, ours: Step) -> list[Row]:
    """On the layers that SCNN takes; which it does not, and why."""
    other = step_on(SCNN_NETWORK, MEAN, *SCNN)
    names = frozenset(other.layers)
    rows: list[Row] = []
    for column in ("FP", "BP", "WG"):
        passes, _ = COLUMNS[column]
        its, mine, whole = other.of(passes, names), ours.of(passes, names), ours.of(passes)
        said = f"{100 * mine.macs / whole.macs:.0f} % of the MACs, the layers that it takes"
        refused = [why for name, why in other.refused.items() if other.passes[name] == column]
        if refused:
            said += f"; {len(refused)} refused, the first: {refused[0]}"
        rows.append(
            _row(
                group,
                f"{SCNN_NETWORK}.scnn.{column}",
                f"SCNN, 8 PEs of 16 multipliers: cycles of {column}",
                its.cycles / mine.cycles,
                said,
            )
        )
    return rows


__all__ = [
    "EPOCHS",
    "MACHINE",
    "NETWORKS",
    "SHOWN",
    "epoch_rows",
    "machine_rows",
    "shares",
    "speedup",
]
