"""A layer in passes: images, conv groups, and strips of a plane that does not fit the PEs.

The sums of one filter must fit a PE's accumulators, its part of the ifmap its IARAM, its part of
the ofmap its OARAM.  A plane for which they do not is cut into strips of equally many rows of the
ofmap (the last may have fewer), as few as do; a plane of one row is cut into columns.  A strip is
a problem of its own, with the inputs that its outputs see.  Of a pooled layer these are pooled
rows: a strip has the rows that its windows see, and two strips may compute the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.codecs.zero_run import Lists
from archsim.errors import InputError, require
from archsim.layer.problem import Problem
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import FifoFit, ifmap_lists, longest_list, ofmap_lists
from archsim.machines.scnn.mapping import Mapping, largest_group, map_plane, refuse_accumulators
from archsim.machines.scnn.pass_scan import PassOperands
from archsim.machines.scnn.pooling import Window, windows_of
from archsim.numbers import AnyIntArray, IntArray, ceil_div
from workloads.pooling import MaxPool

_NONE = np.zeros((0, 1), np.int64)

NO_LISTS = Lists(
    values=_NONE, indices=_NONE, positions=_NONE, starts=np.zeros(1, np.int64), index_bits=1
)
"""Of an ofmap that others take the place of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Strip:
    """A pass, ready to run.  rows, columns: its outputs in the plane, pooled where the layer is;
    sizes as in `problem`, whose outputs are those before pooling.  values [rows, columns, K]: its
    ofmap, where cells fail so that it is another than the layer's."""

    problem: Problem
    rows: range
    columns: range
    mapping: Mapping
    operands: PassOperands
    values: IntArray | None = None

    @property
    def given(self) -> IntArray:
        """`values`, where there are some."""
        assert self.values is not None
        return self.values


@dataclass(frozen=True, kw_only=True, eq=False)
class _Plane:
    """One image and conv group: ifmap [H, W, C], weight [K, R, S, C], ofmap [P, Q, K], pooled
    where the layer is (`windows` of its rows and columns); given_later: as of `strips_of`."""

    problem: Problem
    ifmap: AnyIntArray
    weight: AnyIntArray
    ofmap: AnyIntArray
    windows: tuple[Window, Window] | None
    given_later: bool = False

    @property
    def by_columns(self) -> bool:
        """Whether strips are of columns."""
        return len(self.ofmap) == 1

    @property
    def outputs(self) -> int:
        """Along the axis that is cut."""
        return self.ofmap.shape[1 if self.by_columns else 0]

    @property
    def window(self) -> Window:
        """Along the axis that is cut."""
        if self.windows is None:
            return Window(outputs=self.outputs)
        return self.windows[1 if self.by_columns else 0]

    @property
    def all_seen(self) -> bool:
        """Whether every input is seen by some output; others are in no strip."""
        problem, windows = self.problem, self.windows or ()
        planes = problem.out_height, problem.out_width
        return (
            problem.stride_height <= problem.kernel_height
            and problem.stride_width <= problem.kernel_width
            and all(window.size >= window.stride for window in windows)
            and all(
                len(window.seen(range(window.outputs), size)) == size
                for window, size in zip(windows, planes, strict=False)
            )
        )


def strips_of(
    design: Scnn,
    problem: Problem,
    operands: tuple[AnyIntArray, AnyIntArray, AnyIntArray],
    pool: MaxPool | None = None,
    *,
    from_one: bool = False,
    given_later: bool = False,
) -> tuple[Strip, ...]:
    """The fewest strips that fit, of at most `strip_rows`, for one image and conv group.

    operands: ifmap [H, W, C], weight [K, R, S, C], ofmap [P, Q, K], or [U, V, K] where the layer is
    pooled.  from_one: try every number, also those of which the values alone do not fit; it finds
    the same.  given_later: cells fail, so that lists of what is given out take the place of those
    of the ofmap, which are then no lists at all where all of their vectors would fit.  Raises
    InputError where not
    even one row (or column) fits, where a list of weights of one filter is longer than the FIFO,
    for a dilated kernel, and of a design whose cycles are DNNsim's, which has no passes of ours.
    """
    require(
        not design.counts_as_dnnsim,
        "a layer has no strips and ports where cycles are counted as DNNsim does",
    )
    ifmap, weight, ofmap = operands
    one = replace(problem, images=1, groups=1)
    windows = windows_of(pool, (problem.out_height, problem.out_width)) if pool else None
    plane = _Plane(
        problem=one,
        ifmap=ifmap,
        weight=weight,
        ofmap=ofmap,
        windows=windows,
        given_later=given_later,
    )
    tried = 0
    refusal = InputError("a plane must have outputs")
    wanted = ceil_div(plane.outputs, design.strip_rows or plane.outputs)
    fewest = 1 if from_one else _fewest(design, plane)
    for number in range(max(fewest, wanted), plane.outputs + 1):
        size = ceil_div(plane.outputs, number)
        if size == tried:
            continue
        tried = size
        try:
            return tuple(_strips(design, plane, size))
        except _TooLargeError as error:
            refusal = error
    raise InputError(str(refusal))


class _TooLargeError(InputError):
    """What smaller strips could mend."""


def _fewest(design: Scnn, plane: _Plane) -> int:
    """A number of strips below which the values alone do not fit."""
    seen = plane.all_seen
    lanes = design.pes * design.ifmap_lanes
    dense, memory = design.sparsity == "weights", design.activation_memory
    least = 1
    for tensor, name, counts in ((plane.ifmap, "iaram", bool(seen)), (plane.ofmap, "oaram", True)):
        use = design.stream_use(name)
        rows = use.rows if counts else 0
        if not rows:
            continue
        values = tensor.size if dense else int((tensor != 0).sum())
        least = max(least, ceil_div(values, lanes * memory.entries(rows)))
        bits = memory.least_bits(use, tensor)
        least = max(least, ceil_div(bits, lanes * rows * design.operand_bits))
    return min(least, plane.outputs)


def _strips(design: Scnn, plane: _Plane, size: int) -> Iterator[Strip]:
    for first in range(0, plane.outputs, size):
        outputs = range(first, min(first + size, plane.outputs))
        yield _strip(design, plane, outputs)


def _strip(design: Scnn, plane: _Plane, outputs: range) -> Strip:
    """Raises _TooLargeError if it does not fit."""
    whole, windows = plane.problem, plane.windows
    problem, inputs = whole, range(whole.width if plane.by_columns else whole.height)
    if len(outputs) < plane.outputs:
        before = whole.out_width if plane.by_columns else whole.out_height
        seen = plane.window.seen(outputs, before)
        problem, inputs = _cut(whole, seen, by_columns=plane.by_columns)
        if windows:
            cut = plane.window.cut(outputs)
            windows = (windows[0], cut) if plane.by_columns else (cut, windows[1])
    place, seen = slice(outputs.start, outputs.stop), slice(inputs.start, inputs.stop)
    if plane.by_columns:
        ifmap, ofmap = plane.ifmap[:, seen], plane.ofmap[:, place]
        rows, columns = range(len(plane.ofmap)), outputs
    else:
        ifmap, ofmap = plane.ifmap[seen], plane.ofmap[place]
        rows, columns = outputs, range(plane.ofmap.shape[1])
    mapping = _mapping(design, map_plane(design, problem, 1, windows), plane.weight)
    loaded, given = ifmap_lists(design, mapping, ifmap), NO_LISTS
    _require_fit(design, "iaram", loaded, mapping.used_pes)
    if not (plane.given_later and _every_list_fits(design, mapping)):
        given = ofmap_lists(design, mapping, ofmap)
        _require_fit(design, "oaram", given, len(given) // mapping.filters)
    operands = PassOperands(
        ifmap=loaded,
        weight=plane.weight,
        ofmap=given,
        has_bias=bool(problem.has_bias),
    )
    return Strip(problem=problem, rows=rows, columns=columns, mapping=mapping, operands=operands)


def _every_list_fits(design: Scnn, mapping: Mapping) -> bool:
    """Whether an OARAM holds the longest lists that there may be, of an element for each place."""
    memory, use = design.activation_memory, design.stream_use("oaram")
    vectors = ceil_div(mapping.rows.give * mapping.columns.give, design.ifmap_lanes)
    return not memory.by_value and mapping.filters * vectors <= memory.entries(use.rows)


def _require_fit(design: Scnn, name: str, lists: Lists, pes: int) -> None:
    reason = design.activation_memory.why_not(design.stream_use(name), lists, pes)
    if reason:
        raise _TooLargeError(reason)


def _mapping(design: Scnn, plane: Mapping, weight: AnyIntArray) -> Mapping:
    """With the most filters in a group that accumulators and FIFO can hold."""
    largest = largest_group(design, plane)
    if not largest:
        raise _TooLargeError(str(refuse_accumulators(design, plane)))
    fits = FifoFit(design, plane, weight)
    for size in range(largest, 0, -1):
        mapping = replace(plane, group_size=size)
        if fits(mapping):
            return mapping
    longest = longest_list(design, replace(plane, group_size=1), weight)
    raise InputError(
        f"weight_fifo_vectors must be at least {longest} (the longest list of one filter's "
        f"weights), not {design.weight_fifo_vectors}"
    )


def with_groups(design: Scnn, strip: Strip, most: int) -> Strip:
    """A strip with fewer filters in a group, whether the FIFO takes them or not; its lists stay."""
    size = min(most, strip.mapping.group_size)
    if design.group_rule != "accumulators":
        return strip
    return replace(strip, mapping=replace(strip.mapping, group_size=size))


def that_fit(design: Scnn, strips: Sequence[Strip]) -> list[Strip]:
    """Strips whose groups are made smaller until the FIFO takes them."""
    found: list[Strip] = []
    for strip in strips:
        fits = FifoFit(design, strip.mapping, strip.operands.weight)
        sizes = range(strip.mapping.group_size, 0, -1)
        tried = (replace(strip.mapping, group_size=size) for size in sizes)
        found.append(replace(strip, mapping=next(one for one in tried if fits(one))))
    return found


def _cut(problem: Problem, outputs: range, *, by_columns: bool) -> tuple[Problem, range]:
    """The problem of some of the outputs, and the inputs that they see (at least one)."""
    if by_columns:
        size, stride, pad = problem.width, problem.stride_width, problem.pad_left
        kernel = problem.kernel_width
    else:
        size, stride, pad = problem.height, problem.stride_height, problem.pad_top
        kernel = problem.kernel_height
    low, high = outputs[0] * stride - pad, outputs[-1] * stride - pad + kernel - 1
    inputs = range(min(max(low, 0), size - 1), min(max(high, 0), size - 1) + 1)
    if by_columns:
        part = replace(problem, width=len(inputs), out_width=len(outputs), pad_left=inputs[0] - low)
    else:
        part = replace(
            problem, height=len(inputs), out_height=len(outputs), pad_top=inputs[0] - low
        )
    return part, inputs


def sums_of_strip(plane: IntArray, strip: Strip, windows: tuple[Window, Window]) -> IntArray:
    """Of the sums of a plane those of a strip; windows: of the whole plane."""
    places = list[slice]()
    for window, given, axis in zip(
        windows,
        (strip.rows, strip.columns),
        (strip.mapping.rows, strip.mapping.columns),
        strict=True,
    ):
        first = max(given.start * window.stride - window.pad, 0)
        places.append(slice(first, first + axis.outputs))
    return plane[tuple(places)]


__all__ = ["Strip", "strips_of", "sums_of_strip", "that_fit", "with_groups"]
