"""How busy every PE is: multiply-accumulates by PE, of a layer or a network, and over time.

found = occupancy(simulate("edge-16", "resnet50"))
found.shares          # [rows, columns]: share of the cycles in which each PE does a useful MAC

Useful are the layer's own MACs (padding of the ifmap among them), so that all PEs together do as
many as the layers have.  Sparse machines count instead the cycles in which pairs of vectors enter
a PE's banks (`LayerResult.per_pe`), layer by layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.errors import InputError, nearest, require, require_positive
from archsim.machine.pe_occupancy import FloatArray, Lines, Occupancy

if TYPE_CHECKING:
    from archsim.result import LayerResult, NetworkResult

BINS = 160
"""Spans of time, where cycles allow it."""


def occupancy(result: NetworkResult, layer: str | None = None, bins: int = BINS) -> Occupancy:
    """Of a result's network, or of one of its layers.

    bins: spans of time at most, equal but for the last; a sparse machine has one a layer instead.
    Raises `InputError` for a layer that the array does not compute, for a network of none, and for
    a machine of which nothing tells.
    """
    from archsim.machine.registry import design_from_record

    require_positive(bins=bins)
    layers = _chosen(result, layer)
    design = design_from_record(dict(result.design), result.design_name)
    name = result.network if layer is None else layer
    found = design.machine_model().occupancy(name, layers, bins)
    require(found is not None, f"what each PE of {design.kind} machines does is not modelled")
    assert found is not None
    return found


def _chosen(result: NetworkResult, layer: str | None) -> list[LayerResult]:
    found = [one for one in result.layers if one.cycles and (one.per_pe or one.work)]
    named = [one for one in found if layer in (None, one.name)]
    if named:
        return named
    what = "no layer" if layer is None else f"no layer {layer!r}"
    known = [one.name for one in found]
    raise InputError(
        f"{result.network} on {result.design_name} has {what} that the array computes"
        + (f"; {nearest(str(layer), known)}" if known else "")
    )


__all__ = ["BINS", "FloatArray", "Lines", "Occupancy", "occupancy"]
