"""How the sparse core is proved."""

from collections.abc import Iterable, Mapping
from typing import Any

from archsim.machine.model import MatrixLayer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun
from rtl.benches.bench import Watch
from rtl.conformance import Case
from rtl.coverage.aims import Aim
from rtl.coverage.bins import Bin
from rtl.scnn import core_members
from rtl.sparse_aims import sparse_aims
from rtl.sparse_bins import sparse_bins, sparse_watches
from rtl.sparse_cases import random_sparse_case
from rtl.sparse_conformance import SparseCase
from rtl.verification import LEAST_GATES_PER_PE_BIT, Verification
from workloads.layers import Conv2d

LEAST_GATES_PER_CROSSING_BIT = 0.5
"""Of the AND-OR crossbar, for each product and place of a queue: a cell takes two ways."""


class SparseVerification(Verification):
    """Layers with their operands, pass by pass; several, whose ofmaps may stay."""

    def random_case(self, seed: int, number: int, design: Scnn, longest_words: int) -> Case:
        return random_sparse_case(seed, number, design, longest_words)

    def bins(self, design: Scnn) -> Iterable[Bin]:
        yield from super().bins(design)
        yield from sparse_bins(design)

    def aims(self, design: Scnn) -> Mapping[str, Aim]:
        return sparse_aims()

    def watches(self, design: Scnn) -> tuple[Watch, ...]:
        return sparse_watches()

    def layer_case(self, design: Scnn, layer: MatrixLayer, operands: Any) -> SparseCase:
        """Raises `InputError` for variants of the design that only the model has."""
        core_members(design)
        return SparseCase(design=design, runs=(LayerRun(layer=layer, operands=operands),))

    def small_layer(self, design: Scnn) -> Conv2d:
        """A convolution over a plane of which every PE has its part."""
        return Conv2d(
            name="random",
            channels=8,
            filters=design.filter_group,
            ifmap_height=4 * design.grid_rows,
            ifmap_width=4 * design.grid_columns,
            kernel_height=3,
            kernel_width=3,
            pad_top=1,
            pad_left=1,
            pad_bottom=1,
            pad_right=1,
        )

    def least_gates(self, design: Scnn) -> int:
        pe_bits = design.multipliers * design.operand_bits
        crossings = design.multipliers * design.banks * design.bank_queue
        crossbar = crossings * design.accumulator_bits * LEAST_GATES_PER_CROSSING_BIT
        return pe_bits * LEAST_GATES_PER_PE_BIT + int(crossbar)


__all__ = ["SparseVerification"]
