"""A layer by itself as a case of its design's kind, whatever that is."""

from typing import Any

from archsim.core.core_design import CoreDesign
from archsim.core.design import Design
from archsim.designs.scnn import Scnn
from archsim.errors import InputError
from archsim.simulate import plan_tiling
from archsim.sparse.words import LayerRun
from rtl.conformance import Case
from rtl.scnn import core_members
from rtl.sparse_conformance import SparseCase
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul


def random_layer(design: Design) -> Conv2d | MatMul:
    """A small layer that keeps every PE busy: a product of matrices, for SCNN a convolution.

    Raises `InputError` for designs that have no RTL.
    """
    if isinstance(design, Scnn):
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
    if isinstance(design, CoreDesign):
        _, filters, channels = design.mnk
        return MatMul(name="random", m=32, n=4 * filters, k=4 * channels)
    raise InputError(f"no layer for designs of kind {design.kind}")


def layer_case(design: Design, layer: Conv2d | MatMul, operands: Any) -> Case:
    """The layer with its operands from a reset on, on ports that never wait.

    A core that is walked by tiles computes it in its automatic tiling.  operands: of the design's
    intake.  Raises `InputError` for a layer that fits in no tiling, and for designs that have no
    RTL.
    """
    if isinstance(design, CoreDesign):
        return TileCase(
            design=design,
            layer=layer,
            tiling=plan_tiling(design, layer, None),
            operands=operands,
            services=free_services(),
        )
    if isinstance(design, Scnn):
        core_members(design)  # refuses variants that only the model has
        return SparseCase(design=design, runs=(LayerRun(layer=layer, operands=operands),))
    raise InputError(f"no case of a layer for designs of kind {design.kind}")


__all__ = ["layer_case", "random_layer"]
