"""How long layers take where only densities are known: an estimate, of no drawn operands.

What a dot product takes is sampled once for a density: pairs scattered evenly, independent of one
another.  All else is as the model has it: tiles, blocks, loads, pipelines; of queues the mean, and
what the longest of so many PEs has beyond it if outputs are independent.  Clusters of zeros, and
columns that are denser than others, are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from typing import Any

import numpy as np

from archsim.errors import InputError
from archsim.layer.problem import problem_of
from archsim.machine.model import MatrixLayer
from archsim.machines.sparsetrain.block_work import STEPPED, block_work
from archsim.machines.sparsetrain.cutting import cut_of
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.sparsetrain.fields import fields_of
from archsim.machines.sparsetrain.tiling import (
    BLOCK_COLUMNS,
    COLUMNS,
    FIRST,
    LAST,
    ROW,
    ROWS,
    STEPS,
    Cut,
    vectors_of,
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
    _sampled: dict[tuple[int, ...], tuple[float, float]] = field(
        default_factory=dict[tuple[int, ...], tuple[float, float]], repr=False
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
        cut = cut_of(design, problem, pairs=known.ifmap * known.weight)
        depth = problem.channels * problem.kernel_height * problem.kernel_width
        operands = (known.weight, known.ifmap) if cut.turned else (known.ifmap, known.weight)
        loads = self._loads(cut, operands, share, depth)
        times = block_times(loads, design.pipeline_cycles)
        return int(times[-1, DONE] + loads[-1, WORDS]) + 2

    def _loads(
        self, cut: Cut, operands: tuple[float, float], needed: float, depth: int
    ) -> IntArray:
        """As `LayerWork.loads`.  operands: densities of rows and columns; needed: of outputs."""
        design, blocks, segments = self.design, cut.blocks, cut.segments
        filled = depth * segments / (cut.steps * design.lanes)
        masked = needed < 1
        rows, columns, steps = (blocks[:, at] for at in (ROWS, COLUMNS, STEPS))
        row, column, output = operands[0] * operands[1] * filled, 1.0, 1.0
        if segments > 1:
            row, column, output = operands[0] * filled, operands[1], needed
        drawn = round(row * GRID), round(column * GRID), round(output * GRID)
        found = [self._dot(drawn, segments, int(one)) for one in np.unique(steps)]
        at_once = 1 - (1 - needed) ** segments
        of_steps: Any = np.searchsorted(np.unique(steps), steps)
        mean, spread = (np.array(side)[of_steps] for side in zip(*found, strict=True))
        outputs: Any = rows * np.ceil(columns / (design.pes * segments)) * at_once
        uneven = sqrt(2 * log(design.pes)) if design.pes > 1 else 0.0
        deviation: Any = np.sqrt(outputs * np.square(spread))
        if not design.move_work:
            deviation = np.sqrt(outputs * (np.square(spread) + (1 - at_once) * np.square(mean)))
        work: Any = outputs * mean + uneven * deviation
        sets: Any = rows * np.ceil(columns / design.pes) * (1 - (1 - needed) ** design.pes)
        return np.stack(
            [
                rows * steps,
                vectors_of(columns, design.pes, segments) * steps,
                np.where((blocks[:, FIRST] == 1) & masked, rows, 0),
                np.rint(work).astype(np.int64),
                np.where(blocks[:, LAST] == 1, np.rint(sets).astype(np.int64), 0),
            ],
            axis=1,
        )

    def _dot(self, shares: tuple[int, int, int], segments: int, steps: int) -> tuple[float, float]:
        """Mean and deviation of the cycles of a dot product, or of one in each segment.

        shares: of `GRID`, of a row and of columns what is not zero, of outputs what is needed; of
        the outputs in segments one is.
        """
        key = (*shares, segments, steps)
        known = self._sampled.get(key)
        if known is not None:
            return known
        row, column, needed = (share / GRID for share in shares)
        lanes = self.design.lanes // segments
        draws = np.random.default_rng([shares[0], steps])
        rows = draws.random((1, SAMPLE, steps * lanes)) < row
        columns = draws.random((1, segments, steps * lanes)) < column
        asked = draws.random((1, SAMPLE, segments)) < needed
        asked[0, np.arange(SAMPLE), draws.integers(segments, size=SAMPLE)] |= ~asked[0].any(axis=1)
        blocks = np.zeros((SAMPLE, BLOCK_COLUMNS), np.int64)
        blocks[:, ROW] = np.arange(SAMPLE)
        blocks[:, (ROWS, COLUMNS)] = 1, segments
        blocks[:, STEPS] = steps
        everywhere = np.uint64(sum(1 << at * lanes for at in range(segments)))
        outputs = (asked, np.arange(segments).reshape(1, 1, segments), SAMPLE)
        words = non_zero(rows, lanes) * everywhere, non_zero(columns, lanes)
        fields = fields_of(self.design, segments)
        taken = block_work(*words, outputs, blocks, fields, 1)[:, STEPPED].astype(np.float64)
        self._sampled[key] = float(taken.mean()), float(taken.std())
        return self._sampled[key]


__all__ = ["GRID", "SAMPLE", "Estimate"]
