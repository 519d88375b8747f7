"""How many products are sent to banks: those of two values that are not zero, with an output.

Each activation of a list meets each weight of a list, in every group.  An activation's place and a
tap tell whether the output is in the plane, so products are counted by places and taps.
"""

from __future__ import annotations

import numpy as np

from archsim.machines.scnn.addresses import Activations
from archsim.machines.scnn.kernels import BoolArray
from archsim.machines.scnn.mapping import Mapping
from archsim.numbers import IntArray


def products_sent(
    mapping: Mapping, activations: Activations, taps: IntArray, inside: BoolArray
) -> IntArray:
    """[PEs].  taps [lists, taps of a phase]: weights that are not zero, of all groups; inside: of
    each address, whether a product there has an output."""
    seen = inside.reshape(-1, mapping.filter_pitch)[:, 0].astype(np.float64)
    reached = np.zeros((len(taps), len(seen)))
    for number, (row_phase, column_phase) in enumerate(mapping.phases):
        some = slice(number, None, len(mapping.phases))
        offsets = _offsets(mapping, row_phase, column_phase)
        outputs = np.zeros((taps.shape[1], len(seen)))
        for tap, offset in offsets.items():
            outputs[tap, offset:] = seen[: max(len(seen) - offset, 0)]
        reached[some] = taps[some].astype(np.float64) @ outputs
    if not len(seen):  # no input is in a phase
        return np.zeros(mapping.used_pes, np.int64)
    vectors = np.diff(activations.starts)
    first = np.repeat(np.repeat(np.arange(len(taps)), mapping.used_pes) * len(seen), vectors)
    places = np.where(activations.near, first[:, None] + activations.place, 0)
    each = np.take(reached, places) * activations.near
    pes = np.repeat(np.tile(np.arange(mapping.used_pes), len(taps)), vectors)
    found = each @ np.ones(each.shape[1])
    return np.bincount(pes, found, mapping.used_pes).astype(np.int64)


def _offsets(mapping: Mapping, row_phase: int, column_phase: int) -> dict[int, int]:
    """By tap of a phase, from the place of an activation back to that of the output."""
    rows, columns = mapping.rows, mapping.columns
    return {
        r * columns.taps(column_phase) + s: r * columns.addressed_extent + s
        for r in range(rows.taps(row_phase))
        for s in range(columns.taps(column_phase))
    }


__all__ = ["products_sent"]
