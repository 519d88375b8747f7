"""The sparse training machine's model: against a stepped oracle, bounds, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparsetrain_designs import random_design
from sparsetrain_oracle import cycles_of, stepped
from written_networks import written

from archsim.blocks import Components, Events
from archsim.errors import InputError, require
from archsim.layer.intake import Drawing
from archsim.machines.sparsetrain.dealing import dealt, longest
from archsim.machines.sparsetrain.design import SPARSETRAIN, SparseTrain
from archsim.machines.sparsetrain.estimate import Estimate
from archsim.machines.sparsetrain.model import SparseTrainAnswer
from archsim.machines.sparsetrain.window import places
from archsim.memory import PlainBank, Use
from archsim.simulate import simulate
from rtl.cases import drawn_case, random_case
from rtl.coverage.integer_bins import EDGES
from rtl.draw import Draw
from rtl.sparsetrain_floats import CANCELS, LONE, NEAR, RISES, SUBNORMAL
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Operands
from workloads.reference import accumulate
from workloads.training.activity import Activity
from workloads.training.drawn import DrawnStep
from workloads.training.step import training_network

SMALL = SparseTrain(pes=2, lanes=4, rows=4, columns=4, depth=3)
LAYER = MatMul(name="product", m=9, n=11, k=50)


def answer_of(design: SparseTrain, layer: Any, operands: Operands) -> SparseTrainAnswer:
    return design.machine_model().answer(layer, operands, {})


def drawn(design: SparseTrain, layer: Any, density: float, needed: float | None = None) -> Operands:
    found = design.intake.synthetic(layer, Drawing(density=density))
    if needed is None:
        return found
    shape = accumulate(layer, found.ifmap, found.weight).shape
    return replace(found, needed=np.random.default_rng(1).random(shape) < needed)


@given(st.integers(0, 1 << 30))
@settings(max_examples=25, deadline=None)
def test_every_word_crosses_when_the_oracle_says(seed: int) -> None:
    """Cycles and words of every port, and what is counted, with stalls on each."""
    case = random_case(seed, 0, random_design(Draw(seed)), longest_words=700)
    answer: Any = case.answer()
    machine = stepped(answer)
    for name, crossed in cycles_of(machine).items():
        assert np.array_equal(crossed, answer.crossed[name]), name
    assert np.array_equal(np.array(machine.ofmap).reshape(answer.words["ofmap"].shape),
                          answer.words["ofmap"])  # fmt: skip
    assert {name: answer.actions[name] for name in machine.counts} == machine.counts
    assert answer.cycles == answer.crossed["ofmap"][-1] + 1


@pytest.mark.parametrize("aim", ["", EDGES, NEAR, CANCELS, LONE, RISES, SUBNORMAL])
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=6, deadline=None)
def test_floats_are_summed_as_the_oracle_says(aim: str, seed: int) -> None:
    """By exact fractions, cycle after cycle: NaNs, infinities, subnormals, what cancels; and
    cycles, which are those of integers with the same zeros where PEs have no more registers."""
    design = replace(random_design(Draw(seed)), operand_bits=16, accumulator_bits=32)
    floats = replace(design, operand="bf16")
    case: Any = drawn_case(seed, 0, floats, aim, longest_words=700)
    answer: Any = case.answer()
    machine = stepped(answer)
    assert np.array_equal(np.array(machine.ofmap).reshape(answer.words["ofmap"].shape),
                          answer.words["ofmap"])  # fmt: skip
    for name, crossed in cycles_of(machine).items():
        assert np.array_equal(crossed, answer.crossed[name]), name
    values = {name: (getattr(answer.taken, name) & 0x7FFF).astype(np.int16)
              for name in ("ifmap", "weight")}  # fmt: skip
    operands = design.intake.synthetic(case.layer, Drawing())
    integers = replace(operands, **values, needed=answer.taken.needed)
    beside = SparseTrainAnswer(design=design, layer=case.layer, operands=integers, gaps=case.idle)
    assert beside.actions == answer.actions
    assert beside.cycles == answer.cycles or design.pipelined_pes


@given(st.integers(0, 1 << 30))
@settings(max_examples=25, deadline=None)
def test_without_stalls_blocks_are_timed_alone(seed: int) -> None:
    case: Any = random_case(seed, 1, random_design(Draw(seed)), longest_words=1000)
    free = case.waiting({}).answer()
    assert np.array_equal(free.times, free._scanned[0])
    assert free.cycles == free.crossed["ofmap"][-1] + 1 == sum(free.where.values())
    assert min(free.where.values()) >= 0
    assert {name: len(words) for name, words in free.words.items()} == dict(free.counts)


def test_the_window_is_that_of_tensordash() -> None:
    """Eight inputs: its own slot, two later ones, and five aside."""
    assert [tuple(one) for one in places(2, 5)] == [
        (0, 0), (1, 0), (2, 0), (1, 1), (1, -1), (2, 2), (2, -2), (1, 3),
    ]  # fmt: skip
    assert len(SPARSETRAIN.window) == 8
    assert [tuple(one) for one in places(1, 5)] == [(0, 0), (1, 0), (1, 1), (1, -1), (1, 3)]
    assert len(places(0, 5)) == 1


def test_values_are_those_of_the_layer() -> None:
    layer = Conv2d(
        name="conv", channels=6, filters=4, groups=2, ifmap_height=7, ifmap_width=5,
        kernel_height=3, kernel_width=2, stride_height=2, dilation_width=2, pad_top=1,
        pad_right=1, batch=2,
    )  # fmt: skip
    for given_layer in (layer, replace(LAYER, batch=2, shared_weight=False)):
        operands: Any = drawn(SMALL, given_layer, 0.5, needed=0.3)
        expected = accumulate(given_layer, operands.ifmap, operands.weight) * operands.needed
        run = simulate(
            SMALL,
            Network(name="one", layers=(given_layer,), source="a test"),
            operands=lambda _, operands=operands: operands,
        )
        result: Any = run.layers[0]
        assert np.array_equal(result.ofmap, expected)
        assert result.products < given_layer.macs


def test_a_dense_layer_is_no_slower_than_without_skipping() -> None:
    """And each mechanism alone takes no more cycles than none; both no more than each."""
    dense = replace(SMALL, look_ahead=0, skip_outputs=False)
    inputs, outputs = replace(dense, look_ahead=2), replace(dense, skip_outputs=True)
    full = drawn(SMALL, LAYER, 1.0)
    cycles = {one: answer_of(one, LAYER, full).cycles for one in (dense, inputs, outputs, SMALL)}
    assert len(set(cycles.values())) == 1
    sparse = drawn(SMALL, LAYER, 0.4, needed=0.4)
    none, left, right, both = (
        answer_of(one, LAYER, sparse).cycles for one in (dense, inputs, outputs, SMALL)
    )
    assert both < min(left, right) < max(left, right) < none


def test_a_layer_is_turned_where_queues_are_more_even() -> None:
    """Filters of which some are hardly needed are uneven as columns, even as rows."""
    layer = MatMul(name="product", m=16, n=16, k=48)
    design = replace(SMALL, move_work=False)
    operands = drawn(design, layer, 1.0)
    needed = np.zeros((1, 16, 16), np.bool_)
    needed[..., ::2] = True
    answer = answer_of(design, layer, replace(operands, needed=needed))
    assert answer.work.cut.turned
    assert answer.where["barrier"] == 0
    mirrored = answer_of(design, layer, replace(operands, needed=needed.transpose(0, 2, 1)))
    assert not mirrored.work.cut.turned
    moved = answer_of(SMALL, layer, replace(operands, needed=needed))
    assert not moved.work.cut.turned and moved.where["barrier"] == 0


def test_work_is_moved_where_queues_are_uneven() -> None:
    """The same products; outputs leave in the order of their columns; PEs end closer together."""
    layer = MatMul(name="product", m=40, n=30, k=24)
    design = replace(SMALL, rows=8, columns=8)
    needed = np.random.default_rng(3).random((1, 40, 30)) < np.linspace(0, 1, 30)
    operands = replace(drawn(design, layer, 0.9), needed=needed)
    moved, stays = (
        answer_of(replace(design, move_work=move), layer, operands) for move in (True, False)
    )
    assert moved.actions["product"] == stays.actions["product"]
    assert moved.where["barrier"] < 0.6 * stays.where["barrier"]
    assert moved.cycles < stays.cycles
    assert np.array_equal(moved.ofmap, stays.ofmap)
    work, sums = moved.work, np.zeros_like(moved.sums)
    order = work.order
    assert order is not None
    words = iter(moved.words["ofmap"])
    for block in work.blocks[work.blocks[:, 8] == 1]:
        columns = work.columns_of(block)
        for row in range(block[1], block[1] + block[2]):
            for first in range(0, len(columns), design.pes):
                own = columns[first : first + design.pes]
                if work.needed is not None and work.needed[0, row, own].any():
                    sums[0, row, own] = next(words)[: len(own)]
    assert np.array_equal(sums, moved.sums) and next(words, None) is None


def test_short_dot_products_fill_segments() -> None:
    """Of a depthwise layer and of a 1 × 1 layer of few channels: the same products and values in
    fewer cycles; dot products of whole words stay as they are."""
    depthwise = Conv2d(
        name="depthwise", channels=6, filters=6, groups=6, ifmap_height=9, ifmap_width=9,
        kernel_height=3, kernel_width=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1,
    )  # fmt: skip
    few = MatMul(name="few channels", m=40, n=32, k=20)
    whole = MatMul(name="whole words", m=40, n=32, k=32)
    plain = SparseTrain(pes=2, lanes=16, rows=16, columns=32, depth=4)
    for layer, faster in ((depthwise, 1.25), (few, 1.4), (whole, 1.0)):
        operands = drawn(plain, layer, 1.0)
        without, split = (
            answer_of(replace(plain, segments=segments), layer, operands) for segments in (1, 4)
        )
        assert (split.work.cut.segments > 1) == (faster > 1)
        assert without.cycles >= faster * split.cycles
        assert without.actions["product"] == split.actions["product"]
        assert np.array_equal(without.ofmap, split.ofmap)


PLANE = Conv2d(
    name="plane", channels=8, filters=12, ifmap_height=6, ifmap_width=6, kernel_height=3,
    kernel_width=3, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1,
)  # fmt: skip
"""36 pixels, 12 filters, 18 steps: 9 tiles of rows, 3 of columns."""


def test_steps_that_are_kept_cross_once() -> None:
    """The same values in the same cycles; a step that fits comes once, the others as ever."""
    operands = drawn(SMALL, PLANE, 0.6)
    without = answer_of(SMALL, PLANE, operands)
    rows, columns = 36 * 18, 12 * 18
    assert (without.counts["row_mask"], without.counts["column_mask"]) == (3 * rows, 9 * columns)
    assert "row_keep" not in without.actions
    whole = replace(SMALL, row_scratchpad=4 * 18, column_scratchpad=columns)
    kept = answer_of(whole, PLANE, operands)
    assert (kept.counts["row_mask"], kept.counts["column_mask"]) == (rows, columns)
    assert kept.actions["row_keep"] == rows and kept.actions["row_again"] == 2 * rows
    assert kept.actions["column_keep"] == columns and kept.actions["column_again"] == 8 * columns
    part = answer_of(
        replace(whole, row_scratchpad=4 * 18 - 1, column_scratchpad=50), PLANE, operands
    )
    part.work.__dict__["cut"] = without.work.cut
    assert part.counts["row_mask"] == rows + 2 * 9 * 4 * 3  # of 6 blocks of a tile the last comes
    assert part.counts["column_mask"] == 9 * columns - 8 * 4 * 4 * 3  # the first 4 are kept
    for found in (kept, part):
        assert found.cycles == without.cycles and np.array_equal(found.ofmap, without.ofmap)
        assert (
            found.actions.items()
            >= {name: without.actions[name] for name in ("step", "row_load", "column_load")}.items()
        )
        assert found.result.bytes_moved["ofmap"] == without.result.bytes_moved["ofmap"]
    assert kept.result.total_bytes < part.result.total_bytes < without.result.total_bytes


def test_columns_of_an_order_of_their_own_are_not_kept() -> None:
    """Masked outputs: each tile deals its columns anew, unless work stays."""
    design = replace(SMALL, row_scratchpad=72, column_scratchpad=216)
    operands = drawn(design, PLANE, 0.6, needed=0.5)
    moved = answer_of(design, PLANE, operands)
    assert moved.actions["column_again"] == 0 < moved.actions["row_again"]
    stays = answer_of(replace(design, move_work=False), PLANE, operands)
    assert stays.actions["column_again"] > 0


def test_of_as_many_cycles_fewer_words_cross() -> None:
    """Turned where words of the ofmap are full then; turned or by columns, so that filters stay."""
    layer = MatMul(name="product", m=4, n=3, k=8)
    design = replace(SMALL, pes=4, rows=4, columns=4)
    turned = answer_of(design, layer, drawn(design, layer, 1.0))
    assert turned.work.cut.turned and turned.counts["ofmap"] == 3
    other = replace(layer, m=3, n=4)
    assert not answer_of(design, other, drawn(design, other, 1.0)).work.cut.turned
    rows, columns = (
        answer_of(replace(SMALL, **{f"{name}_scratchpad": 72}), PLANE, drawn(SMALL, PLANE, 1.0))
        for name in ("row", "column")
    )
    assert rows.work.cut.turned and not rows.work.cut.by_columns
    assert columns.work.cut.by_columns and not columns.work.cut.turned
    assert rows.actions["row_keep"] == columns.actions["column_keep"] == 216
    assert rows.actions["row_again"] == columns.actions["column_again"] == 8 * 216


def test_columns_are_dealt_there_and_back() -> None:
    assert dealt(np.array([1, 9, 3, 7, 5, 2]), 2).tolist() == [1, 3, 2, 4, 5, 0]
    assert dealt(np.array([1, 9, 3]), 2).tolist() == [1, 2, 0]
    assert longest(np.array([[4, 4, 4, 0]]), 2).tolist() == [8]
    assert longest(np.array([[5, 1, 1, 5], [0, 0, 0, 0]]), 2).tolist() == [6, 0]


def test_no_more_is_skipped_than_there_is() -> None:
    """A step for each row of the window at most, a lane for each product at least."""
    for density in (0.1, 0.5, 0.9):
        answer = answer_of(SMALL, LAYER, drawn(SMALL, LAYER, density, needed=0.5))
        actions = answer.actions
        assert actions["step"] * SMALL.lanes >= actions["product"]
        assert actions["step"] * SMALL.window_rows >= actions["fetch"]
        assert actions["step"] <= actions["fetch"]
        pairs = (answer.taken.ifmap[0, :, :, None] != 0) & (answer.taken.weight[0][None] != 0)
        needed = answer.taken.needed[0][:, None]
        assert actions["product"] == int((pairs & needed).sum())


def test_a_layer_of_which_nothing_is_needed_takes_no_cycles() -> None:
    operands = drawn(SMALL, LAYER, 0.5, needed=0.0)
    network = Network(name="one", layers=(LAYER,), source="a test")
    result: Any = simulate(SMALL, network, operands=lambda _: operands).layers[0]
    assert (result.cycles, result.products, result.total_bytes) == (0, 0, 0)
    assert not result.ofmap.any()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pes": 3}, "pes must be a power of two, not 3"),
        ({"columns": 2, "pes": 4}, "columns must be a multiple of the 4 PEs, not 2"),
        ({"segments": 3}, "segments must be a power of two, not 3"),
        ({"segments": 0}, "segments must be positive, not 0"),
        ({"segments": 8}, "segments must be at most the 4 lanes, not 8"),
        ({"segments": 4}, "columns must be a multiple of the 8 segments of PEs, not 4"),
        ({"look_ahead": 4}, "look_ahead must be 0 to 3, not 4"),
        ({"look_aside": -1}, "look_aside must be 0 to 5, not -1"),
        ({"lanes": 128}, "lanes must be at most 64, not 128"),
        ({"accumulator_bits": 8}, "accumulator_bits must be 16 to 62, not 8"),
        ({"row_scratchpad": -1}, "row_scratchpad must not be negative, not -1"),
        ({"column_scratchpad": 1.5}, "column_scratchpad must be a whole number, not 1.5"),
        ({"row_scratchpad": 1 << 40}, "row_scratchpad"),
        ({"operand": "fp16"}, "operand must be integer or bf16, not 'fp16'"),
        ({"operand": "bf16"}, "operand_bits must be 16 for bf16, not 8"),
        (
            {"operand": "bf16", "operand_bits": 16, "accumulator_bits": 40},
            "accumulator_bits must be 32 for bf16, not 40",
        ),
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(SMALL, **change)


@dataclass(frozen=True, kw_only=True)
class OtherBank(PlainBank):
    """Of SRAMs of another name; it gives back what was written, or not, and takes words, or not."""

    kind = "other"
    exact: bool = True  # pyright: ignore[reportIncompatibleMethodOverride]
    most_bits: int = 1 << 20

    def check(self, use: Use) -> None:
        require(use.word_bits <= self.most_bits, f"words must be of {self.most_bits} bits at most")

    def macros(
        self, name: str, shape: tuple[int, int, int, int], read: Events, write: Events
    ) -> Components:
        return super().macros(f"{name}.other", shape, read, write)


@pytest.mark.parametrize(
    ("name", "bits", "shapes"),
    [
        ("row", 4 * 8, {("row_buffer.words.other", 6, 32, 8)}),
        ("column", 4 * 8, {("column_buffer.words.other", 6, 32, 4)}),
        ("accumulator", 32, {("accumulators.words.other", 4, 32, 8)}),
        (
            "scratchpad",
            4 * 8,
            {("row_scratchpad.words.other", 1, 32, 5), ("column_scratchpad.words.other", 1, 32, 6)},
        ),
    ],
)
def test_every_memory_is_given_by_the_seam(name: str, bits: int, shapes: Any) -> None:
    """Its SRAMs are priced as its kind says; a kind that cannot be there is refused in a line."""
    field = f"{name}_memory"
    design = replace(SMALL, row_scratchpad=5, column_scratchpad=6, **{field: OtherBank()})
    found = {
        (one.name, one.count, one.attributes["word_bits"], one.attributes["depth"])
        for one in design.components
        if one.kind == "sram" and one.name.endswith(".other")
    }
    assert found == shapes
    with pytest.raises(InputError, match=f"^{field} must be exact, not other: "):
        replace(SMALL, **{field: OtherBank(exact=False)})
    with pytest.raises(InputError, match=f"^{field}: words must be of {bits - 1} bits at most"):
        replace(SMALL, **{field: OtherBank(most_bits=bits - 1)})
    assert replace(SMALL, **{field: OtherBank(most_bits=bits)})


def test_densities_alone_give_an_estimate() -> None:
    """Near what drawn masks give where zeros are scattered; exact where nothing is skipped."""
    text = (
        "a = conv 24 3x3 +1 relu\nb = conv 32 3x3 /2 +1 relu\nc = conv 16 1x1 relu\nf = fc 9 relu"
    )
    forward = written(text, (2, 16, 16, 16))
    activity = Activity(density=Activity.even(forward, 0.4).density, source="", clustering=0.0)
    network = training_network(forward, activity=activity)
    training: Any = network.training
    source = DrawnStep(step=training.step, activity=activity)
    dense = replace(SPARSETRAIN, look_ahead=0, skip_outputs=False)
    split = replace(SPARSETRAIN, segments=4)
    for design, near in ((SPARSETRAIN, 0.1), (replace(SPARSETRAIN, move_work=False), 0.1),
                         (replace(SPARSETRAIN, look_ahead=1), 0.1), (split, 0.1),
                         (dense, 0)):  # fmt: skip
        found = Estimate(design).cycles(network)
        exact = {
            layer.name: answer_of(design, layer, source(layer)).cycles
            for layer in network.matrix_layers
        }
        assert sum(found.values()) == pytest.approx(sum(exact.values()), rel=near)
        assert found == exact or design != dense
    with pytest.raises(InputError, match="no densities are known"):
        Estimate(SPARSETRAIN).cycles(forward)


def test_cycles_depend_on_values() -> None:
    with pytest.raises(
        InputError, match="product: cycles of sparsetrain machines depend on values"
    ):
        SMALL.machine_model().answer(LAYER, None, {})


def test_a_batch_that_memory_does_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archsim.free_memory.free_mib", lambda: 1)
    layer = MatMul(name="large", m=2000, n=20, k=300)
    operands = SPARSETRAIN.intake.synthetic(layer, Drawing())
    with pytest.raises(InputError, match=r"^large: takes some \d MiB of memory, and 1 are free: "):
        _ = SPARSETRAIN.machine_model().answer(layer, operands, {}).cycles
