"""Bins of the sparse core: how passes are mapped to PEs, cut into strips and groups."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from archsim.layer.problem import problem_of
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping, largest_group, map_plane
from archsim.machines.scnn.words import LayerRun
from archsim.numbers import bit_ceil
from rtl.coverage.bins import Bin
from rtl.coverage.row_bins import TEN
from rtl.sparse_seen import CORNERS, FULL, HALOS, LONG, SUMS, case_of, passes, timings


def _mapped(name: str, why: str, says: Callable[[Mapping], bool], aim: str = "") -> Bin:
    """Hit where a pass is mapped so."""
    return Bin(
        name=name,
        why=why,
        hit=passes(lambda one: says(one.strip.mapping)),
        aim=aim,
    )


def pass_bins(design: Scnn) -> Iterator[Bin]:
    """Those that a design can have."""
    yield from _of_axis("rows", design.grid_rows)
    yield from _of_axis("columns", design.grid_columns)
    yield from _of_groups()
    yield from _of_corners(design)
    yield Bin(
        name="copies for windows to both sides",
        why="pooling across PEs, corners included",
        hit=timings(lambda one: bool(one.pes.copy_sums.any())),
        aim=TEN,
    )
    for axis in ("height", "width"):
        yield Bin(
            name=f"a kernel of {axis} 16 and more",
            why="a tap of a bit less",
            hit=lambda seen, axis=axis: any(
                getattr(problem_of(run.layer), f"kernel_{axis}") > 15 for run in case_of(seen).runs
            ),
            aim=LONG,
        )
    if design.filter_group > 1:
        yield _mapped(
            "as many filters in a group as the accumulators hold",
            "addresses of sums to the last one",
            lambda one: _full(one, design),
            SUMS,
        )
    yield Bin(
        name="a plane of more sums than the accumulators hold",
        why="it is cut for their sake",
        hit=lambda seen: any(_too_many(run, design) for run in case_of(seen).runs),
        aim=FULL,
    )
    yield Bin(
        name="several strips",
        why="a plane is cut, its windows begin behind the first input",
        hit=passes(lambda one: one.strip.rows.start > 0 or one.strip.columns.start > 0),
        aim=FULL,
    )


def _of_corners(design: Scnn) -> Iterator[Bin]:
    """Of PEs along both axes."""
    if min(design.grid_rows, design.grid_columns) > 1:
        yield _mapped(
            CORNERS,
            "copies of copies: rows are sent with the columns that came",
            lambda one: all(
                max(map(axis.copies_before, range(axis.pes))) > 0
                and axis.pes > 1
                and one.filters > 3
                for axis in (one.rows, one.columns)
            ),
            aim=CORNERS,
        )


def _of_axis(name: str, pes: int) -> Iterator[Bin]:
    """Of the "rows" or "columns" of a plane, over so many PEs."""

    def of(one: Mapping) -> Axis:
        return getattr(one, name)

    if pes > 1:
        yield _mapped(
            f"{name}: halos to both sides",
            "sums to the PE before and behind",
            lambda one: of(one).most_below > 0 and of(one).most_above > 0,
            aim=HALOS,
        )
        yield _mapped(
            f"{name}: halos two deep to both sides",
            "a step's second sums, from behind the own ones on",
            lambda one: of(one).most_below > 1 and of(one).most_above > 1,
            aim=HALOS,
        )
        yield _mapped(
            f"{name}: copies two deep to both sides",
            "a step's second copies, before the own sums and behind them",
            lambda one: min(of(one).most_copies) > 1,
            aim=HALOS,
        )
        yield _mapped(
            f"{name}: fewer PEs than the grid has",
            "the others take no part",
            lambda one: of(one).pes < pes,
        )
        yield _mapped(
            f"{name}: a last tile that is smaller",
            "PEs walk as many places, not all with inputs",
            lambda one: of(one).pes > 1 and 0 < len(of(one).inputs(of(one).pes - 1)) < of(one).tile,
        )
    yield _mapped(f"{name}: phases of a stride", "lists by phase", lambda one: of(one).phases > 1)


def _of_groups() -> Iterator[Bin]:
    """Of groups of filters."""
    yield _mapped(
        "a smaller last group of filters",
        "addresses by the power of two of the others",
        lambda one: one.groups > 1 and one.filters % one.group_size > 0,
    )
    yield _mapped("three groups of filters", "halves go round", lambda one: one.groups >= 3)
    yield _mapped("one filter", "the shortest drain", lambda one: one.filters == 1)


def _full(one: Mapping, design: Scnn) -> bool:
    """Whether a filter more would not fit the accumulators, and they are used to the last one."""
    wanted, sums = min(design.filter_group, one.filters), one.rows.extent * one.columns.extent
    return one.group_size < wanted and bit_ceil(one.group_size) * sums == design.accumulators


def _too_many(run: LayerRun, design: Scnn) -> bool:
    """Whether the sums of one filter do not fit, in a layer that is not pooled."""
    whole = replace(problem_of(run.layer), images=1, groups=1)
    return run.pool is None and largest_group(design, map_plane(design, whole, 1)) == 0


__all__ = ["pass_bins"]
