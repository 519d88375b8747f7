"""Other ways to the figures of a layer on the training machine: what values say by themselves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archsim.machine.model import MatrixLayer
from archsim.machines.sparsetrain.block_work import LEAST, OUTPUTS, PRODUCTS, TAKEN_ROWS
from archsim.machines.sparsetrain.model import SparseTrainAnswer
from archsim.machines.sparsetrain.tiling import GROUP, ROW, ROWS, STEP, STEPS
from archsim.machines.sparsetrain.work import LayerWork
from archsim.numbers import IntArray, wrap
from rtl.apart import Pair, first_apart
from rtl.layer_verification import LayerCase
from rtl.plain_sums import plain_sums


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainCase(LayerCase):
    """A layer of the training machine."""

    def figures_apart(self) -> Mapping[str, Pair]:
        """Those of every layer; cycles by blocks, where no port waits, and by words; sums by
        vectors and tap by tap; what PEs do for blocks, and what pairs of operands say."""
        free: SparseTrainAnswer = self.waiting({}).answer()  # pyright: ignore[reportAssignmentType]
        pairs: dict[str, Pair] = {}
        if len(free.crossed["ofmap"]):
            pairs["cycles by blocks and words"] = free.cycles, int(free.crossed["ofmap"][-1]) + 1
        if not self.design.floating:
            pairs["sums by vectors and by taps"] = _sums(self.layer, free)
        plainly = _plainly(free.work)
        for name, at in PLAINLY.items():
            found = free.work.work[:, at]
            apart = np.flatnonzero(found != plainly[name])[:1]
            if len(apart):
                two = int(found[apart[0]]), int(plainly[name][apart[0]])
                pairs[f"{name} of blocks and of pairs"] = two
        return {**super().figures_apart(), **{a: b for a, b in pairs.items() if b[0] != b[1]}}


def _sums(layer: MatrixLayer, free: SparseTrainAnswer) -> Pair:
    found, design, needed = free.ofmap, free.design, free.taken.needed
    plain = wrap(plain_sums(layer, free.taken), design.accumulator_bits).reshape(found.shape)
    if needed is not None and design.skip_outputs:
        plain = plain * needed.reshape(found.shape)
    return first_apart(found, plain)


PLAINLY = {"outputs": OUTPUTS, "products": PRODUCTS, "rows taken": TAKEN_ROWS,
           "cycles without bounds": LEAST}  # fmt: skip
"""Of a block: where the model has it."""


def _plainly(work: LayerWork) -> dict[str, IntArray]:
    """Of every block: outputs that are computed, their pairs of values that are not zero; and of
    all that a PE computes side by side steps, and the steps that their pairs fill."""
    blocks, lanes = work.blocks, work.step_lanes
    found = {name: np.zeros(len(blocks), np.int64) for name in PLAINLY}
    rows, columns = (_not_zero(one, floating=work.design.floating) for one in work.vectors)
    for number, block in enumerate(blocks):
        group, taken = block[GROUP], work.columns_of(block)
        here = slice(block[ROW], block[ROW] + block[ROWS])
        depth = slice(block[STEP] * lanes, (block[STEP] + block[STEPS]) * lanes)
        needed = np.ones((block[ROWS], len(taken)), np.int64)
        if work.needed is not None:
            needed = work.needed[group, here][:, taken].astype(np.int64)
        pairs = rows[group, here, depth] @ columns[group, taken, depth].T * needed
        computed, side_by_side = (_by_pe(work, one) for one in (needed, pairs))
        filled = np.maximum(-(-side_by_side // work.design.lanes), computed > 0)
        found["outputs"][number] = needed.sum()
        found["products"][number] = pairs.sum()
        found["rows taken"][number] = (computed > 0).sum() * block[STEPS]
        found["cycles without bounds"][number] = filled.sum()
    return found


def _by_pe(work: LayerWork, values: IntArray) -> IntArray:
    """Sums over the columns that a PE has in its segments at once, [rows, sets, PEs]."""
    pes, segments = work.design.pes, work.cut.segments
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % (pes * segments))))
    return padded.reshape(len(values), -1, segments, pes).sum(axis=2)


def _not_zero(values: npt.NDArray[np.integer], *, floating: bool) -> IntArray:
    """1 for a value that is not zero; of floats either zero is one."""
    return ((values & 0x7FFF if floating else values) != 0).astype(np.int64)


__all__ = ["TrainCase"]
