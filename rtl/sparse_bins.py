"""Bins of the sparse core: lists, queues, halos, passes, and layers in a row."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from archsim.codecs.zero_run import BoolArray
from archsim.layer.problem import problem_of
from archsim.machines.scnn.addresses import decoded
from archsim.machines.scnn.answer import SparseAnswer
from archsim.machines.scnn.axis import Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import vectors_by_pe
from archsim.machines.scnn.mapping import Mapping, largest_group, map_plane
from archsim.machines.scnn.timing import PassTiming
from archsim.machines.scnn.words import LayerRun, PassWords
from archsim.numbers import bit_ceil
from rtl.benches.bench import Watch
from rtl.coverage.aims import ResetCase
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import IntegerLayer, integer_bins
from rtl.coverage.port_bins import channel_bin
from rtl.coverage.row_bins import TEN, InARow
from rtl.sparse_conformance import SparseCase

FULL = "full memories"
SUMS = "full accumulators"
SPARSE = "empty and dense"
CORNERS = "windows across corners of PEs"
HALOS = "deep halos"
LONG = "long kernels"
"""Aims (`rtl.sparse_aims`)."""
MOST_FULL_VECTORS = 4_096
"""Of an IARAM that a case may fill."""


def case_of(seen: Seen) -> SparseCase:
    """The case behind a reset, or the case."""
    return cast(SparseCase, seen.case.case if isinstance(seen.case, ResetCase) else seen.case)


_ROW = InARow[LayerRun](lambda seen: case_of(seen).runs)


def _passes(says: Callable[[PassWords], bool]) -> Callable[[Seen], bool]:
    return lambda seen: any(says(one) for one in case_of(seen).passes)


def _timings(says: Callable[[PassTiming], bool]) -> Callable[[Seen], bool]:
    return lambda seen: any(says(one) for one in cast(SparseAnswer, seen.expected).timings)


_KINDS: dict[str, Callable[[LayerRun], bool]] = {
    "bias": lambda run: run.operands.bias is not None,
    "ReLU": lambda run: run.layer.relu,
    "pooling": lambda run: run.pool is not None,
}


def _in_sequence(*, stays: bool) -> Iterator[Bin]:
    """stays: whether an ofmap can stay."""
    for name, of in _KINDS.items():
        yield from _ROW.either_way(name, of)
    if stays:
        yield Bin(
            name="an ofmap that stays",
            why="the two memories change places",
            hit=lambda seen: any(run.keep_ofmap for run in case_of(seen).runs),
        )
        yield Bin(
            name="two ofmaps that stay, one behind the other",
            why="the memories change places and back",
            hit=_ROW.pair(lambda one, two: one.keep_ofmap and two.keep_ofmap),
            aim=TEN,
        )
    yield _ROW.ten("halves, pointers and queues go round")
    yield Bin(
        name="a command in mid-pass",
        why="it waits until the pass before is over",
        hit=_early,
    )


def _early(seen: Seen) -> bool:
    expected, idle = cast(SparseAnswer, seen.expected), seen.gaps["command"]
    return bool((np.diff(expected.begins) > idle[1:] + 1).any())


def _mapped(name: str, why: str, says: Callable[[Mapping], bool], aim: str = "") -> Bin:
    """Hit where a pass is mapped so."""
    return Bin(
        name=name,
        why=why,
        hit=_passes(lambda one: says(one.strip.mapping)),
        aim=aim,
    )


def _of_passes(design: Scnn) -> Iterator[Bin]:
    yield from _of_axis("rows", design.grid_rows)
    yield from _of_axis("columns", design.grid_columns)
    yield from _of_groups()
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
    yield Bin(
        name="copies for windows to both sides",
        why="pooling across PEs, corners included",
        hit=_timings(lambda one: bool(one.pes.copy_sums.any())),
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
        hit=_passes(lambda one: one.strip.rows.start > 0 or one.strip.columns.start > 0),
        aim=FULL,
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


def _of_lists(design: Scnn) -> Iterator[Bin]:
    def ifmap(name: str, why: str, says: Callable[[LayerRun], bool], aim: str = SPARSE) -> Bin:
        return Bin(
            name=name,
            why=why,
            hit=lambda seen: any(says(run) for run in case_of(seen).runs),
            aim=aim,
        )

    yield ifmap("an ifmap of zeros", "lists of nothing", lambda run: not run.operands.ifmap.any())
    yield ifmap("weights of zeros", "lists of nothing", lambda run: not run.operands.weight.any())
    yield ifmap(
        "no zero at all",
        "the longest lists",
        lambda run: bool(run.operands.ifmap.all() and run.operands.weight.all()),
    )
    longest = (1 << design.index_bits) - 1
    yield Bin(
        name="a run of zeros longer than an index",
        why="placeholders in a list of activations",
        hit=_passes(lambda one: _placeholder(one, "ifmap", longest)),
        aim=SPARSE,
    )
    yield Bin(
        name="a run of zero weights longer than an index",
        why="placeholders in a list of weights",
        hit=_passes(lambda one: _placeholder(one, "weight", longest)),
        aim=SPARSE,
    )
    yield Bin(
        name="a block that a PE skips",
        why="it gives back its weights unread",
        hit=_timings(lambda one: bool(one.pes.skip.any())),
    )
    yield Bin(
        name="products that wait for banks",
        why="the arbiter grants the lowest lanes",
        hit=_timings(lambda one: bool(one.pes.conflict.any())),
    )
    if design.iaram_vectors <= MOST_FULL_VECTORS:
        yield Bin(
            name="the last vector of an IARAM",
            why="an address one short",
            hit=_passes(lambda one: _fills(one, design)),
            aim=FULL,
        )


def _of_failing(design: Scnn) -> Iterator[Bin]:
    """Of lists that are read from failing cells."""
    if design.activation_memory.exact:
        return
    yield Bin(
        name="a value at a place beside its PE's tile",
        why="a wrong index moves all behind it; what has an output in the region is added there",
        hit=_passes(_beside_the_tile),
    )
    yield Bin(
        name="a value in a list of nothing",
        why="a block that was to be skipped is multiplied",
        hit=_passes(lambda one: bool((_ifmap_empty(one)[0] & ~_ifmap_empty(one)[1]).any())),
    )
    yield Bin(
        name="a list whose values are all read as 0",
        why="its block is skipped",
        hit=_passes(lambda one: bool((~_ifmap_empty(one)[0] & _ifmap_empty(one)[1]).any())),
    )
    yield Bin(
        name="a list of several vectors of which the first is read as zeros",
        why="its block is not skipped",
        hit=_passes(_begins_with_zeros),
    )
    yield Bin(
        name="more vectors of the ofmap than an OARAM has",
        why="lists end where it does",
        hit=_passes(lambda one: _overflows(one, design)),
    )


def _begins_with_zeros(one: PassWords) -> bool:
    lists = one.strip.operands.computed
    return bool(((lists.lengths > 1) & ~lists.values[lists.starts[:-1]].any(axis=1)).any())


def _overflows(one: PassWords, design: Scnn) -> bool:
    made, mapping = one.strip.operands.made, one.strip.mapping
    givers = mapping.rows.givers * mapping.columns.givers
    return bool((vectors_by_pe(made, givers) > design.oaram_vectors).any())


def _ifmap_empty(one: PassWords) -> tuple[BoolArray, BoolArray]:
    """Which lists have no value: as they are meant, and as they are read."""
    operands = one.strip.operands
    return operands.ifmap.empty, operands.computed.empty


def _beside_the_tile(one: PassWords) -> bool:
    mapping, lists = one.strip.mapping, one.strip.operands.computed
    y, x = decoded(mapping, lists.positions)
    beside = (y >= mapping.rows.phase_tile) | (x >= mapping.columns.phase_tile)
    return bool((beside & (lists.values != 0)).any())


def _fills(one: PassWords, design: Scnn) -> bool:
    """Whether the words fill the IARAM of every PE: of one that compresses, its rows of values."""
    words = one.words["ifmap"]
    first, wide = words[:, 0], 1 << (design.operand_bits - 2)
    all_wide = (np.where(first < 0, ~first, first) >= wide).all()
    fits = len(words) == design.iaram_vectors * one.strip.mapping.used_pes
    return bool(fits and (all_wide or not design.activation_memory.by_value))


def _placeholder(one: PassWords, port: str, longest: int) -> bool:
    """Whether an element of a list is a zero behind as many zeros as an index can say."""
    words = one.words[port][:, :-1]  # the last lane says that a list ends
    values, indices = words[:, 0::2], words[:, 1::2]
    return bool(((values == 0) & (indices == longest)).any())


def sparse_watches() -> tuple[Watch, ...]:
    """Queues of banks, FIFOs of weights, the queue of biases."""
    return (
        Watch(name="bank queue", path="*", wires=("occupied", "held")),
        Watch(name="weight FIFO", path="*", wires=("room", "arrived", "skip")),
        Watch(name="weight FIFO, both", path="*", wires=("write", "release", "complete")),
        Watch(name="bias queue", path="*bias*.queue.store", wires=("w_rdy", "r_en")),
    )


_INSIDE: tuple[tuple[str, str, str, tuple[int, ...]], ...] = (
    ("bank queue full", "no place for another product", "bank queue", (1, 3)),
    ("weight FIFO full", "the broadcast waits", "weight FIFO", (0, 2, 4, 6)),
    ("weight FIFO full and skipped", "a whole block is given back at once", "weight FIFO", (6,)),
    ("weight FIFO written and released at once", "its level stays", "weight FIFO, both", (3, 7)),
    ("bias queue full", "the port waits", "bias queue", (0, 2)),
    ("bias queue full and read", "the place is free a cycle later", "bias queue", (2,)),
)


def sparse_bins(design: Scnn) -> Iterator[Bin]:
    """Everything but the ports'."""
    yield channel_bin(lambda seen: case_of(seen).idle is None)
    yield from _in_sequence(stays=design.lists_as_meant)
    yield from _of_passes(design)
    yield from _of_lists(design)
    yield from _of_failing(design)

    def layers(seen: Seen) -> tuple[IntegerLayer, ...]:
        return tuple(
            IntegerLayer(
                layer=run.layer,
                operands=run.operands,
                operand_bits=design.operand_bits,
                accumulator_bits=design.accumulator_bits,
            )
            for run in case_of(seen).runs
        )

    yield from integer_bins(layers, design.operand_bits, design.accumulator_bits)
    for name, why, watch, values in _INSIDE:
        if watch == "bank queue" and design.bank_queue == 1:
            continue  # no queue
        mask = sum(1 << value for value in values)
        yield Bin(
            name=name,
            why=why,
            hit=lambda seen, watch=watch, mask=mask: bool(seen.inside.get(watch, 0) & mask),
            inside=True,
        )


__all__ = [
    "FULL",
    "HALOS",
    "LONG",
    "MOST_FULL_VECTORS",
    "SPARSE",
    "SUMS",
    "TEN",
    "sparse_bins",
    "sparse_watches",
]
