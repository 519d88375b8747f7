"""How long layers take where only densities are known: an estimate, of no drawn operands.

What a dot product takes is sampled once for a density: pairs scattered evenly, independent of one
another.  All else is as the model has it: tiles, blocks, loads, pipelines; of queues the mean, and
what the longest of so many PEs has beyond it if outputs are independent.  Clusters of zeros, and
columns that are denser than others, are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import log, sqrt
from typing import Any

import numpy as np

from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machine.model import MatrixLayer
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.sparsetrain.kernels import STEPPED, block_work
from archsim.machines.sparsetrain.tiling import (
    BLOCK_COLUMNS,
    COLUMNS,
    FIRST,
    LAST,
    ROWS,
    STEPS,
    cut_of,
)
from archsim.machines.sparsetrain.timing import DONE, WORDS, block_times
from archsim.machines.sparsetrain.vectors import non_zero
from archsim.numbers import IntArray
from workloads.layers import Network

SAMPLE = 256
"""Dot products."""

GRID = 64
"""Densities of pairs are rounded to so many of one."""


@dataclass(frozen=True)
class Estimate:
    """Of a design; what was sampled is kept."""

    design: SparseTrain
    _sampled: dict[tuple[int, int], tuple[float, float]] = field(
        default_factory=dict[tuple[int, int], tuple[float, float]], repr=False
    )

    def cycles(self, network: Network) -> dict[str, int]:
        """Of each matrix layer by name, with the network's densities.

        Raises `InputError` for a network of which none are known.
        """
        if not network.densities:
            raise InputError(f"{network.name}: no densities are known that cycles could be told of")
        return {layer.name: self.layer(network, layer) for layer in network.matrix_layers}

    def layer(self, network: Network, layer: MatrixLayer) -> int:
        """Cycles of a layer."""
        design, problem = self.design, problem_of(layer)
        known = network.densities_of(layer)
        share = known.output if design.skip_outputs else 1.0
        if share == 0:
            return 0
        blocks = cut_of(design, problem).blocks
        depth = problem.channels * problem.kernel_height * problem.kernel_width
        loads = self._loads(blocks, (known.ifmap * known.weight, share), depth)
        times = block_times(loads)
        return int(times[-1, DONE] + loads[-1, WORDS]) + 2

    def _loads(self, blocks: IntArray, shares: tuple[float, float], depth: int) -> IntArray:
        """As `LayerWork.loads`.  shares: of pairs that are not zero, of outputs that are needed."""
        design, (pairs, needed) = self.design, shares
        filled = depth / (-(-depth // design.lanes) * design.lanes)
        masked = needed < 1
        rows, columns, steps = (blocks[:, at] for at in (ROWS, COLUMNS, STEPS))
        found = [self._dot(round(pairs * filled * GRID), int(one)) for one in np.unique(steps)]
        of_steps: Any = np.searchsorted(np.unique(steps), steps)
        mean, spread = (np.array(side)[of_steps] for side in zip(*found, strict=True))
        outputs: Any = rows * np.ceil(columns / design.pes) * needed
        uneven = sqrt(2 * log(design.pes)) if design.pes > 1 else 0.0
        deviation: Any = np.sqrt(outputs * np.square(spread))
        if not design.move_work:
            deviation = np.sqrt(outputs * (np.square(spread) + (1 - needed) * np.square(mean)))
        work: Any = outputs * mean + uneven * deviation
        sets: Any = rows * np.ceil(columns / design.pes) * (1 - (1 - needed) ** design.pes)
        return np.stack(
            [
                rows * steps,
                columns * steps,
                np.where((blocks[:, FIRST] == 1) & masked, rows, 0),
                np.rint(work).astype(np.int64),
                np.where(blocks[:, LAST] == 1, np.rint(sets).astype(np.int64), 0),
            ],
            axis=1,
        )

    @cached_property
    def _window(self) -> tuple[IntArray, IntArray, int, int]:
        places = self.design.window
        ahead = np.array([place.ahead for place in places], np.int64)
        aside = np.array([place.aside % self.design.lanes for place in places], np.int64)
        return ahead, aside, self.design.window_rows, self.design.lanes

    def _dot(self, density: int, steps: int) -> tuple[float, float]:
        """Mean and deviation of the cycles of a dot product, its pairs at density / `GRID`."""
        known = self._sampled.get((density, steps))
        if known is not None:
            return known
        lanes, draws = self.design.lanes, np.random.default_rng([density, steps])
        flags = draws.random((1, SAMPLE, steps * lanes)) < density / GRID
        blocks = np.zeros((SAMPLE, BLOCK_COLUMNS), np.int64)
        blocks[:, 1] = np.arange(SAMPLE)
        blocks[:, (ROWS, COLUMNS)] = 1
        blocks[:, STEPS] = steps
        ones = np.full((1, 1, steps), (1 << lanes) - 1, np.uint64)
        nobody = (np.zeros((0, 0, 0), np.bool_), np.zeros((1, 1, 1), np.int64), SAMPLE)
        found = block_work(non_zero(flags, lanes), ones, nobody, blocks, self._window, 1)
        taken = found[:, STEPPED].astype(np.float64)
        self._sampled[density, steps] = float(taken.mean()), float(taken.std())
        return self._sampled[density, steps]


__all__ = ["GRID", "SAMPLE", "Estimate"]
