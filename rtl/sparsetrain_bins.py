"""Bins of the sparse training machine: sums of two tiles, segments, steps in scratchpads."""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from archsim.machines.sparsetrain.block_work import PRODUCTS
from archsim.machines.sparsetrain.design import SIDES, SparseTrain
from archsim.machines.sparsetrain.keeping import Kept
from archsim.machines.sparsetrain.model import SparseTrainAnswer
from archsim.machines.sparsetrain.tiling import COLUMNS, FIRST, LAST
from archsim.machines.sparsetrain.timing import START, WORDS
from archsim.machines.sparsetrain.work import LayerWork
from archsim.numbers import BoolArray
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import EDGES
from rtl.sparsetrain_floats import float_sums_bins, split_floats_bins

SHORT = "short dot products"
HALF_FULL = "short dot products, half of them zeros"
KEPT = "operands that are read again"
BLOCKS = "tiles of some blocks, and an ofmap that waits"
IN_A_MASK = "reset between words of a mask"
"""The aims (`rtl.sparsetrain_verification`)."""

PARTS = 4
"""Full blocks of one operand that no drawn layer's tile is sure to exceed."""


def sums_bins(design: SparseTrain) -> Iterator[Bin]:
    """Of the sums, of which two tiles have a half each."""
    yield Bin(
        name="sums that go on while the tile before leaves",
        why="both halves of the sums are read in one cycle, one to be added to, one to leave",
        hit=go_on_beside,
        aim=BLOCKS,
    )
    if design.floating:
        yield from float_sums_bins()
        return
    yield Bin(
        name="a step of lowest by lowest values in all lanes",
        why="its sum is the largest that the bits of a step are for",
        hit=_largest_step,
        aim=EDGES,
    )


def mask_bins(design: SparseTrain) -> Iterator[Bin]:
    """Of the masks of outputs that are needed, of a design that reads them."""
    if design.skip_outputs:
        yield Bin(
            name=IN_A_MASK,
            why="words that were to come are taken from the mask of the run behind it",
            hit=_reset_in_a_mask,
            aim=IN_A_MASK,
        )


def segment_bins(design: SparseTrain) -> Iterator[Bin]:
    """Of a design with segments."""
    if design.segments == 1:
        return
    if design.floating:
        yield from split_floats_bins()
    yield Bin(
        name="a layer that is whole beside segments",
        why="its sums go into the banks of one segment, those of all lanes into each",
        hit=lambda seen: _work(seen).cut.segments == 1,
    )
    found: tuple[tuple[str, str, Callable[[LayerWork], bool]], ...] = (
        ("a layer in segments", "lanes choose in a ring of their own", lambda _: True),
        (
            "columns that leave segments empty",
            "the last column vectors of PEs hold fewer columns, and some PEs none",
            lambda work: bool((work.blocks[:, COLUMNS] % (design.pes * design.segments)).any()),
        ),
        (
            "segments whose sums go on in the next block",
            "what they read of their banks is added to",
            lambda work: bool((work.blocks[:, LAST] == 0).any()),
        ),
        (
            "segments of which some are needed",
            "lanes of the others are idle, their sums stay, and the queue drops them together",
            _some_needed,
        ),
    )
    yield Bin(
        name="segments of several steps, about half full",
        why="lanes take what is ahead from neighbours, which are those of their segment alone",
        hit=_split(_half_full),
        aim=HALF_FULL,
    )
    for name, why, says in found:
        yield Bin(name=name, why=why, hit=_split(says), aim=SHORT)


def scratchpad_bins(design: SparseTrain) -> Iterator[Bin]:
    """Of a design with scratchpads."""
    columns = design.columns // design.segments
    most = {"row": design.rows * design.depth, "column": columns * design.depth}
    for number, name in enumerate(SIDES):
        room = design.kept_steps(name)
        if not room:
            continue
        found: tuple[tuple[str, str, Callable[[Kept], bool]], ...] = (
            (
                f"{name}s read again",
                "no port is asked, and what the ring holds is another block's",
                lambda kept: bool(kept.again.any()),
            ),
            (
                f"{name}s kept where others lay",
                "what is read must be what was written last",
                lambda kept: len(np.unique(kept.place[kept.keep])) < kept.keep.sum(),
            ),
        )
        if room < PARTS * most[name]:
            part = (
                f"{name}s of which a part is kept",
                "they come from the port and from the scratchpad by turns",
                lambda kept: bool(kept.again.any() and (~kept.again & ~kept.keep).any()),
            )
            found += (part,)
        for called, why, says in found:
            yield Bin(name=called, why=why, hit=_kept(number, says), aim=KEPT)
    if all(design.kept_steps(name) for name in SIDES):
        yield Bin(
            name="one operand read again beside the other from its port",
            why="loaders go on apart from one another, with ports that wait",
            hit=lambda seen: bool(np.not_equal(*(one.again for one in _work(seen).kept)).any()),
            aim=KEPT,
        )


def _kept(number: int, says: Callable[[Kept], bool]) -> Callable[[Seen], bool]:
    return lambda seen: says(_work(seen).kept[number])


def _work(seen: Seen) -> LayerWork:
    return cast(SparseTrainAnswer, seen.expected).work


def _reset_in_a_mask(seen: Seen) -> bool:
    """Whether the run before ended between two words of its one tile's mask, and this one has one
    that is offered before its command."""
    if seen.case.before is None or _work(seen).needed is None:
        return False
    if seen.gaps["needed"][0] >= seen.gaps["command"][0]:
        return False
    interrupted, cycles = seen.case.before
    answer = cast(SparseTrainAnswer, interrupted.answer())
    crossed = answer.crossed["needed"]
    one = len(crossed) > 1 and answer.work.blocks[:, FIRST].sum() == 1
    return bool(one and crossed[0] < cycles <= crossed[-1])


def _largest_step(seen: Seen) -> bool:
    """Whether a row and a column of as many values as lanes, or more, are the lowest throughout."""
    work = _work(seen)
    low = -(1 << (work.design.operand_bits - 1))
    rows, columns = ((one == low).all(axis=2).any(axis=1) for one in work.vectors)
    return work.vectors[0].shape[2] >= work.design.lanes and bool((rows & columns).any())


def go_on_beside(seen: Seen) -> bool:
    """Whether PEs add to sums of a block before while words of the tile before cross."""
    answer = cast(SparseTrainAnswer, seen.expected)
    work, times = answer.work, answer.times
    earlier = work.loads[:, WORDS].cumsum() - work.loads[:, WORDS]
    goes_on = (work.blocks[:, FIRST] == 0) & (earlier > 0)
    left = answer.crossed["ofmap"][earlier[goes_on] - 1]
    return bool((left > times[goes_on, START] + work.design.pipeline_cycles).any())


def _split(says: Callable[[LayerWork], bool]) -> Callable[[Seen], bool]:
    return lambda seen: _work(seen).cut.segments > 1 and says(_work(seen))


def _half_full(work: LayerWork) -> bool:
    """Whether lanes differ in what is left for them, in several steps."""
    values = work.operands.ifmap, work.operands.weight
    shares = [np.count_nonzero(one) / one.size for one in values]
    products = int(work.work[:, PRODUCTS].sum())
    return work.cut.block_steps > 1 and products > 32 and all(0.2 < one < 0.9 for one in shares)


def _some_needed(work: LayerWork) -> bool:
    """Whether a PE takes some outputs of its segments, and not others."""
    if work.placed is None:
        return False
    pes, segments = work.design.pes, work.cut.segments
    short = -work.cut.columns % (pes * segments)
    padded: BoolArray = np.pad(work.placed, ((0, 0), (0, 0), (0, short)))
    sets = padded.reshape(*padded.shape[:2], -1, segments, pes)
    return bool((sets.any(axis=3) & ~sets.all(axis=3)).any())


__all__ = [
    "BLOCKS",
    "HALF_FULL",
    "IN_A_MASK",
    "KEPT",
    "PARTS",
    "SHORT",
    "go_on_beside",
    "mask_bins",
    "scratchpad_bins",
    "segment_bins",
    "sums_bins",
]
