"""Compressed memories of activations alone, and in cores that read a vector in every cycle."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scnn_stream_bench
from faults import Patch
from scnn_bench import event_differences
from scnn_faults import in_packer, in_unpacker, rewritten
from scnn_passes import Shape, random_run
from scnn_stream_bench import StreamBench, random_lists

from archsim.machines.scnn.design import Scnn
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import PlainStream
from rtl.memories.boveda_stream import memories as scnn_stream_memories
from rtl.scnn import COUNTS, counts_of
from rtl.sparse_conformance import SparseCase

ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
    weight_fifo_vectors=8, filter_group=2, iaram_bytes=300, oaram_bytes=200, index_bits=2,
    operand_bits=8, bank_queue=2, activation_memory=BovedaStream(group=2),
)  # fmt: skip
PAIR = replace(ONE, grid_columns=2, bank_entries=24, activation_memory=BovedaStream(group=1))


ALONE = (
    ONE,
    replace(ONE, ifmap_lanes=3, activation_memory=BovedaStream(group=1), operand_bits=4),
    replace(ONE, ifmap_lanes=4, activation_memory=BovedaStream(group=2, expansion=3),
            operand_bits=16),
)  # fmt: skip
LENGTHS = (1, 2, 3, 5, 13, 20)


def wrong_alone(design: Scnn, often: float, lengths: tuple[int, ...] = LENGTHS) -> list[str]:
    """What the memories alone do wrong, with contents of many lengths in both."""
    rng = np.random.default_rng(5)
    wrong: list[str] = []
    for exchanged in (0, 1):
        contents: list[Any] = []
        for number, vectors in enumerate(lengths):
            width = design.operand_bits - number * exchanged % design.operand_bits
            for name in ("ifmap", "ofmap"):
                contents.append((name, random_lists(design, rng, vectors, width), often))
        bench = StreamBench(design=design, seed=8, exchanged=exchanged)
        wrong += bench.run(contents)
    return wrong


@pytest.mark.parametrize("often", [1.0, 0.5])
@pytest.mark.parametrize("design", ALONE, ids=["8 bits", "4 bits", "16 bits"])
def test_a_vector_a_cycle_is_always_there(design: Scnn, often: float) -> None:
    """Read across the end of the content again and again, without a cycle of waiting; every word
    of every SRAM is the codec's."""
    assert wrong_alone(design, often) == []


@pytest.mark.parametrize("channels", [1, 2, 3, 9])
def test_short_contents_in_a_core(channels: int) -> None:
    """Every PE does in every cycle what the oracle's does: lists of weights of one vector, groups
    of one filter, blocks that are skipped."""
    shape = Shape(plane=(1, 2), channels=channels, filters=5)
    design = replace(PAIR, filter_group=1, banks=8)
    run = random_run(design, shape, seed=4, density=(0.9, 1.0))
    ifmap = run.operands.ifmap.copy()
    ifmap[:, 1:2] = 0
    run = replace(run, operands=replace(run.operands, ifmap=ifmap))
    assert event_differences(SparseCase(design=design, runs=(run,))) == []


def test_plain_memories_count_no_rows() -> None:
    assert counts_of(replace(ONE, activation_memory=PlainStream())) == COUNTS


# faults, which the memories alone show


def _in_memories(*fault: str) -> Patch:
    return rewritten(scnn_stream_bench, scnn_stream_memories, "StreamMemories", *fault)


MUTATIONS: dict[str, Patch] = {
    "the widest groups take no bits": in_unpacker("end.eq(p + w),", "end.eq(p + (w & 7)),"),
    "a bit of the row before is left": in_packer("begun.eq(Mux(full, high, low))", "begun.eq(low)"),
    "the pointer not reset at the restart": in_unpacker(
        "next_p.eq(Mux(restarts, 0,", "next_p.eq(Mux(self.rewind, 0,"
    ),
    "the row not reset at the restart": in_unpacker(
        "next_row.eq(Mux(restarts, 0,", "next_row.eq(Mux(self.rewind, 0,"
    ),
    "the even row is the odd one": in_unpacker(
        "self.even_address.eq((next_row + 1)[1:])", "self.even_address.eq(next_row[1:])"
    ),
    "flags of the vector behind": _in_memories("marks.eq(found[1])", "marks.eq(0)"),
    "a vector that waits is lost": _in_memories("with m.If(advance):", "with m.If(1):"),
    "widths of vectors that are taken back": _in_memories(
        'port["write"] & port["append"]', 'port["write"]'
    ),
    "the restart a vector late": _in_memories("reading + 1 == count", "reading == count"),
    "the restart forgotten": _in_memories("self.flush | (advance & last)", "self.flush"),
    "entries of the other memory": _in_memories(
        'mine = self.stores[name][kind], oaram if name == "oaram" else ~oaram',
        'mine = self.stores[name][kind], oaram if name == "iaram" else ~oaram',
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[name](monkeypatch)
    assert wrong_alone(ONE, 0.7, (1, 2, 3, 7, 15))
