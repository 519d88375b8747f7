"""Bins of the sparse core: all of a design; layers in a row, and queues inside."""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from archsim.machines.scnn.answer import SparseAnswer
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.words import LayerRun
from rtl.benches.bench import Watch
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import IntegerLayer, integer_bins
from rtl.coverage.port_bins import channel_bin
from rtl.coverage.row_bins import TEN, InARow
from rtl.sparse_list_bins import failing_bins, list_bins
from rtl.sparse_pass_bins import pass_bins
from rtl.sparse_seen import case_of

_ROW = InARow[LayerRun](lambda seen: case_of(seen).runs)


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
    yield from _in_sequence(stays=design.values_as_meant)
    yield from pass_bins(design)
    yield from list_bins(design)
    yield from failing_bins(design)

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


__all__ = ["sparse_bins", "sparse_watches"]
