"""Outputs packed into words: closed forms against rows counted one by one; no byte is wasted."""

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.layer.problem import Tiling
from archsim.machine.registry import load_design
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled import tile_words
from archsim.tiled.commands import commands_of
from archsim.tiled.design import CoreDesign
from archsim.tiled.gaps import NO_GAPS, join_gaps, ofmap_ready
from archsim.tiled.machine_vector import machine_record
from archsim.tiled.packing import layer_words, output_units, row_of_word
from archsim.tiled.schedule import schedule
from archsim.tiled.walk import walk
from rtl.stepped.output_rows import completed, vectors_of
from workloads.builtin import builtin, networks
from workloads.layers import Conv2d

LARGE = Plain(capacity_bytes=1 << 20)
MEMORIES: dict[str, Any] = {
    "ifmap_memory": LARGE,
    "weight_memory": LARGE,
    "accumulator_memory": LARGE,
}
systolic = st.builds(
    Systolic,
    rows=st.integers(1, 5),
    columns=st.integers(1, 7),
    dataflow=st.sampled_from(DATAFLOWS),
    **{name: st.just(memory) for name, memory in MEMORIES.items()},
)


@st.composite
def vsq(draw: st.DrawFn) -> Vsq:
    """Vectors shorter and longer than a row, of any widths, with and without scales."""
    lanes = draw(st.sampled_from([1, 2, 3, 4, 6]))
    vector = draw(
        st.one_of(
            st.integers(1, 4).map(lambda n: n * lanes),
            st.sampled_from([n for n in (1, 2, 3, 4, 6) if lanes % n == 0]),
        )
    )
    return Vsq(
        lanes=lanes, vector=vector, hold_cycles=draw(st.integers(1, 4)),
        activation_bits=draw(st.sampled_from([3, 4, 6])),
        activation_scale_bits=draw(st.sampled_from([0, 4, 5, 6])), collector_bits=30, **MEMORIES,
    )  # fmt: skip


designs = st.one_of(systolic, vsq())


@st.composite
def walks(draw: st.DrawFn) -> tuple[CoreDesign, Conv2d, Tiling, IntArray]:
    """A design and the tiles of a layer in any tiling."""
    design = draw(designs)
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    groups = whole(1, 3)
    layer = Conv2d(
        name="c", channels=groups * whole(1, 4), filters=groups * whole(1, 17),
        ifmap_height=whole(1, 5), ifmap_width=whole(1, 5), kernel_height=1, kernel_width=1,
        groups=groups, batch=whole(1, 2),
    )  # fmt: skip
    problem, together = design.numerics.problem(layer), int(design.machine[mc.OUTPUT_VECTOR])
    filters = -(-whole(1, problem.filters) // together) * together
    tiling = Tiling(
        pixel_rows=whole(1, problem.out_height), pixel_columns=whole(1, problem.out_width),
        filters=min(filters, problem.filters), channels=whole(1, problem.channels),
        order=draw(st.sampled_from(["pixels_outer", "filters_outer"])),
    )  # fmt: skip
    return design, layer, tiling, walk(problem.vector(), tiling.vector(), design.machine)


@settings(max_examples=300, deadline=None)
@given(walks())
def test_rows_that_complete_words(found: tuple[CoreDesign, Conv2d, Tiling, IntArray]) -> None:
    """The words of every tile, and the row of each, against rows counted one by one."""
    design, layer, _, tiles = found
    machine, words = design.machine, 0
    record = machine_record(machine)
    commands = commands_of(tiles)
    for at, vectors in completed(record, commands):
        row, command = tiles[at], commands[at]
        rows = [number for number, done in enumerate(chain(*vectors)) if done]
        assert row[cmd.OUTPUT_WORDS] == len(rows)
        assert [row_of_word(row, word, machine) for word in range(len(rows))] == rows
        assert output_units(row, machine) == sum(map(sum, vectors_of(record, command)))
        assert command.output_rows == sum(map(len, vectors_of(record, command)))
        words += len(rows)
    assert words == layer_words(design.numerics.problem(layer).vector(), machine)
    assert not tiles[tiles[:, cmd.LAST_K] == 0, cmd.OUTPUT_WORDS].any()
    assert tiles[:, cmd.ENDS_LAYER].tolist() == [0] * (len(tiles) - 1) + [1]


NO_SERVICES: IntArray = np.zeros((5, pn.SERVICE_COLUMNS), np.int64)
DRAIN = [pn.STREAM_START, pn.DRAIN_START, pn.DRAIN_END, pn.FIRST_OUT, pn.LAST_OUT]


@settings(max_examples=150, deadline=None)
@given(walks())
def test_a_port_that_never_waits_needs_no_steps(
    found: tuple[CoreDesign, Conv2d, Tiling, IntArray],
) -> None:
    """The closed form of a free port is what stepping through the rows gives."""
    design, _, _, tiles = found
    words = int(tiles[:, cmd.OUTPUT_WORDS].sum())
    stepped = join_gaps([np.zeros(0, np.int64)] * 4 + [np.arange(words) + 1])
    plan = schedule(tiles, design.machine, NO_SERVICES, NO_GAPS)
    assert np.array_equal(
        plan[:, DRAIN], schedule(tiles, design.machine, NO_SERVICES, stepped)[:, DRAIN]
    )
    ready = ofmap_ready(tiles, plan, design.machine, stepped)
    out = plan[tiles[:, cmd.OUTPUT_WORDS] > 0]
    ends = np.cumsum(tiles[tiles[:, cmd.OUTPUT_WORDS] > 0, cmd.OUTPUT_WORDS])
    assert ready[ends - 1].tolist() == out[:, pn.LAST_OUT].tolist()
    assert ready[np.concatenate([[0], ends[:-1]])].tolist() == out[:, pn.FIRST_OUT].tolist()


@settings(max_examples=150, deadline=None)
@given(walks(), st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_a_port_that_waits_holds_up_reads(
    found: tuple[CoreDesign, Conv2d, Tiling, IntArray], pattern: list[int]
) -> None:
    """Reads and crossings of every tile, by lists and loops."""
    design, _, _, tiles = found
    words = int(tiles[:, cmd.OUTPUT_WORDS].sum())
    gaps = np.resize(np.array(pattern), words)
    given_ = join_gaps([np.zeros(0, np.int64)] * 4 + [np.cumsum(gaps + 1)])
    plan = schedule(tiles, design.machine, NO_SERVICES, given_)
    ready = ofmap_ready(tiles, plan, design.machine, given_)
    crossed: list[int] = []
    depth, latency = design.output_queue_depth, design.output_latency_cycles
    for at, vectors in completed(machine_record(design.machine), commands_of(tiles)):
        now, rows = int(plan[at, pn.DRAIN_START]), 0
        for number, done in enumerate(vectors):
            last = len(crossed) + sum(done) - 1 - depth
            now = max(now, crossed[last] + 1 if sum(done) and last >= 0 else 0)
            assert number or now == plan[at, pn.DRAIN_START]
            for completes in done:
                if completes:
                    before = crossed[-1] if crossed else -1
                    assert ready[len(crossed)] == now + latency
                    crossed.append(max(now + latency, before + 1 + int(gaps[len(crossed)])))
                now, rows = now + 1, rows + 1
                if rows == tiles[at, cmd.OUTPUT_ROWS]:
                    assert plan[at, pn.DRAIN_END] == now
    assert plan[-1, pn.LAST_OUT] == crossed[-1]


@settings(max_examples=100, deadline=None)
@given(systolic, st.integers(1, 20), st.integers(1, 20))
def test_outputs_leave_in_the_order_of_the_rows(
    design: Systolic, filters: int, pixels: int
) -> None:
    """Step by step or block by block, the outputs of a row side by side."""
    part = np.arange(filters * pixels).reshape(pixels, filters)
    moving = design.dataflow == "input_stationary"
    given_ = part.T if moving else part
    along, across = given_.shape
    wanted = [
        given_[a, b]
        for first in range(0, across, design.columns)
        for a in range(along)
        for b in range(first, min(first + design.columns, across))
    ]
    assert tile_words.as_rows(given_, design.columns).tolist() == wanted


DESIGNS = ("edge-16", "cloud-128", "tpu-v1", "volta", "vsq-5nm", "vsq-16", "vsq-baseline")


@pytest.mark.parametrize("name", DESIGNS)
def test_every_network_moves_what_it_computes(name: str) -> None:
    """Within 5 %, and never less: a layer's words do not depend on its tiling (see above)."""
    design = load_design(name)
    assert isinstance(design, CoreDesign)
    word_bytes = -(-design.word_bits("ofmap") // 8)
    for network in networks():
        moved = computed = 0.0
        for layer in builtin(network).matrix_layers:
            problem = design.numerics.problem(layer)
            pixels = problem.images * problem.groups * problem.out_height * problem.out_width
            if isinstance(design, Vsq) and design.output.scaled:
                form = design.output.form
                scales = -(-problem.filters // (form.vector or 1)) * (form.scale_bits or 0)
                bits = problem.filters * form.bits + scales
            else:
                bits = problem.filters * design.data_ports[3].lane_bits[0]
            moved += layer_words(problem.vector(), design.machine) * word_bytes
            computed += pixels * bits / 8
        assert 1 <= moved / computed < 1.05, network
