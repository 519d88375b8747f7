"""Jouppi et al., ISCA 2017: the first TPU.

The design is compared by its arithmetic and by the paper's own example; the six workloads by
shapes reconstructed from their totals (`tpu_shapes`); the sensitivities by variants of the design.
"""

from __future__ import annotations

from dataclasses import replace

from archsim.machines.systolic.design import TPU_V1, Systolic
from archsim.papers import tpu_measure as measure
from archsim.papers.evidence import Measured, count, switch
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
        padded = switch(
            "weights padded to whole tiles",
            ours.whole_microseconds,
            "archsim.papers.tpu_measure.worked_example",
        )
        remark = partial.format(kept=600 % side)
        rows += [
            figures[f"steps{side}"].row(float(ours.steps), "folds"),
            figures[f"time{side}"].row(ours.microseconds, remark, measured=[padded]),
            figures[f"whole{side}"].row(
                ours.whole_microseconds, "weights padded with zeros to whole tiles"
            ),
        ]
    useful = measure.worked_example(256).useful_percent
    rows.append(figures["useful600"].row(useful, "600² weights in 9 tiles"))
    return rows


def _value(ours: measure.Shares, key: str) -> float:
    return ours.tops if key == "tops" else ours.percent(key)


def _evidence(figures: dict[str, Figure], name: str, key: str, *, lowered: bool) -> list[Measured]:
    """A row of Table 3 with causes taken away, and what was counted."""
    ours, call = measure.shares(name, lowered=lowered), "archsim.papers.tpu_measure.shares"
    hand = measure.shares(name, lowered=lowered, by_hand=True)
    beside = _beside(figures, name, ours)
    found = [switch("with the paper's non-matrix cycles", beside * _value(ours, key), call)]
    if hand.attribution != ours.attribution:
        both = _beside(figures, name, hand) * _value(hand, key)
        found.insert(0, switch("whole tiles by hand", _value(hand, key), f"{call}(by_hand)"))
        found.append(switch("both", both, f"{call}(by_hand)"))
    if not lowered and name in CNN_NAMES:
        other = measure.shares(name, lowered=True)
        value = _beside(figures, name, other) * _value(other, key)
        found.append(switch("lowered (note 3)", _value(other, key), f"{call}(lowered)"))
        found.append(switch("lowered, with its non-matrix cycles", value, f"{call}(lowered)"))
    found = [one for one in found if _helps(figures, name, key, ours, one, lowered=lowered)]
    if key == "tops":
        peak = 2 * TPU_V1.macs_per_cycle * TPU_V1.clock_hz / 1e12
        useful = (figures[f"{name}.useful"].value or 0.0) / 100 * peak
        found.append(
            count("the paper's own useful MACs (note 5)", useful, "TOPS", "Table 3, row 2")
        )
    return found


def _helps(
    figures: dict[str, Figure],
    name: str,
    key: str,
    ours: measure.Shares,
    one: Measured,
    *,
    lowered: bool,
) -> bool:
    paper = figures[f"{name}.{'lowered_' if lowered else ''}{key}"]
    value, other = _value(ours, key), one.value
    if paper.complement:
        value, other = 100 - value, 100 - other
    return replace(one, value=other).explains(paper.value or 0.0, value)


def _beside(figures: dict[str, Figure], name: str, ours: measure.Shares) -> float:
    """What our shares are multiplied by if as many cycles are outside the matrix as the paper's."""
    outside = figures[f"{name}.non_matrix"].value or 0.0
    return (100 - outside) / (100 - ours.percent("non_matrix"))


def _table3_rows(figures: dict[str, Figure], name: str, *, lowered: bool) -> list[Row]:
    ours = measure.shares(name, lowered=lowered)
    remark = "reconstructed shapes (note 1)" + (", lowered (note 3)" if lowered else "")
    rows: list[Row] = []
    for key in KEYS:
        figure = figures.get(f"{name}.{'lowered_' if lowered else ''}{key}")
        if figure is None:
            continue
        value = _value(ours, key)
        if key in _OUTSIDE:
            rows.append(figure.row(value, remark, missing=_OUTSIDE[key]))
            continue
        measured = _evidence(figures, name, key, lowered=lowered)
        rows.append(figure.row(value, remark, measured=measured, missing=SHAPES))
    return rows


KEYS = (
    "active", "useful", "unused", "weight_stall", "weight_shift", "non_matrix", "raw", "input",
    "tops",
)  # fmt: skip
"""Rows of Table 3."""

SHAPES = "the workloads' own layers are not published (note 1)"


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
        reason = f"geometric mean of {_listed(speedups)}; reconstructed shapes (note 1)"
        if figure.row(mean, missing="?").within is not False:
            rows.append(figure.row(mean, reason))
            continue
        measured = _why_sensitivity(figures, key, (design, names), speedups, lowered=lowered)
        rows.append(figure.row(mean, reason, measured=measured, missing=SHAPES))
    return rows


def _why_sensitivity(
    figures: dict[str, Figure],
    key: str,
    asked: tuple[Systolic, tuple[str, ...]],
    speedups: dict[str, float],
    *,
    lowered: bool,
) -> list[Measured]:
    """The mean with the paper's idle cycles, with its weights, and of convolutions lowered."""
    call, design, names = "archsim.papers.tpu_measure.speedups", *asked
    idle = {name: (figures[f"{name}.non_matrix"].value or 0.0) / 100 for name in names}
    slowed = measure.with_idle(speedups, idle)
    found = [
        switch("with the paper's non-matrix cycles", measure.geometric_mean(slowed), call),
    ]
    if key == "memory4":
        use = read_paper("tpu")["use"]
        mean = measure.weighted_mean(speedups, use)
        found.append(switch("weighted by use, CNNs 5 %", mean, f"{call}, data file [use]"))
        both = measure.weighted_mean(slowed, use)
        found.append(switch("both", both, f"{call}, data file [use]"))
    if not lowered:
        other = measure.speedups(design, names, lowered=True)
        mean = measure.geometric_mean(other)
        found.append(switch("convolutions lowered (note 3)", mean, f"{call}(lowered)"))
        both = measure.geometric_mean(measure.with_idle(other, idle))
        found.append(switch("lowered, with non-matrix cycles", both, f"{call}(lowered)"))
    return found
