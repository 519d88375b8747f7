"""A layer on a grid of PEs: tiles of the plane, halos, phases of a stride, groups of filters.

Both axes of the plane are cut alike (`Axis`): PE i has the inputs [i · tile, (i + 1) · tile) and
owns the outputs [i · own, (i + 1) · own).  Its inputs may reach outputs of its neighbours, for
which it keeps sums too; these are the halo.  Of a strided convolution, inputs and weights that meet
have equal remainders modulo the stride; each pair of remainders is a phase.

    y + pad = y'' · stride + phase,   r = r' · stride + phase,   p = y'' − r'

Where the layer is pooled, PE i gives out the pooled outputs [i · give, (i + 1) · give), and owns
the outputs that their windows advance by; what its windows see beside is copied from neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from archsim.errors import InputError, require
from archsim.layer.problem import Problem
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.ownership import Ownership
from archsim.machines.scnn.pooling import Window, windows_of
from archsim.numbers import bit_ceil, ceil_div


@dataclass(frozen=True, kw_only=True)
class Axis(Ownership):
    """Rows or columns of a plane over PEs in a row.

    size, outputs: of the plane.  pad: before the first input; negative where a strip of an image
    begins behind it.  pes: PEs that are used.  tile, own: inputs and outputs of each but the last.
    """

    size: int
    kernel: int
    stride: int
    pad: int
    tile: int

    def inputs(self, pe: int) -> range:
        """The inputs that a PE has, maybe none."""
        return range(min(pe * self.tile, self.size), min((pe + 1) * self.tile, self.size))

    def reached(self, pe: int) -> range:
        """The outputs between the first and the last that a PE's inputs may reach."""
        span = self.span(pe)
        return range(max(0, span.start), min(self.outputs, span.stop))

    def span(self, pe: int) -> range:
        """What a PE's inputs would reach in a plane without a border."""
        inputs = self.inputs(pe)
        if not inputs:
            return range(0)
        low = ceil_div(inputs[0] + self.pad - (self.kernel - 1), self.stride)
        return range(low, (inputs[-1] + self.pad) // self.stride + 1)

    @cached_property
    def span_extent(self) -> int:
        """The longest span."""
        return max(len(self.span(pe)) for pe in range(self.pes))

    def region(self, pe: int) -> range:
        """The outputs for which a PE has sums: all from the first to the last that it reaches,
        owns, or has in a window."""
        parts = [part for part in (self.reached(pe), self.owned(pe), self.seen(pe)) if part]
        if not parts:
            return range(pe * self.own, pe * self.own)
        return range(min(part[0] for part in parts), max(part[-1] for part in parts) + 1)

    def first_window(self, pe: int) -> int:
        """Where a PE's first window begins in its region; below 0 in padding."""
        return pe * self.own - self.window.pad - self.region(pe).start if self.given(pe) else 0

    def below(self, pe: int) -> int:
        """Outputs of the region that the PE before owns."""
        region = self.region(pe)
        return len(range(region.start, min(region.stop, self.own_start(pe))))

    def above(self, pe: int) -> int:
        """Outputs of the region that the next PE owns."""
        region = self.region(pe)
        return len(range(max(region.start, self.own_start(pe + 1)), region.stop))

    @property
    def meets_neighbours_only(self) -> bool:
        """Whether all that PEs reach or have in windows is their own or their neighbours'."""
        return all(
            not part
            or (self.own_start(max(pe - 1, 0)) <= part[0] and part[-1] < self.own_start(pe + 2))
            for pe in range(self.pes)
            for part in (self.reached(pe), self.seen(pe))
        )

    @cached_property
    def extent(self) -> int:
        """The longest region."""
        return max(len(self.region(pe)) for pe in range(self.pes))

    @cached_property
    def most_below(self) -> int:
        return max(self.below(pe) for pe in range(self.pes))

    @cached_property
    def most_above(self) -> int:
        return max(self.above(pe) for pe in range(self.pes))

    @property
    def phases(self) -> int:
        """Phases with a tap of the kernel; they are the first ones."""
        return min(self.stride, self.kernel)

    def taps(self, phase: int) -> int:
        """Taps of the kernel in a phase."""
        return ceil_div(self.kernel - phase, self.stride)

    def phase_inputs(self, pe: int, phase: int) -> range:
        """The inputs of a PE that are in a phase."""
        inputs = self.inputs(pe)
        skipped = (phase - inputs.start - self.pad) % self.stride
        return range(inputs.start + skipped, max(inputs.stop, inputs.start + skipped), self.stride)

    def first_output(self, pe: int, phase: int) -> int:
        """p of a PE's first input of a phase at the phase's first tap."""
        return (self.phase_inputs(pe, phase).start + self.pad) // self.stride

    @property
    def phase_tile(self) -> int:
        """⌈tile / stride⌉: the most inputs of a PE in a phase."""
        return ceil_div(self.tile, self.stride)


def axis_of(
    plane: tuple[int, int], kernel: int, stride: int, pad: int, grid: int, window: Window
) -> Axis:
    """The axis of (inputs, outputs) over the most PEs of which only neighbours share outputs.

    PEs at the end that would have neither inputs nor outputs are not used.
    """
    size = plane[0]
    outputs = window.seen(range(window.outputs), plane[1]).stop
    for pes in range(grid, 0, -1):
        tile, give = ceil_div(size, pes), ceil_div(window.outputs, pes)
        axis = Axis(
            size=size, outputs=outputs, kernel=kernel, stride=stride, pad=pad, tile=tile,
            pes=max(ceil_div(size, tile), ceil_div(window.outputs, give)),
            own=give * window.stride, window=window,
        )  # fmt: skip
        if axis.meets_neighbours_only:
            return axis
    raise AssertionError("a single PE owns all outputs")


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

    def halo_sums(self, pe: int) -> int:
        """Sums for each filter that a PE sends: first to its sides, then up and down."""
        row, column = self.place(pe)
        across = self.columns.below(column) + self.columns.above(column)
        along = self.rows.below(row) + self.rows.above(row)
        return len(self.rows.region(row)) * across + along * len(self.columns.owned(column))

    def copy_sums(self, pe: int) -> int:
        """Sums for each filter that a PE sends to be copied: to its sides, then up and down."""
        (row, column), rows, columns = self.place(pe), self.rows, self.columns
        across, along = sum(columns.sent(column)), sum(rows.sent(row))
        held = len(columns.owned(column)) + columns.copies(column)
        return len(rows.owned(row)) * across + along * held

    def window_reads(self, pe: int) -> int:
        """Sums for each filter that a PE reads for its windows; 0 without pooling."""
        row, column = self.place(pe)
        return self.rows.reads(row) * self.columns.reads(column) if self.pooled else 0


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
    return Mapping(
        rows=axis_of(
            (problem.height, problem.out_height),
            problem.kernel_height, problem.stride_height, problem.pad_top, design.grid_rows,
            rows,
        ),
        columns=axis_of(
            (problem.width, problem.out_width),
            problem.kernel_width, problem.stride_width, problem.pad_left, design.grid_columns,
            columns,
        ),
        channels=problem.channels,
        filters=problem.filters,
        group_size=group_size,
        clear_cycles=design.bank_entries if windows else 0,
    )  # fmt: skip


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


__all__ = ["Axis", "Mapping", "axis_of", "largest_group", "map_plane", "refuse_accumulators"]
