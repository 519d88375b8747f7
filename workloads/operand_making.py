"""Operands of a layer from what is known of its tensors: integers of a file, real numbers, a seed.

Integers of a file stand as they are where a core can take them so (`workloads.file_scaling`): its
operands are wide enough, activations have one scale, weights one a filter.  All else is quantised
per tensor and symmetrically.

Drawn activations have a root mean square of 1 in real numbers, which is what the bias of a file is
added to; where no file and no run says what the outputs are, three standard deviations of the sums
are at the ofmap's limit, as in `workloads.operands.synthetic`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.affine import IntegerType
from workloads.errors import WorkloadError
from workloads.file_scaling import RULE, FileScaling
from workloads.layers import Conv2d, MatMul
from workloads.operand_parts import (
    Layer,
    Level,
    Parts,
    bias_at,
    check_scales,
    deviation,
    level_of,
    step_of,
    whole_ifmap,
    whole_weight,
)
from workloads.operands import Operands, check_elements
from workloads.quantize import Integers, requantize_parameters


def operands_of_parts(layer: Layer, parts: Parts, *, bits: int, as_file: bool) -> Operands:
    """Operands of `bits` at most.

    as_file: integers of a file may have zero points, and weights a scale a filter.  Raises
    WorkloadError for values that are not finite and scales that are not positive.
    """
    check_elements(layer)
    try:
        levels = _whole(layer, parts, bits) if as_file else None
        if levels is not None:
            return _as_file(layer, parts, levels, bits)
        return _symmetric(layer, parts, bits)
    except WorkloadError as error:
        raise WorkloadError(f"{layer.name}: {error}") from error


def _whole(layer: Layer, parts: Parts, bits: int) -> tuple[Level, Level] | None:
    """Ifmap and weight, if one at least is integers of a file that can stand as they are."""
    filter_axis = 2 if isinstance(layer, MatMul) else 0
    ifmap = whole_ifmap(parts.ifmap.values, bits)
    weight = whole_weight(parts.weight.values, filter_axis, bits)
    if ifmap is None and weight is None:
        return None
    drawn = parts.drawn
    return (
        ifmap or level_of(parts.ifmap, drawn and drawn.ifmap, bits),
        weight or level_of(parts.weight, drawn and drawn.weight, bits),
    )


def _as_file(layer: Layer, parts: Parts, levels: tuple[Level, Level], bits: int) -> Operands:
    ifmap, weight = levels
    filters = layer.n if isinstance(layer, MatMul) else layer.filters
    scales = np.broadcast_to(weight.scale.astype(np.float32), (filters,))
    with np.errstate(all="ignore"):
        step = np.float32(parts.factor) * ifmap.scale.astype(np.float32) * scales
    check_scales(np.abs(step))
    bias = bias_at(_bias(layer, parts, (ifmap.whole, weight.whole)), step)
    scaling = _scaling(layer, parts, (ifmap, weight, bias), step, bits)
    multiplier, shift = 1, 0
    if scaling.scale is not None and scaling.multipliers[0].any():
        multipliers, shift = scaling.multipliers
        multiplier = int(multipliers.max())
    at = int(np.argmax(scales))
    ofmap_scale = float(step[at])
    if scaling.scale is not None:
        ofmap_scale /= float(scaling.scale[at])
    return Operands(
        ifmap=ifmap.values,
        weight=weight.values,
        bias=bias,
        multiplier=multiplier,
        shift=shift,
        scheme=f"{parts.scheme(bits, (ifmap.whole, weight.whole))}; ofmap: {_rule(scaling)}",
        ifmap_scale=float(ifmap.scale[0]),
        weight_scale=float(scales[at]),
        ofmap_scale=ofmap_scale,
        weight_origin=parts.weight.origin,
        ifmap_origin=parts.ifmap.origin,
        file=scaling,
    )


def _bias(layer: Layer, parts: Parts, whole: tuple[bool, bool]) -> NDArray[Any] | None:
    """The bias; real numbers for integers whose scale the operands do not keep."""
    bias = parts.bias
    if bias is None or bias.dtype.kind not in "iu" or all(whole):
        return bias
    step = step_of(layer, parts.ifmap, parts.weight)
    if step is None:
        raise WorkloadError("a bias of integers needs one scale a filter")
    return bias * (step * parts.factor)


def _rule(scaling: FileScaling) -> str:
    return "the sums, as int32" if scaling.scale is None else RULE


def _scaling(
    layer: Layer,
    parts: Parts,
    made: tuple[Level, Level, Integers | None],
    step: NDArray[np.float32],
    bits: int,
) -> FileScaling:
    """How the sums, in units of `step` [K], become the ofmap."""
    ifmap, weight, bias = made
    ofmap = parts.ofmap
    zero, kind, scale = ofmap.zero, ofmap.kind, ofmap.scale
    if ofmap.sums or scale is None or kind is None:
        zero, kind = 0, IntegerType(bits=32 if ofmap.sums else bits, signed=True)
        guessed = 3 * float(step.max()) * deviation((ifmap, weight), bias) / kind.high
        scale = ofmap.scale_at(bits) or guessed or 1.0
    check_scales(np.array(scale))
    with np.errstate(all="ignore"):
        scales = None if ofmap.sums else step / np.float32(scale)
    if scales is not None:
        check_scales(np.abs(scales))
    filters = step.shape
    found = FileScaling(
        ifmap_zero=int(ifmap.zero[0]),
        weight_zero=np.broadcast_to(weight.zero, filters),
        weight_scales=np.broadcast_to(weight.scale.astype(np.float32), filters),
        scale=scales,
        zero=zero,
        kind=kind,
        relu=layer.relu,
        made=ofmap.made,
    )
    return replace(found, lacks=_lacks(layer, found, bits))


def _lacks(layer: Layer, scaling: FileScaling, bits: int) -> tuple[str, ...]:
    """What a core of such operands would need, beside its rule, to make such an ofmap."""
    padded = isinstance(layer, Conv2d) and any(
        (layer.pad_top, layer.pad_left, layer.pad_bottom, layer.pad_right)
    )
    wanted = {
        "padding with the zero point": padded and scaling.ifmap_zero != 0,
        "zero points of weights": bool(scaling.weight_zero.any()),
    }
    if scaling.scale is None:
        wanted["sums that leave whole"] = True
    else:
        shifted = scaling.zero - scaling.kind.centre
        folded = scaling.ifmap_zero != 0 or shifted != 0
        wanted |= {
            "a multiplier a filter": bool((scaling.scale != scaling.scale[0]).any()),
            "multipliers of that size": not scaling.multipliers[0].any(),
            "a bias for the zero points": not layer.bias and folded,
            "a ReLU at the zero point": scaling.relu and shifted != 0,
            f"saturation to {scaling.kind.bits} bits": scaling.kind.bits != bits,
        }
    return tuple(name for name, lacked in wanted.items() if lacked)


def _symmetric(layer: Layer, parts: Parts, bits: int) -> Operands:
    """Quantised per tensor; `workloads.operands.Operands` has the rule of the ofmap."""
    drawn = parts.drawn
    ifmap = level_of(parts.ifmap, drawn and drawn.ifmap, bits)
    weight = level_of(parts.weight, drawn and drawn.weight, bits, parts.factor)
    step = float(ifmap.scale[0]) * float(weight.scale[0])
    bias = bias_at(_bias(layer, parts, (False, False)), np.array(step))
    ofmap_scale = parts.ofmap.scale_at(bits)
    if ofmap_scale is None:
        reach = 3 * deviation((ifmap, weight), bias)
        ofmap_scale = step * max(1.0, reach / ((1 << (bits - 1)) - 1))
    multiplier, shift = requantize_parameters(step / ofmap_scale)
    return Operands(
        ifmap=ifmap.values,
        weight=weight.values,
        bias=bias,
        multiplier=multiplier,
        shift=shift,
        scheme=parts.scheme(bits),
        ifmap_scale=float(ifmap.scale[0]),
        weight_scale=float(weight.scale[0]),
        ofmap_scale=ofmap_scale,
        weight_origin=parts.weight.origin,
        ifmap_origin=parts.ifmap.origin,
    )


__all__ = ["operands_of_parts"]
