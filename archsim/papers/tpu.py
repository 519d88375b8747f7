"""Jouppi et al., ISCA 2017: the first TPU.

The design is compared by its arithmetic and by the paper's own example; the six workloads by
shapes reconstructed from their totals (`tpu_shapes`); the sensitivities by variants of the design.
"""

from __future__ import annotations

from archsim.designs.systolic import TPU_V1
from archsim.papers import tpu_measure as measure
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from archsim.papers.tpu_shapes import workload_names

NOTES = (
    "Note 1. The paper publishes no layer shapes. They are reconstructed from Table 1: equal "
    "square FC layers; CNN0 as 19 × 19 maps (2888 / 8 = 19²) and 3 × 3 kernels; CNN1 the same, "
    "its weights split by its 1750 operations a weight byte into 14.9 M in 72 convolutions and "
    "85.1 M in 4 FC layers. Nothing was chosen by its result.",
    "Note 2. The core is the matrix unit, its memories and the output stage. Sigmoid and tanh, "
    "pooling, the vector layers, the host link and synchronisation are outside, and a network is "
    "simulated a layer at a time; so most of the paper's non-matrix cycles are missing here, and "
    "the other shares are larger in proportion.",
    "Note 3. Lowered: each convolution as one matrix product, all images and the whole R·S·C "
    "window at once, as the TPU's tiles of 256 × 256 weights take them. The core's own tiles of "
    "a convolution lie within one image, and its folds within one kernel row.",
    "Note 4. Cycles are attributed in the schedule with the DDR3, as the TPU's counters do: "
    "weight stall while weights are not on the chip, weight shift while they are shifted in with "
    "nothing streaming, RAW stalls from a layer's last input to its last output.",
    "Note 5. The paper's rates (row 9) are not its useful MACs (row 2) times 92 TOPS. Of the LSTMs "
    "they are half of that, as if these ran at the half speed of 16-bit activations; "
    "they are simulated with 8 bits.",
)

FC_NAMES = ("MLP0", "MLP1", "LSTM0", "LSTM1")
CNN_NAMES = ("CNN0", "CNN1")

_PUBLISHED = ("active", "useful", "unused", "weight_stall", "weight_shift", "non_matrix", "tops")

_OUTSIDE = {
    "non_matrix": "activation, pooling, host link and synchronisation are outside (note 2)",
    "raw": "only the drain of array and output stage ends a layer here (note 2)",
    "input": "the host link is not modelled: inputs come at 256 bytes a cycle (note 2)",
}


def compare(_progress: Progress = silent) -> Comparison:
    """The paper's figures, ours beside them."""
    figures = load_figures("tpu")
    rows = [*_design_rows(figures), *_example_rows(figures)]
    for name in workload_names():
        rows += _table3_rows(figures, name, lowered=False)
    for name in CNN_NAMES:
        rows += _table3_rows(figures, name, lowered=True)
    for lowered in (False, True):
        rows += _sensitivity_rows(figures, lowered=lowered)
    return Comparison(
        paper="tpu", title=str(read_paper("tpu")["title"]), rows=tuple(rows), notes=NOTES
    )


def _design_rows(figures: dict[str, Figure]) -> list[Row]:
    command = "a command between tiles costs a cycle or two, so slightly below 2 · 256² · 700 MHz"
    return [
        figures["peak"].row(measure.peak_tops(), command),
        figures["ridge"].row(float(measure.ridge_point()), "fewest rows at which DDR3 costs none"),
        figures["fetch"].row(measure.fetch_cycles(), "a burst of 256 bytes each 5.27 cycles"),
        figures["shift"].row(measure.shift_cycles(), "a fold of one row, weights on the chip"),
        figures["row"].row(measure.cycles_per_row(), "from 512 rows to 1024"),
    ]


def _example_rows(figures: dict[str, Figure]) -> list[Row]:
    rows: list[Row] = []
    partial = "of a partly filled tile the core fetches only the {kept} rows in use, the TPU all"
    for side in (256, 512):
        ours = measure.worked_example(side)
        rows += [
            figures[f"steps{side}"].row(float(ours.steps), "folds"),
            figures[f"time{side}"].row(ours.microseconds, partial.format(kept=600 % side)),
            figures[f"whole{side}"].row(
                ours.whole_microseconds, "weights padded with zeros to whole tiles"
            ),
        ]
    useful = measure.worked_example(256).useful_percent
    rows.append(figures["useful600"].row(useful, "600² weights in 9 tiles"))
    return rows


def _causes(figures: dict[str, Figure], name: str, ours: measure.Shares, key: str) -> list[str]:
    """What we measure that moves a row of Table 3 in the direction in which it is off."""
    if key in _OUTSIDE:
        return [_OUTSIDE[key]]
    published = {row: figures[f"{name}.{row}"].value or 0.0 for row in _PUBLISHED}
    above = (ours.tops if key == "tops" else ours.percent(key)) > published[key]
    causes: list[str] = []
    folds, least = ours.attribution.folds, ours.least_folds
    if folds > 1.05 * least and above == (key in ("active", "unused", "weight_shift")):
        causes.append(f"{folds:,} folds where {least:,} of whole tiles would do")
    refetched = ours.weight_sweeps > 1.2 and ours.percent("weight_stall") > 5
    if refetched and above == key.startswith("weight_"):
        causes.append(f"each weight is fetched {ours.weight_sweeps:.1f} times")
    here = 100 * ours.percent("useful") / ours.percent("active")
    there = 100 * published["useful"] / published["active"]
    if key in ("useful", "unused", "tops") and (here > there) == (above == (key != "unused")):
        causes.append(f"an active cycle is {here:.0f} % useful (paper {there:.0f} %)")
    if key == "tops":
        peak = 2 * TPU_V1.macs_per_cycle * TPU_V1.clock_hz / 1e12
        from_row2 = published["useful"] / 100 * peak
        causes.append(f"the paper's useful MACs would be {from_row2:.1f} TOPS (note 5)")
    if key.startswith("weight_"):
        share = 100 * ours.percent(key) / (100 - ours.percent("non_matrix"))
        matrix = 100 * published[key] / (100 - published["non_matrix"])
        causes.append(f"of matrix cycles alone {share:.0f} % (paper {matrix:.0f} %)")
    missing = published["non_matrix"] - ours.percent("non_matrix")
    if missing > 1 and above:
        causes.append(f"{missing:.0f} points of non-matrix cycles are missing (note 2)")
    return causes


def _table3_rows(figures: dict[str, Figure], name: str, *, lowered: bool) -> list[Row]:
    ours = measure.shares(name, lowered=lowered)
    keys = ("active", "useful", "unused", "weight_stall", "weight_shift", "non_matrix",
            "raw", "input", "tops")  # fmt: skip
    rows: list[Row] = []
    for key in keys:
        figure = figures.get(f"{name}.{'lowered_' if lowered else ''}{key}")
        if figure is None:
            continue
        value = ours.tops if key == "tops" else ours.percent(key)
        reason = "reconstructed shapes (note 1)"
        if lowered:
            reason += ", lowered (note 3)"
        row = figure.row(value, reason)
        if not row.within:
            row = figure.row(value, "; ".join([reason, *_causes(figures, name, ours, key)]))
        rows.append(row)
    return rows


def _listed(speedups: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in speedups.items())


def _sensitivity_rows(figures: dict[str, Figure], *, lowered: bool) -> list[Row]:
    gddr5 = measure.GDDR5_BANDWIDTH
    asked = {
        "memory4": (measure.faster(memory=4), workload_names()),
        "clock4.fc": (measure.faster(clock=4), FC_NAMES),
        "clock4.cnn": (measure.faster(clock=4), CNN_NAMES),
        "gddr5": (measure.faster(memory=gddr5), workload_names()),
        "gddr5.clock": (measure.faster(memory=gddr5, clock=1.5), workload_names()),
        "array512": (measure.faster(side=512), workload_names()),
    }
    rows: list[Row] = []
    for key, (design, names) in asked.items():
        figure = figures.get("lowered_" * lowered + key)
        if figure is None:
            continue
        speedups = measure.speedups(design, names, lowered=lowered)
        mean = measure.geometric_mean(speedups)
        reason = f"geometric mean of {_listed(speedups)}"
        if figure.row(mean, reason).within is False:
            reason += f"; {_why_sensitivity(key, lowered)}"
        rows.append(figure.row(mean, reason + "; reconstructed shapes (note 1)"))
    return rows


def _why_sensitivity(key: str, lowered: bool) -> str:
    sweeps = [measure.shares(name, lowered=lowered).weight_sweeps for name in CNN_NAMES]
    fetched = f"the CNNs' weights are fetched {sweeps[0]:.1f} and {sweeps[1]:.1f} times"
    if key == "memory4":
        return "the paper's 3 is a weighted mean, in which the CNNs count 5 %, here a third"
    if key == "clock4.cnn":
        return f"{fetched}, so that the memory bounds them sooner than the paper's"
    missing = "non-matrix cycles, which gain nothing, are missing (note 2)"
    return missing if lowered else f"{fetched}; {missing}"
