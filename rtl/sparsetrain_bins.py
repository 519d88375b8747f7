"""Bins of the sparse training machine: layers in segments, and steps in scratchpads."""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from archsim.machines.sparsetrain.design import SIDES, SparseTrain
from archsim.machines.sparsetrain.keeping import Kept
from archsim.machines.sparsetrain.model import SparseTrainAnswer
from archsim.machines.sparsetrain.tiling import COLUMNS, LAST
from archsim.machines.sparsetrain.work import LayerWork
from archsim.numbers import BoolArray
from rtl.coverage.bins import Bin, Seen

SHORT = "short dot products"
KEPT = "operands that are read again"
"""The aims (`rtl.sparsetrain_verification`)."""

PARTS = 4
"""Full blocks of one operand that no drawn layer's tile is sure to exceed."""


def segment_bins(design: SparseTrain) -> Iterator[Bin]:
    """Of a design with segments."""
    if design.segments == 1:
        return
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
    for name, why, says in found:
        yield Bin(name=name, why=why, hit=_split(says), aim=SHORT)


def scratchpad_bins(design: SparseTrain) -> Iterator[Bin]:
    """Of a design with scratchpads."""
    most = {"row": design.rows * design.depth, "column": design.columns * design.depth}
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


def _split(says: Callable[[LayerWork], bool]) -> Callable[[Seen], bool]:
    return lambda seen: _work(seen).cut.segments > 1 and says(_work(seen))


def _some_needed(work: LayerWork) -> bool:
    """Whether a PE takes some outputs of its segments, and not others."""
    if work.placed is None:
        return False
    pes, segments = work.design.pes, work.cut.segments
    short = -work.cut.columns % (pes * segments)
    padded: BoolArray = np.pad(work.placed, ((0, 0), (0, 0), (0, short)))
    sets = padded.reshape(*padded.shape[:2], -1, segments, pes)
    return bool((sets.any(axis=3) & ~sets.all(axis=3)).any())


__all__ = ["KEPT", "PARTS", "SHORT", "scratchpad_bins", "segment_bins"]
