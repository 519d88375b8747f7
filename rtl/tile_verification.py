"""How cores that are walked by tiles are proved, whatever their array is."""

from collections.abc import Iterable, Mapping
from typing import Any

from archsim.machine.model import MatrixLayer
from archsim.tiled.design import CoreDesign
from archsim.tiled.integer_numerics import IntegerNumerics
from archsim.tiled.timing import plan_tiling
from rtl.benches.bench import Watch
from rtl.conformance import Case
from rtl.coverage.aims import Aim
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import EDGES, IntegerLayer, integer_bins
from rtl.full_memories import full_layer
from rtl.gather_bins import GATHERED, IN_A_LOAD
from rtl.tile_aims import gathered, integer_edges, reset_in_a_load, tile_aims
from rtl.tile_bins import parts, tile_bins, tile_watches
from rtl.tile_cases import random_core_case
from rtl.tile_conformance import TileCase, free_services
from rtl.verification import LEAST_GATES_PER_PE_BIT, Verification
from workloads.layers import MatMul

MEMORIES = ("ifmap", "weight", "bias", "accumulator")


class TileVerification(Verification):
    """Layers in tilings; several one behind the other.

    Of values, what sums and requantises integers has bins and an aim; a kind of other numbers
    brings its own (`value_bins`, `value_aim`).
    """

    def random_case(self, seed: int, number: int, design: CoreDesign, longest_words: int) -> Case:
        return random_core_case(seed, number, design, longest_words)

    def bins(self, design: CoreDesign) -> Iterable[Bin]:
        filled = [name for name in MEMORIES if full_layer(design, name) is not None]
        yield from super().bins(design)
        yield from tile_bins(design, filled, decoupled=self.decoupled(design))
        yield from self.value_bins(design)

    def aims(self, design: CoreDesign) -> Mapping[str, Aim]:
        values = self.value_aim(design)
        own = {} if values is None else {EDGES: values}
        of_rows: dict[str, Aim] = {GATHERED: gathered, IN_A_LOAD: reset_in_a_load}
        return {**tile_aims(), **(of_rows if design.gather else {}), **own}

    def watches(self, design: CoreDesign) -> tuple[Watch, ...]:
        return tile_watches(decoupled=self.decoupled(design))

    def decoupled(self, design: CoreDesign) -> bool:
        """Whether stationary operands have a walk, and a queue of commands, of their own."""
        return False

    def value_bins(self, design: CoreDesign) -> Iterable[Bin]:
        """Bins of what crosses the ports and of what is computed on the way."""
        form = design.numerics
        if not isinstance(form, IntegerNumerics):
            return ()
        widths = form.operand_bits, form.accumulator_bits

        def layers(seen: Seen) -> tuple[IntegerLayer, ...]:
            return tuple(
                IntegerLayer(
                    layer=case.layer,
                    operands=case.operands,
                    operand_bits=widths[0],
                    accumulator_bits=widths[1],
                )
                for case, _ in parts(seen)
            )

        return integer_bins(layers, *widths)

    def value_aim(self, design: CoreDesign) -> Aim | None:
        """What draws values for those bins; None where nothing does."""
        form = design.numerics
        if not isinstance(form, IntegerNumerics):
            return None
        return integer_edges((form.operand_bits, form.accumulator_bits))

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
