"""Bins of cores that are walked by tiles, whatever their array is."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from archsim.layer.problem import Problem
from archsim.memory.tile_store import StoredOperand
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import columns_of as its
from archsim.tiled.design import CoreDesign
from archsim.tiled.operand_fit import stored_tiles
from archsim.tiled.trace import Answer
from rtl.benches.bench import Watch
from rtl.coverage.aims import ResetCase
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.port_bins import channel_bin, is_blocked
from rtl.coverage.row_bins import STATE, TEN, InARow
from rtl.gather_bins import gather_bins
from rtl.layer_sequence import SequenceCase
from rtl.tile_conformance import TileCase

EARLY = "early commands"
LARGE = "large tiles"
FAR = "far windows"
FULL = "full memories"
BIASES = "reset between biases"
"""Aims (`rtl.tile_aims`)."""

MOST_FULL_WORDS = 4_096
"""Of a memory that a case may fill."""

Bools = NDArray[np.bool_]
Part = tuple[TileCase, Answer]


def parts(seen: Seen) -> tuple[Part, ...]:
    """The layers of a case, each with what the model says of it."""
    case = seen.case.case if isinstance(seen.case, ResetCase) else seen.case
    if isinstance(case, SequenceCase):
        return tuple(zip(case.layers, case.answers, strict=True))
    assert isinstance(case, TileCase) and isinstance(seen.expected, Answer)
    return ((case, seen.expected),)


def _tiles(says: Callable[[IntArray], Bools]) -> Callable[[Seen], bool]:
    """Whether some tile of a case is as `says` finds in the command matrix."""
    return lambda seen: any(bool(says(answer.tiles).any()) for _, answer in parts(seen))


def _cases(says: Callable[[TileCase], bool]) -> Callable[[Seen], bool]:
    return lambda seen: any(says(case) for case, _ in parts(seen))


_ROW = InARow[TileCase](lambda seen: [case for case, _ in parts(seen)])


def _problem(case: TileCase) -> Problem:
    return case.design.numerics.problem(case.layer)


def _in_sequence() -> Iterator[Bin]:
    yield channel_bin(lambda seen: any(case.services is None for case, _ in parts(seen)))
    yield from _ROW.either_way("bias", lambda case: bool(case.layer.bias))
    yield from _ROW.either_way("ReLU", lambda case: bool(case.layer.relu))
    yield Bin(
        name="a layer of another order of tiles behind",
        why=STATE,
        hit=_ROW.pair(lambda one, two: one.tiling.order != two.tiling.order),
        aim=TEN,
    )
    yield _ROW.ten("pointers and halves go round")
    yield Bin(
        name="a command in mid-layer",
        why="the walker holds it back until the layer before has its tiles",
        hit=lambda seen: not seen.case.timed,
        aim=EARLY,
    )


def _of_tiles(columns: int) -> Iterator[Bin]:
    def tile(name: str, why: str, says: Callable[[IntArray], Bools], aim: str = "") -> Bin:
        return Bin(name=name, why=why, hit=_tiles(says), aim=aim)

    yield tile("sums over several tiles", "partial sums stay", lambda t: its(t).first_k == 0)
    yield tile("an ifmap tile kept", "it is not loaded again", lambda t: its(t).load_ifmap == 0)
    yield tile("a weight tile kept", "it is not loaded again", lambda t: its(t).load_weight == 0)
    yield tile(
        "several images in a tile",
        "the window's third counter",
        lambda t: its(t).tile_images > 1,
    )
    yield tile(
        "padding above and beside",
        "windows that begin before the ifmap are masked",
        lambda t: (its(t).row_start < 0) & (its(t).element_start < 0),
    )
    yield tile("several taps", "the walk over kernel rows", lambda t: its(t).taps > 1)
    yield tile("several runs", "dilated columns", lambda t: its(t).runs > 1)
    if columns > 1:
        yield tile(
            "a last step of fewer lanes",
            "rows that are not whole words are packed",
            lambda t: (its(t).step_lanes < columns) & (its(t).filter_steps > 1),
        )
    counters = "counters past their narrower powers of two"
    yield tile("a kernel above 7 rows", counters, lambda t: its(t).taps > 7, FAR)
    yield tile("a tile above 31 rows", counters, lambda t: its(t).pixel_rows > 31, LARGE)
    yield tile("a tile above 31 columns", counters, lambda t: its(t).pixel_columns > 31, LARGE)
    for name, column in (
        ("ifmap", cmd.IFMAP_WORDS),
        ("weight", cmd.WEIGHT_WORDS),
        ("output", cmd.OUTPUT_ROWS),
    ):
        yield tile(
            f"a tile above 255 {name} {'rows' if name == 'output' else 'words'}",
            counters,
            lambda t, column=column: t[:, column] > 255,
            LARGE,
        )
    yield tile("a run above 63 elements", counters, lambda t: its(t).run_length > 63, LARGE)
    yield tile("more than 15 filter steps", counters, lambda t: its(t).filter_steps > 15, LARGE)


def _of_layers() -> Iterator[Bin]:
    def layer(name: str, why: str, says: Callable[[TileCase], bool], aim: str = "") -> Bin:
        return Bin(name=name, why=why, hit=_cases(says), aim=aim)

    for order in ("filters_outer", "pixels_outer"):
        yield Bin(
            name=f"{order.replace('_', ' ')}, several tiles of channels, filters and pixels",
            why="all loops of the tile walk turn, in this order",
            hit=lambda seen, order=order: any(
                case.tiling.order == order
                and all(np.ptp(answer.tiles[:, axis]) > 0 for axis in _AXES)
                for case, answer in parts(seen)
            ),
            aim=TEN,
        )
    yield layer(
        "groups side by side, the last block not full",
        "empty groups leave as zeros",
        lambda case: case.tiling.groups > 1 and _problem(case).groups % case.tiling.groups > 0,
    )
    yield layer(
        "strides and dilation of both axes",
        "products of the tile walk that are else 1",
        lambda case: (
            (p := _problem(case)).dilation_height > 1
            and p.dilation_width > 1
            and p.stride_height > 1
            and p.stride_width > 1
        ),
        FAR,
    )
    yield layer(
        "a window wholly before the ifmap",
        "no row of it is read",
        lambda case: _outside(_problem(case), before=True),
        FAR,
    )
    yield layer(
        "a window wholly behind the ifmap",
        "no row of it is read",
        lambda case: _outside(_problem(case), before=False),
        FAR,
    )
    yield layer(
        "a single output",
        "the first word is the last",
        lambda case: (p := _problem(case)).images * p.groups * p.filters * p.out_height
        * p.out_width == 1,
        TEN,
    )  # fmt: skip


_AXES = (cmd.TILE_CHANNEL, cmd.TILE_FILTER, cmd.TILE_COLUMN)


def _outside(problem: Problem, *, before: bool) -> bool:
    """Whether the first (last) row of windows has no row of the ifmap."""
    if before:
        return problem.pad_top >= (problem.kernel_height - 1) * problem.dilation_height + 1
    last = (problem.out_height - 1) * problem.stride_height - problem.pad_top
    return last >= problem.height


def _of_memories(design: CoreDesign, filled: Collection[str]) -> Iterator[Bin]:
    for name, column in (
        ("ifmap", cmd.IFMAP_WORDS),
        ("weight", cmd.WEIGHT_WORDS),
        ("bias", cmd.BIAS_WORDS),
        ("accumulator", cmd.OUTPUT_ROWS),
    ):
        depth = design.depth(name)
        if name in filled:
            yield Bin(
                name=f"the last word of the {name} memory",
                why="an address one short, a depth one less",
                hit=_tiles(
                    lambda t, column=column, depth=depth: (
                        (t[:, column] == depth) & (its(t).row_words == 0)
                    )
                ),
                aim=FULL,
            )


def _between_biases(seen: Seen) -> bool:
    """Whether a reset cuts a tile whose results wait, behind some of its biases, and biases follow.

    The output stage stops when its queue is full.
    """
    if seen.case.before is None or not is_blocked(seen.case):
        return False
    interrupted, _ = seen.case.before
    assert isinstance(interrupted, TileCase)
    first = its(interrupted.answer().tiles[:1])
    more = first.filter_steps[0] > interrupted.design.output_queue_depth
    return bool(more and first.has_bias[0] and parts(seen)[0][0].layer.bias)


def _of_stores(design: CoreDesign) -> Iterator[Bin]:
    """What memories whose capacity hangs on values may show of their tiles."""

    def happened(operand: str, what: str, seen: Seen) -> bool:
        return any(what in found[operand].happened() for found in _stored(seen))

    for operand, store in design.stores.items():
        for what, why in store.happenings.items():
            yield Bin(name=f"{operand}: {what}", why=why, hit=partial(happened, operand, what))


def _stored(seen: Seen) -> Iterator[Mapping[str, StoredOperand]]:
    """What the tiles of each layer take, in the halves into which they are loaded."""
    halves: Mapping[str, int] = {}
    for case, answer in parts(seen):
        numerics = case.design.numerics
        arrays = numerics.stored(case.layer, numerics.take(case.layer, case.operands))
        yield stored_tiles(case.design, _problem(case), case.tiling, arrays, halves)
        halves = answer.halves(halves)


QUEUES = ("ifmap", "weight", "bias", "load", "stream", "output")
"""Of the dispatcher."""


def _queues(decoupled: bool) -> dict[str, str]:
    named = {
        f"{name} command queue": f"dispatcher.{name}_queue"
        for name in QUEUES
        if decoupled or name != "load"
    }
    return {**named, "ofmap queue": "output_stage.queue"}


def tile_watches(*, decoupled: bool) -> tuple[Watch, ...]:
    """Queues, and credits for tiles and accumulators."""
    queues = _queues(decoupled).items()
    return (
        *(Watch(name=name, path=f"{path}.store", wires=("w_rdy", "r_en")) for name, path in queues),
        *(
            Watch(name=f"{name}, both", path=f"{path}.store", wires=("w_en", "r_rdy", "r_en"))
            for name, path in queues
        ),
        Watch(name="accumulators", path="free_accumulators", wires=("available",)),
    )


def _inside(*, decoupled: bool) -> Iterator[Bin]:
    def bit(name: str, why: str, watch: str, values: tuple[int, ...]) -> Bin:
        mask = sum(1 << value for value in values)
        return Bin(
            name=name,
            why=why,
            hit=lambda seen: bool(seen.inside.get(watch, 0) & mask),
            inside=True,
        )

    for name in _queues(decoupled):
        yield bit(f"{name} full", "a place more or less shows when none is left", name, (0, 2))
        yield bit(f"{name} full and read", "the place is free a cycle later", name, (2,))
        yield bit(f"{name} written and read", "its level stays", f"{name}, both", (7,))
    yield bit("no accumulators free", "the array waits for the output stage", "accumulators", (0,))


def tile_bins(design: CoreDesign, filled: Collection[str], *, decoupled: bool) -> Iterator[Bin]:
    """Sequences, tiles, layers, memories, and what goes on inside the core.

    filled: memories that a case can fill (`rtl.full_memories.full_layer`).  decoupled: stationary
    operands have a walk, and a queue, of their own.
    """
    yield from _in_sequence()
    yield from _of_tiles(mc.machine_record(design.machine).columns)
    yield from _of_layers()
    yield Bin(
        name=BIASES,
        why="the next layer's begin with the first one",
        hit=_between_biases,
        aim=BIASES,
    )
    yield from _of_memories(design, filled)
    yield from gather_bins(design, parts)
    yield from _of_stores(design)
    yield from _inside(decoupled=decoupled)


__all__ = [
    "BIASES",
    "EARLY",
    "FAR",
    "FULL",
    "LARGE",
    "MOST_FULL_WORDS",
    "TEN",
    "parts",
    "tile_bins",
    "tile_watches",
]
