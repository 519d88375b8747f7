"""Bins of the sparse training machine: layers that are whole, and split into segments."""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.sparsetrain.model import SparseTrainAnswer
from archsim.machines.sparsetrain.tiling import COLUMNS, LAST
from archsim.machines.sparsetrain.work import LayerWork
from archsim.numbers import BoolArray
from rtl.coverage.bins import Bin, Seen

SHORT = "short dot products"
"""The aim (`rtl.sparsetrain_verification`)."""


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


__all__ = ["SHORT", "segment_bins"]
