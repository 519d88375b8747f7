"""What the model says of the TPU: measured by simulating, never typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, prod

from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import TPU_V1, Systolic
from archsim.memory import OffChip, Plain
from archsim.papers.stalls import Attribution, attribute
from archsim.papers.tpu_shapes import workload
from archsim.result import LayerResult
from archsim.simulate import simulate
from archsim.tiled.timing import time_layer
from workloads.layers import Conv2d, MatMul

FOLDS = 32
"""Folds of the longer of two layers whose difference is measured."""

UNLIMITED: Systolic = replace(TPU_V1, off_chip=OffChip())
"""The TPU with every port of the core at a word a cycle."""

ARRAY_ALONE: Systolic = replace(
    UNLIMITED,
    ifmap_memory=Plain(capacity_bytes=32 * 2**20),
    weight_memory=Plain(capacity_bytes=2 * FOLDS * TPU_V1.macs_per_cycle),
)
"""And with the whole layer in one tile: the array's time, without commands between the folds."""

GDDR5_BANDWIDTH = 1350 / 250
"""Times DDR3's: the paper's TPU′ has its ridge point at 250 instead of 1350 (section 7)."""


def _stacks(design: Systolic, m: int) -> tuple[LayerResult, LayerResult]:
    """m rows against a stack of half of FOLDS, and of FOLDS whole weight tiles.

    Their difference is FOLDS / 2 folds, so start and end cancel.  A command covers as many folds
    as half of the weight scratchpad holds.
    """
    results: list[LayerResult] = []
    for folds in (FOLDS // 2, FOLDS):
        layer = MatMul(name="stack", m=m, n=design.columns, k=folds * design.rows)
        tiling = Tiling(
            pixel_rows=1,
            pixel_columns=m,
            filters=design.columns,
            channels=min(layer.k, design.depth("weight") // design.rows * design.rows),
        )
        results.append(time_layer(design, layer, tiling))
    return results[0], results[1]


def cycles_per_fold(design: Systolic, m: int) -> float:
    """Cycles from one fold of m rows to the next, whatever holds it up."""
    few, many = _stacks(design, m)
    return (many.cycles - few.cycles) / (many.folds - few.folds)


def array_cycles_per_fold(m: int) -> float:
    """The same, of the array alone: weights and inputs are on the chip."""
    few, many = _stacks(ARRAY_ALONE, m)
    busy = [sum(one.where[cause] for cause in ("computing", "filling")) for one in (few, many)]
    return (busy[1] - busy[0]) / (many.folds - few.folds)


def peak_tops() -> float:
    """Operations a second, 2 a MAC, with more rows than hide the fetch of weights."""
    rows = TPU_V1.depth("accumulator")
    macs = TPU_V1.macs_per_cycle * rows
    return 2 * macs / cycles_per_fold(TPU_V1, rows) * TPU_V1.clock_hz / 1e12


def ridge_point() -> int:
    """The fewest rows, hence MACs per weight byte, at which the memory costs no cycle."""
    low, high = 1, TPU_V1.depth("accumulator")
    while low < high:
        middle = (low + high) // 2
        if cycles_per_fold(TPU_V1, middle) > cycles_per_fold(UNLIMITED, middle):
            low = middle + 1
        else:
            high = middle
    return low


def fetch_cycles() -> float:
    """To bring a tile of weights: a fold of so few rows that nothing else counts."""
    return cycles_per_fold(TPU_V1, 8)


def shift_cycles() -> float:
    """To shift a tile of weights in: a fold of one row, the weights being on the chip."""
    return array_cycles_per_fold(1)


def cycles_per_row() -> float:
    """More cycles of a fold for each more row of its B × 256 input, the weights being there."""
    few, many = 512, 1024
    return (array_cycles_per_fold(many) - array_cycles_per_fold(few)) / (many - few)


def with_array(side: int) -> Systolic:
    """The TPU with a side × side array: as many weight tiles, internal paths as wide as a row."""
    return replace(
        TPU_V1,
        rows=side,
        columns=side,
        weight_memory=Plain(capacity_bytes=4 * side * side),
        off_chip=replace(TPU_V1.off_chip, bytes_per_cycle=float(side), burst_bytes=side),
    )


@dataclass(frozen=True, kw_only=True)
class Example:
    """600 × 600 weights against 96 rows: folds, µs for one more matrix, useful share of a fold."""

    steps: int
    microseconds: float
    whole_microseconds: float
    useful_percent: float


def worked_example(side: int) -> Example:
    """The paper's 600 × 600 example on a side × side array.

    The time of one more matrix, in a stream of them, as the paper counts it: by stacking them
    along the filters.  `whole_microseconds` is with the weights padded to whole tiles.
    """
    design, size, rows = with_array(side), 600, 96
    layer = MatMul(name="600 × 600", m=rows, n=size, k=size)
    tiling = Tiling(pixel_rows=1, pixel_columns=rows, filters=side, channels=side)
    timed = time_layer(design, layer, tiling)
    whole = ceil(size / side) * side

    def time(channels: int) -> float:
        padded = replace(layer, k=channels, n=whole)
        stacked = replace(padded, n=9 * whole)
        cycles = [time_layer(design, one, tiling).cycles for one in (padded, stacked)]
        return (cycles[1] - cycles[0]) / 8 / design.clock_hz * 1e6

    return Example(
        steps=timed.folds,
        microseconds=time(size),
        whole_microseconds=time(whole),
        useful_percent=100 * layer.macs / (timed.where["computing"] * design.macs_per_cycle),
    )


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Table 3's rows for one workload: per cent of the cycles, and TOPS."""

    attribution: Attribution
    design: Systolic
    least_folds: int
    weights: int

    def percent(self, name: str) -> float:
        """A row of Table 3 by its key in the data file."""
        part = self.attribution
        array = self.design.macs_per_cycle
        cycles = {
            "active": part.active,
            "useful": part.macs / array,
            "unused": part.active - part.macs / array,
            "weight_stall": part.weight_stall,
            "weight_shift": part.weight_shift,
            "non_matrix": part.ifmap_stall + part.drain + part.other,
            "raw": part.drain,
            "input": part.ifmap_stall,
        }
        return 100 * cycles[name] / part.cycles

    @property
    def tops(self) -> float:
        """2 operations a useful MAC."""
        part = self.attribution
        return 2 * part.macs / part.cycles * self.design.clock_hz / 1e12

    @property
    def weight_sweeps(self) -> float:
        """How often each weight is fetched."""
        return self.attribution.weight_bytes / self.weights


def _least_folds(design: Systolic, layer: Conv2d | MatMul) -> int:
    """Folds if no tile is smaller than the array: ⌈K / rows⌉ · ⌈N / columns⌉ a pass over 2048."""
    if isinstance(layer, MatMul):
        k, n, m = layer.k, layer.n, layer.m
    else:
        k = layer.channels * layer.kernel_height * layer.kernel_width
        n, m = layer.filters, layer.batch * layer.ofmap_height * layer.ofmap_width
    passes = ceil(m / design.depth("accumulator"))
    return passes * ceil(k / design.rows) * ceil(n / design.columns)


def whole_tiles(layer: Conv2d | MatMul) -> Tiling | None:
    """A matrix product by hand, as the TPU takes it: all rows, and whole tiles of weights.

    A column of filters at a time, so that only the last tile of a row and of a column is partly
    filled; as many rows as the accumulators hold.  None for a convolution.
    """
    if not isinstance(layer, MatMul):
        return None
    half = TPU_V1.depth("weight") // TPU_V1.rows * TPU_V1.rows
    return Tiling(
        pixel_rows=1,
        pixel_columns=min(layer.m, TPU_V1.depth("accumulator")),
        filters=min(layer.n, TPU_V1.columns),
        channels=min(layer.k, half),
    )


def _automatic(_: Conv2d | MatMul) -> Tiling | None:
    """No tiling by hand."""
    return None


@cache
def shares(name: str, *, lowered: bool = False, by_hand: bool = False) -> Shares:
    """Table 3 of one workload; by_hand: matrix products in `whole_tiles`."""
    network = workload(name, lowered=lowered)
    return Shares(
        attribution=attribute(TPU_V1, network, whole_tiles if by_hand else _automatic),
        design=TPU_V1,
        least_folds=sum(_least_folds(TPU_V1, layer) for layer in network.matrix_layers),
        weights=network.weight_elements,
    )


def faster(*, memory: float = 1, clock: float = 1, side: int = 256) -> Systolic:
    """The TPU with its memory bandwidth and its clock so many times higher, and another array."""
    base = with_array(side)
    weights = base.off_chip.weight_bytes_per_cycle or 0.0
    return replace(
        base,
        clock_hz=base.clock_hz * clock,
        off_chip=replace(base.off_chip, weight_bytes_per_cycle=weights * memory / clock),
    )


def speedups(design: Systolic, names: tuple[str, ...], *, lowered: bool) -> dict[str, float]:
    """Time on the TPU over time on `design`, by workload."""
    ratios: dict[str, float] = {}
    for name in names:
        network = workload(name, lowered=lowered)
        before, after = simulate(TPU_V1, network), simulate(design, network)
        ratios[name] = before.seconds / after.seconds
    return ratios


def with_idle(speedups: dict[str, float], idle: Mapping[str, float]) -> dict[str, float]:
    """Speed-ups where a part of the time (by workload, 0 to 1) gains nothing."""
    return {
        name: 1 / (idle[name] + (1 - idle[name]) / speedup) for name, speedup in speedups.items()
    }


def weighted_mean(values: dict[str, float], use: Mapping[str, float]) -> float:
    """The mean by share of use; the two workloads of a kind (MLP0, MLP1) have the same."""
    weights = {name: use[name.rstrip("01")] for name in values}
    return sum(weights[name] * value for name, value in values.items()) / sum(weights.values())


def geometric_mean(values: dict[str, float]) -> float:
    """The mean that the paper uses for ratios."""
    return prod(values.values()) ** (1 / len(values))
