"""A failing case made small: as long as a smaller one fails too, that one takes its place."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic

import numpy as np

from archsim.errors import InputError
from archsim.numbers import IntArray
from rtl.conformance import Case
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, ofmap_shape

MOST_RUNS = 200
MOST_SECONDS = 30.0

Piece = tuple[Conv2d | MatMul, Operands]


def shrink(case: Case, fails: Callable[[Case], bool]) -> tuple[Case, tuple[int, ...]]:
    """The smallest case found that fails, and the way to it: of `Case.smaller`, the number taken
    at each step.

    fails: runs a case.  At most `MOST_RUNS` are run, and none is begun behind `MOST_SECONDS`.
    """
    way: list[int] = []
    runs, end, found = 0, monotonic() + MOST_SECONDS, True
    while found:
        found = False
        for number, smaller in enumerate(case.smaller()):
            if runs == MOST_RUNS or monotonic() > end:
                break
            runs += 1
            try:
                found = fails(smaller)
            except (InputError, WorkloadError):  # no such case
                continue
            if found:
                case = smaller
                way.append(number)
                break
    return case, tuple(way)


def follow(case: Case, way: Sequence[int]) -> Case:
    """The case at the end of a way.  Raises `InputError` where there is none."""
    for step, number in enumerate(way):
        choices = case.smaller()
        if not 0 <= number < len(choices):
            raise InputError(
                f"step {step + 1} of --smaller must be below {len(choices)}, not {number}"
            )
        case = choices[number]
    return case


def smaller_gaps(gaps: dict[str, IntArray]) -> Iterator[dict[str, IntArray]]:
    """Without idle cycles; without those of one port; with half of them."""
    waiting = [name for name, own in gaps.items() if own.any()]
    if waiting:
        yield {name: np.zeros_like(own) for name, own in gaps.items()}
    if len(waiting) > 1:
        for port in waiting:
            yield {name: own * (name != port) for name, own in gaps.items()}
    if any(int(own.max(initial=0)) > 1 for own in gaps.values()):
        yield {name: own // 2 for name, own in gaps.items()}


def cut_gaps(gaps: IntArray, words: int) -> IntArray:
    """Those of the first words; none before words that are more."""
    return np.concatenate([gaps, np.zeros(max(0, words - len(gaps)), np.int64)])[:words]


def smaller_pieces(layer: Conv2d | MatMul, operands: Operands) -> Iterator[Piece]:
    """Half of a layer along each axis, the first and the second; then without bias, without ReLU,
    with zeros for values."""
    cuts = _matmul_cuts if isinstance(layer, MatMul) else _conv_cuts
    for cut in cuts(layer, operands):  # pyright: ignore[reportArgumentType]
        try:
            piece, taken = cut()
        except WorkloadError:  # no such layer
            continue
        yield piece, _corner_needed(piece, taken)
    if operands.needed is not None:
        yield layer, replace(operands, needed=None)
    if layer.bias:
        yield replace(layer, bias=False), replace(operands, bias=None)
    if layer.relu:
        yield replace(layer, relu=False), operands
    for name in ("ifmap", "weight"):
        values = getattr(operands, name)
        for half in _halves(values.size):
            kept = np.zeros_like(values)
            kept.flat[half] = values.flat[half]
            if not np.array_equal(kept, values):
                yield layer, replace(operands, **{name: kept})


def _corner_needed(layer: Conv2d | MatMul, operands: Operands) -> Operands:
    """With a mask of the layer's outputs: a larger one's first corner, and the first output."""
    if operands.needed is None:
        return operands
    corner = tuple(slice(size) for size in ofmap_shape(layer))
    needed = np.zeros(ofmap_shape(layer), np.bool_)
    kept = operands.needed[corner]
    needed[tuple(slice(size) for size in kept.shape)] = kept
    needed.flat[0] = True
    return replace(operands, needed=needed)


def _halves(size: int) -> list[slice]:
    """The first half and the second of an axis; nothing of one that has a single place."""
    return [slice(0, size // 2), slice(size // 2, size)] if size > 1 else []


def _sliced_bias(operands: Operands, part: slice) -> Operands:
    bias = operands.bias
    return operands if bias is None else replace(operands, bias=bias[part])


def _matmul_cuts(layer: MatMul, operands: Operands) -> Iterator[Callable[[], Piece]]:
    def cut(axis: str, part: slice) -> Piece:
        size = {axis: part.stop - part.start}
        ifmap, weight = operands.ifmap, operands.weight
        taken = _sliced_bias(operands, part) if axis == "n" else operands
        if axis == "batch":
            ifmap, weight = ifmap[part], weight if layer.shared_weight else weight[part]
            size["shared_weight"] = layer.shared_weight or size["batch"] == 1
        elif axis == "m":
            ifmap = ifmap[:, part]
        elif axis == "k":
            ifmap, weight = ifmap[:, :, part], weight[:, part]
        else:
            weight = weight[:, :, part]
        return replace(layer, **size), replace(taken, ifmap=ifmap, weight=weight)

    for axis in ("batch", "m", "n", "k"):
        for part in _halves(getattr(layer, axis)):
            yield lambda axis=axis, part=part: cut(axis, part)


def _conv_cuts(layer: Conv2d, operands: Operands) -> Iterator[Callable[[], Piece]]:
    channels, filters = layer.channels // layer.groups, layer.filters // layer.groups

    def groups(part: slice) -> Piece:
        of_ifmap = slice(part.start * channels, part.stop * channels)
        of_weight = slice(part.start * filters, part.stop * filters)
        count = part.stop - part.start
        return (
            replace(layer, groups=count, channels=count * channels, filters=count * filters),
            replace(_sliced_bias(operands, of_weight), ifmap=operands.ifmap[:, of_ifmap],
                    weight=operands.weight[of_weight]),
        )  # fmt: skip

    def cut(axis: str, part: slice) -> Piece:
        size = {axis: part.stop - part.start}
        if axis == "filters":
            taken = replace(_sliced_bias(operands, part), weight=operands.weight[part])
        elif axis == "channels":
            taken = replace(
                operands, ifmap=operands.ifmap[:, part], weight=operands.weight[:, part]
            )
        else:
            at = {"batch": 0, "ifmap_height": 2, "ifmap_width": 3}[axis]
            index = tuple(part if n == at else slice(None) for n in range(4))
            taken = replace(operands, ifmap=operands.ifmap[index])
        return replace(layer, **size), taken

    for part in _halves(layer.groups):
        yield lambda part=part: groups(part)
    axes = ("batch", "filters", "channels") if layer.groups == 1 else ("batch",)
    for axis in (*axes, "ifmap_height", "ifmap_width"):
        for part in _halves(getattr(layer, axis)):
            yield lambda axis=axis, part=part: cut(axis, part)


__all__ = ["cut_gaps", "follow", "shrink", "smaller_gaps", "smaller_pieces"]
