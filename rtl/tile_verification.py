"""How cores that are walked by tiles are proved, whatever their array is."""

from typing import Any

from archsim.machine.model import MatrixLayer
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from rtl.conformance import Case
from rtl.tile_cases import random_core_case
from rtl.tile_conformance import TileCase, free_services
from rtl.verification import LEAST_GATES_PER_PE_BIT, Verification
from workloads.layers import MatMul


class TileVerification(Verification):
    """Layers in tilings; several one behind the other."""

    def random_case(self, seed: int, number: int, design: CoreDesign, longest_words: int) -> Case:
        return random_core_case(seed, number, design, longest_words)

    def layer_case(self, design: CoreDesign, layer: MatrixLayer, operands: Any) -> TileCase:
        """In its automatic tiling."""
        return TileCase(
            design=design,
            layer=layer,
            tiling=plan_tiling(design, layer, None),
            operands=operands,
            services=free_services(),
        )

    def small_layer(self, design: CoreDesign) -> MatMul:
        """A product of matrices."""
        _, filters, channels = design.mnk
        return MatMul(name="random", m=32, n=4 * filters, k=4 * channels)

    def least_gates(self, design: CoreDesign) -> int:
        operand_bits = design.data_ports[0].lane_bits[0]
        return design.macs_per_cycle * operand_bits * LEAST_GATES_PER_PE_BIT


__all__ = ["TileVerification"]
