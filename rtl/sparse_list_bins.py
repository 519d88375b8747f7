"""Bins of the sparse core: what its lists hold, and what failing cells make of them."""

from collections.abc import Callable, Iterator

import numpy as np

from archsim.codecs.zero_run import BoolArray
from archsim.machines.scnn.addresses import decoded
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.failing_sums import failing_places
from archsim.machines.scnn.lists import vectors_by_pe
from archsim.machines.scnn.words import LayerRun, PassWords
from rtl.coverage.bins import Bin
from rtl.sparse_seen import FULL, MOST_FULL_VECTORS, SPARSE, case_of, passes, timings


def list_bins(design: Scnn) -> Iterator[Bin]:
    """Those that a design can have."""
    yield _run("an ifmap of zeros", "lists of nothing", lambda run: not run.operands.ifmap.any())
    yield _run("weights of zeros", "lists of nothing", lambda run: not run.operands.weight.any())
    yield _run(
        "no zero at all",
        "the longest lists",
        lambda run: bool(run.operands.ifmap.all() and run.operands.weight.all()),
    )
    longest = (1 << design.index_bits) - 1
    yield Bin(
        name="a run of zeros longer than an index",
        why="placeholders in a list of activations",
        hit=passes(lambda one: _placeholder(one, "ifmap", longest)),
        aim=SPARSE,
    )
    yield Bin(
        name="a run of zero weights longer than an index",
        why="placeholders in a list of weights",
        hit=passes(lambda one: _placeholder(one, "weight", longest)),
        aim=SPARSE,
    )
    yield Bin(
        name="a block that a PE skips",
        why="it gives back its weights unread",
        hit=timings(lambda one: bool(one.pes.skip.any())),
    )
    yield Bin(
        name="products that wait for banks",
        why="the arbiter grants the lowest lanes",
        hit=timings(lambda one: bool(one.pes.conflict.any())),
    )
    if design.iaram_vectors <= MOST_FULL_VECTORS:
        yield Bin(
            name="the last vector of an IARAM",
            why="an address one short",
            hit=passes(lambda one: _fills(one, design)),
            aim=FULL,
        )


def _run(name: str, why: str, says: Callable[[LayerRun], bool]) -> Bin:
    """Hit where it says so of a layer of the case."""
    return Bin(
        name=name,
        why=why,
        hit=lambda seen: any(says(run) for run in case_of(seen).runs),
        aim=SPARSE,
    )


def failing_bins(design: Scnn) -> Iterator[Bin]:
    """Of sums and lists that are read from failing cells."""
    if not design.accumulator_memory.exact:
        yield from _sum_bins(design)
    if design.activation_memory.exact:
        return
    yield Bin(
        name="a value at a place beside its PE's tile",
        why="a wrong index moves all behind it; what has an output in the region is added there",
        hit=passes(_beside_the_tile),
    )
    yield Bin(
        name="a value in a list of nothing",
        why="a block that was to be skipped is multiplied",
        hit=passes(lambda one: bool((_ifmap_empty(one)[0] & ~_ifmap_empty(one)[1]).any())),
    )
    yield Bin(
        name="a list whose values are all read as 0",
        why="its block is skipped",
        hit=passes(lambda one: bool((~_ifmap_empty(one)[0] & _ifmap_empty(one)[1]).any())),
    )
    yield Bin(
        name="a list of several vectors of which the first is read as zeros",
        why="its block is not skipped",
        hit=passes(_begins_with_zeros),
    )
    yield Bin(
        name="more vectors of the ofmap than an OARAM has",
        why="lists end where it does",
        hit=passes(lambda one: _overflows(one, design)),
    )


def _sum_bins(design: Scnn) -> Iterator[Bin]:
    def places(one: PassWords, half: int) -> tuple[BoolArray, BoolArray]:
        return failing_places(design, one.strip.mapping, half)

    def in_both(one: PassWords) -> bool:
        return one.strip.mapping.groups > 1 and all(places(one, n)[0].any() for n in range(2))

    yield Bin(
        name="sums of both halves in failing cells",
        why="a half has cells of its own, and a layer begins with the first",
        hit=passes(in_both),
    )
    if design.pes == 1:
        return
    yield Bin(
        name="a halo's sum in a failing cell",
        why="it is read once more, to be sent",
        hit=passes(lambda one: bool(places(one, 0)[1].any())),
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


__all__ = ["failing_bins", "list_bins"]
