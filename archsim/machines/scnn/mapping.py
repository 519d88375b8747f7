"""A layer on a grid of PEs: what each holds, sums and gives out, and Kc, its groups of filters.

Both axes of the plane are cut alike (`archsim.machines.scnn.axis`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from archsim.errors import InputError, require
from archsim.layer.problem import Problem
from archsim.machines.scnn.axis import TAP_BITS, Axis, axis_of
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.pooling import Window, windows_of
from archsim.numbers import IntArray, bit_ceil, ceil_div


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """One pass: a plane, all its channels and filters.  Sizes are as in `Problem`.

    group_size: Kc, filters whose sums are in the accumulators at a time; the last group may have
    fewer.  A block is what a PE does with one channel in one phase for one group: its list of
    activations with a list of weights.  Blocks follow one another by group, channel, phase.
    ifmap_kept: the ifmap is what the pass before has left in the PEs.  keep_ofmap: the ofmap stays
    there for the next pass, with the positions of an ifmap.
    clear_cycles: of a half of the banks behind each of its drains, where the layer is pooled; 0
    where it is not.
    """

    rows: Axis
    columns: Axis
    channels: int
    filters: int
    group_size: int
    ifmap_kept: bool = False
    keep_ofmap: bool = False
    clear_cycles: int = 0

    @property
    def used_pes(self) -> int:
        return self.rows.pes * self.columns.pes

    @property
    def outputs(self) -> int:
        """That are given out, pooled where the layer is: of the plane and all filters."""
        return self.rows.window.outputs * self.columns.window.outputs * self.filters

    @property
    def pooled(self) -> bool:
        return self.clear_cycles > 0

    def place(self, pe: int) -> tuple[int, int]:
        """Row and column of a PE; PEs are counted row by row."""
        return divmod(pe, self.columns.pes)

    def region_size(self, pe: int) -> tuple[int, int]:
        """Rows and columns of a PE's region."""
        row, column = self.place(pe)
        return len(self.rows.region(row)), len(self.columns.region(column))

    @property
    def groups(self) -> int:
        """Groups of filters."""
        return ceil_div(self.filters, self.group_size)

    def group_filters(self, group: int) -> int:
        """Filters of a group."""
        return min(self.group_size, self.filters - group * self.group_size)

    @cached_property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """(row phase, column phase), the row's outside."""
        rows, columns = range(self.rows.phases), range(self.columns.phases)
        return tuple((row, column) for row in rows for column in columns)

    @property
    def lists(self) -> int:
        """Lists of activations in a PE, and blocks of a group: channels · phases."""
        return self.channels * len(self.phases)

    @property
    def filter_pitch(self) -> int:
        """Kp: of positions of weights and of addresses of sums."""
        return bit_ceil(self.group_size)

    def tap_pitch(self, column_phase: int) -> int:
        """Taps from a row of the kernel to the next in positions of weights."""
        return bit_ceil(self.columns.taps(column_phase))

    @property
    def input_pitch(self) -> int:
        """From a row of a PE's activations to the next in their positions."""
        return bit_ceil(self.columns.phase_tile)

    @property
    def input_places(self) -> int:
        """Positions of a list of activations, also those without an input."""
        return self.rows.phase_tile * self.input_pitch

    @property
    def output_pitch(self) -> int:
        """Places from a row of a PE's outputs to the next: columns that it gives out, or, if the
        ofmap stays, the power of two that is at least as many, which is the pitch of an ifmap."""
        return bit_ceil(self.columns.give) if self.keep_ofmap else self.columns.give

    @property
    def accumulators(self) -> int:
        """Kp · Hacc · Wacc: sums that a PE keeps, of the largest region."""
        return self.filter_pitch * self.rows.extent * self.columns.extent

    def halo_cycles(self, group: int) -> int:
        """2 · Kc · (Hacc · (left + right) + (up + down) · the most own columns)."""
        across = self.columns.most_below + self.columns.most_above
        along = self.rows.most_below + self.rows.most_above
        sums = self.rows.extent * across + along * self.columns.most_owned
        return 2 * self.group_filters(group) * sums

    def copy_cycles(self, group: int) -> int:
        """2 · Kc · (the most own rows · copies of columns + copies of rows · the most columns that
        are own or copied)."""
        sums = self.rows.most_owned * sum(self.columns.most_copies)
        sums += sum(self.rows.most_copies) * self.columns.most_held
        return 2 * self.group_filters(group) * sums

    def move_cycles(self, group: int) -> int:
        """Halos, then copies."""
        return self.halo_cycles(group) + self.copy_cycles(group)

    @property
    def list_cycles(self) -> int:
        """Of the output of a filter: rows · pitch · window + 1, a sum a cycle and one to end it."""
        window = self.rows.window.size * self.columns.window.size
        return self.rows.give * self.output_pitch * window + 1

    def output_cycles(self, group: int) -> int:
        """Kc · `list_cycles` + `clear_cycles`."""
        return self.group_filters(group) * self.list_cycles + self.clear_cycles

    def halo_sums(self) -> IntArray:
        """Sums for each filter that PEs send: first to their sides, then up and down [PEs]."""
        rows, columns = self.rows, self.columns
        regions = [len(rows.region(row)) for row in range(rows.pes)]
        along = [rows.below(row) + rows.above(row) for row in range(rows.pes)]
        owned = [len(columns.owned(column)) for column in range(columns.pes)]
        across = [columns.below(column) + columns.above(column) for column in range(columns.pes)]
        return (np.outer(regions, across) + np.outer(along, owned)).reshape(-1)

    def copy_sums(self) -> IntArray:
        """Sums for each filter that PEs send to be copied: to their sides, then up and down
        [PEs]."""
        rows, columns = self.rows, self.columns
        owned = [len(rows.owned(row)) for row in range(rows.pes)]
        along = [sum(rows.sent(row)) for row in range(rows.pes)]
        across = [sum(columns.sent(column)) for column in range(columns.pes)]
        held = [
            len(columns.owned(column)) + columns.copies(column) for column in range(columns.pes)
        ]
        return (np.outer(owned, across) + np.outer(along, held)).reshape(-1)

    def window_reads(self) -> IntArray:
        """Sums for each filter that PEs read for their windows; 0 without pooling [PEs]."""
        if not self.pooled:
            return np.zeros(self.used_pes, np.int64)
        rows, columns = self.rows, self.columns
        by_row = [rows.reads(row) for row in range(rows.pes)]
        by_column = [columns.reads(column) for column in range(columns.pes)]
        return np.outer(by_row, by_column).reshape(-1)


@lru_cache(maxsize=32)
def first_outputs(mapping: Mapping) -> tuple[IntArray, IntArray]:
    """[PEs, phases] of rows, and of columns: the output of a PE's first input at the first tap, in
    its region."""
    rows, columns = np.empty((2, mapping.used_pes, len(mapping.phases)), np.int64)
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        for number, (down, right) in enumerate(mapping.phases):
            rows[pe, number] = mapping.rows.first_output(row, down)
            columns[pe, number] = mapping.columns.first_output(column, right)
    return rows, columns


@lru_cache(maxsize=128)
def map_plane(
    design: Scnn, problem: Problem, group_size: int, windows: tuple[Window, Window] | None = None
) -> Mapping:
    """The mapping of one image and conv group of a problem with a given Kc; windows: of the rows
    and columns of its pooling.

    Raises InputError for what the core cannot do: dilation.
    """
    dilated = (
        problem.kernel_height > 1 and problem.dilation_height > 1,
        problem.kernel_width > 1 and problem.dilation_width > 1,
    )
    require(
        not any(dilated),
        "dilation must be 1 in a sparse core (any stride is supported), not "
        f"{problem.dilation_height}x{problem.dilation_width}",
    )
    rows, columns = windows or windows_of(None, (problem.out_height, problem.out_width))
    anywhere = not design.lists_as_meant
    sizes = (
        (
            (problem.height, problem.out_height),
            problem.kernel_height, problem.stride_height, problem.pad_top, design.grid_rows, rows,
        ),
        (
            (problem.width, problem.out_width),
            problem.kernel_width, problem.stride_width, problem.pad_left, design.grid_columns,
            columns,
        ),
    )  # fmt: skip
    axes = [replace(axis_of(*size), anywhere=anywhere) for size in sizes]
    if not design.weight_memory.exact:
        axes = _with_taps_anywhere(design, axes)
    return Mapping(
        rows=axes[0],
        columns=axes[1],
        channels=problem.channels,
        filters=problem.filters,
        group_size=group_size,
        clear_cycles=design.bank_entries if windows else 0,
    )


def _with_taps_anywhere(design: Scnn, axes: list[Axis]) -> list[Axis]:
    """Axes of rows and columns with the taps that a weight may be read at, as far as they lead to
    outputs: of elements that are where they were meant no farther than from the last."""
    most = [(1 << TAP_BITS) - 1, bit_ceil(axes[1].taps(0)) - 1]
    found: list[Axis] = []
    for axis, tap in zip(axes, most, strict=True):
        reach = [axis.span(pe).stop - 1 - axis.region(pe).start for pe in range(axis.pes)]
        limit = min(tap, max(reach)) if design.activation_memory.exact else tap
        found.append(replace(axis, tap_limit=max(limit, 0)))
    return found


def largest_group(design: Scnn, plane: Mapping) -> int:
    """Kc: the most filters whose sums fit the accumulators, 0 if those of one do not.

    accumulators: the largest Kc ≤ `filter_group` with Kp · Hacc · Wacc ≤ sums of a PE.  dnnsim:
    Kc = ⌊sums / (⌈P / rows of the grid⌉ · ⌈Q / columns⌉)⌋, at most all filters; the sums of halos
    are not counted.
    """
    if design.group_rule == "dnnsim":
        rows = ceil_div(plane.rows.outputs, design.grid_rows)
        columns = ceil_div(plane.columns.outputs, design.grid_columns)
        return min(design.accumulators // (rows * columns), plane.filters)
    entries = plane.rows.extent * plane.columns.extent
    for size in range(min(design.filter_group, plane.filters), 0, -1):
        if bit_ceil(size) * entries <= design.accumulators:
            return size
    return 0


def refuse_accumulators(design: Scnn, plane: Mapping) -> InputError:
    """What to say where the sums of one filter do not fit."""
    entries = plane.rows.extent * plane.columns.extent
    return InputError(
        f"a PE's part of one filter has {plane.rows.extent}x{plane.columns.extent} sums, but "
        f"{design.banks} banks of {design.bank_entries} hold {design.accumulators}; "
        f"bank_entries of at least {ceil_div(entries, design.banks)} would do"
    )


__all__ = ["Mapping", "largest_group", "map_plane", "refuse_accumulators"]
