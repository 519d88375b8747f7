"""Failing sums of the sparse core beside whatever else fails: walked alone, where they are few, as
in the whole walk of all lists (`tests/archsim/test_scnn_failing_sums.py` proves that one).
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scnn_failing_layers import CONV, assert_alike

from archsim.errors import InputError
from archsim.machines.scnn import few_sums
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.few_kernels import read_words
from archsim.machines.scnn.layer import Layer, layer_timing
from archsim.machines.scnn.seen_kernels import changed_vectors
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memory import Use
from archsim.memory.at_once import coded_words, reader, words_that_fail
from archsim.numbers import wrap
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

RATES = [0.001, 0.01, 0.05, 0.3, 1.0]


@st.composite
def faults(draw: st.DrawFn) -> dict[str, Any]:
    """A rate and a law."""
    found: dict[str, Any] = {"rate": draw(st.sampled_from(RATES)), "chip": draw(st.integers(0, 4))}
    if draw(st.booleans()):
        found["column_shape"] = 0.5
    if draw(st.booleans()):
        found |= {"persistent": 0.4, "draw": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        found |= {
            "zero_to_one": draw(st.sampled_from([0.0, 0.2, 0.5])),
            "one_to_zero": draw(st.sampled_from([0.0, 0.3, 0.5])),
        }
    return found


def coded(draw: st.DrawFn, memory: FaultyBank, bits: int) -> Any:
    """Behind check bits, or not."""
    kind = draw(st.sampled_from([None, None, ParityBank, SecdedBank]))
    return memory if kind is None else kind(data_bits=bits, inner=memory)


@st.composite
def designs(draw: st.DrawFn) -> Scnn:
    """Small cores whose sums fail, and often other memories."""
    one_of = lambda *those: draw(st.sampled_from(those))  # noqa: E731
    bits, operand_bits, index_bits = one_of(12, 20, 24, 32, 33), one_of(6, 8), one_of(1, 2, 4, 6)
    design = Scnn(
        grid_rows=one_of(1, 2, 3), grid_columns=one_of(1, 2, 4), weight_lanes=one_of(1, 2, 4),
        ifmap_lanes=one_of(1, 2, 3), banks=8, bank_entries=160, operand_bits=operand_bits,
        index_bits=index_bits, accumulator_bits=bits, weight_fifo_vectors=one_of(60, 200),
        filter_group=one_of(1, 3, 4), iaram_bytes=one_of(400, 4000), oaram_bytes=one_of(300, 4000),
        strip_rows=one_of(0, 0, 2, 3),
        accumulator_memory=coded(draw, FaultyBank(**draw(faults())), bits),
    )  # fmt: skip
    if draw(st.booleans()):
        design = replace(design, activation_memory=FaultyStream(**draw(faults())))
    if draw(st.booleans()):
        memory = coded(draw, FaultyBank(**draw(faults())), operand_bits + index_bits)
        design = replace(design, weight_memory=memory)
    return design


@st.composite
def layers(draw: st.DrawFn) -> tuple[Layer, MaxPool | None]:
    """Strides, borders, groups, a channel a group, images, strips, pools of windows that overlap or
    leave outputs out, products."""
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    if whole(0, 9) == 0:
        return MatMul(name="product", m=whole(1, 3), n=whole(1, 11), k=whole(1, 60)), None
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    size = whole(1, 14), whole(1, 11)
    own = (1, 1)
    if draw(st.booleans()):
        own = draw(st.sampled_from([1, 2, 5])), draw(st.sampled_from([1, 3, 7]))
    kernel = min(whole(1, 5), size[0]), min(whole(1, 4), size[1])
    layer = Conv2d(
        name="any", channels=groups * own[0], filters=groups * own[1], groups=groups,
        ifmap_height=size[0], ifmap_width=size[1], kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=whole(1, 3), stride_width=whole(1, 3),
        pad_top=whole(0, kernel[0] - 1), pad_bottom=whole(0, kernel[0] - 1),
        pad_left=whole(0, kernel[1] - 1), pad_right=whole(0, kernel[1] - 1),
        batch=whole(1, 2), relu=draw(st.booleans()), bias=draw(st.booleans()),
    )  # fmt: skip
    if draw(st.booleans()):
        return layer, None
    window = whole(1, 3), whole(1, 3)
    pad = tuple(whole(0, one // 2) for one in window)
    return layer, MaxPool(window=window, stride=(whole(1, 3), whole(1, 3)), pad=(pad[0], pad[1]))


def drawn_operands(layer: Layer, bits: int, density: float, shift: int) -> Operands:
    return replace(synthetic(layer, bits=bits, density=density, seed=2), shift=shift)


def test_few_sums_are_those_of_the_whole_walk() -> None:
    """Values, cycles and actions, at every rate, whatever else fails."""
    met: Counter[str] = Counter()

    @settings(max_examples=150, deadline=None)
    @given(
        layers(), designs(), st.sampled_from([0.1, 0.5, 1.0]), st.sampled_from([0, 2, 4, 7]),
        st.sampled_from([1, 3, few_sums.MANY, 100]),
    )  # fmt: skip
    def check(
        given_layer: tuple[Layer, MaxPool | None],
        design: Scnn,
        density: float,
        shift: int,
        many: int,
    ) -> None:
        layer, pool = given_layer
        operands = drawn_operands(layer, design.operand_bits, density, shift)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(few_sums, "MOST", -1)
            try:
                right = layer_timing(design, layer, operands, pool=pool)
            except InputError:
                reject()
            patch.setattr(few_sums, "MOST", 1e9)
            patch.setattr(few_sums, "MANY", many)
            whole = few_sums.FailingSums.few_of

            def few_of(self: Any, seen: Any) -> bool:
                found = whole(self, seen)
                met["alone" if found else "list by list"] += 1
                return found

            patch.setattr(few_sums.FailingSums, "few_of", few_of)
            assert_alike(layer_timing(design, layer, operands, pool=pool), right)
        met["strips"] += right.strips > 1
        met["pooled"] += pool is not None
        met["activations"] += not design.activation_memory.exact
        met["weights"] += not design.weight_memory.exact
        met["checks"] += not isinstance(design.accumulator_memory, FaultyBank)

    check()
    assert all(met[name] > 0 for name in ("alone", "list by list", "pooled", "checks")), met
    assert met["strips"] > 0 and met["activations"] > 0 and met["weights"] > 0, met


@pytest.mark.parametrize("many", [1, 100])
@pytest.mark.parametrize("kind", [ParityBank, SecdedBank])
def test_sums_past_check_bits_are_walked_beside_others(
    kind: Any, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side with those of all filters, and one by one, in both halves: of cells that are
    stuck, so that errors are some that a code does not tell, and come and go with what is held."""
    layer, changed = replace(CONV, stride_height=1, batch=1), 0
    operands = replace(drawn_operands(layer, 8, 0.8, 11), multiplier=1)
    for chip in range(4):
        inner = FaultyBank(rate=0.15, chip=chip, zero_to_one=0.4, one_to_zero=0.4)
        design = Scnn(
            grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=160,
            operand_bits=8, index_bits=2, accumulator_bits=20, weight_fifo_vectors=60,
            filter_group=2, accumulator_memory=kind(data_bits=20, inner=inner),
        )  # fmt: skip
        monkeypatch.setattr(few_sums, "MANY", many)
        monkeypatch.setattr(few_sums, "MOST", -1)
        right = layer_timing(design, layer, operands)
        monkeypatch.setattr(few_sums, "MOST", 1e9)
        assert_alike(layer_timing(design, layer, operands), right)
        sound = layer_timing(replace(design, accumulator_memory=Scnn().accumulator_memory), layer,
                             operands)  # fmt: skip
        changed += len(np.unique(right.ofmap[right.ofmap != sound.ofmap]))
    assert changed > 40, "not zeros alone"


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("others", [False, True], ids=["sums", "all"])
def test_strips_of_a_pooled_layer_know_their_sums(
    others: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of windows with padding, which overlap: a strip begins with the first output that its windows
    see."""
    layer = replace(CONV, stride_height=1, ifmap_height=14)
    pool = MaxPool(window=(3, 2), stride=(2, 1), pad=(1, 0))
    design = Scnn(
        grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=160,
        operand_bits=8, index_bits=2, accumulator_bits=20, weight_fifo_vectors=60, filter_group=3,
        strip_rows=rows, accumulator_memory=FaultyBank(rate=0.003),
    )  # fmt: skip
    if others:
        design = replace(
            design, activation_memory=FaultyStream(rate=0.003), weight_memory=FaultyBank(rate=0.003)
        )
    operands = drawn_operands(layer, 8, 0.5, 2)
    monkeypatch.setattr(few_sums, "MOST", -1)
    right = layer_timing(design, layer, operands, pool=pool)
    assert right.strips > 2
    monkeypatch.setattr(few_sums, "MOST", 1e9)
    assert_alike(layer_timing(design, layer, operands, pool=pool), right)


@pytest.mark.parametrize("bits", [1, 11, 24, 32, 54])
@pytest.mark.parametrize("kind", [ParityBank, SecdedBank])
def test_words_past_check_bits_are_read_as_by_their_cells(kind: Any, bits: int) -> None:
    """Of every law: words without an error, with one, two and many, in data and in checks."""
    use = Use(name="accumulator", field="bank", lane_bits=(bits,), lane_signed=(True,), depth=256)
    random, corrected, other = np.random.default_rng(bits), 0, 0
    for rate in (0.01, 0.1, 1.0):
        laws: list[dict[str, Any]] = [
            {}, {"zero_to_one": 0.4, "one_to_zero": 0.3}, {"column_shape": 0.3},
        ]  # fmt: skip
        for law in laws:
            memory = kind(data_bits=bits, inner=FaultyBank(rate=rate, chip=bits, **law))
            words = coded_words(memory, use, 256)
            assert words is not None
            which = random.integers(0, 256, 500)
            held = wrap(random.integers(-(1 << 62), 1 << 62, 500), bits)
            expected = reader(memory, use, 256)(which, held[:, None])[:, 0]
            sums, found = np.zeros((1, 256), np.int64), np.empty((1, 1), np.int64)
            code = words.bits, words.covers, words.corrections
            for at, value, right in zip(which, held, expected, strict=True):
                sums[0, at] = value
                half = words.zero, words.one, np.ones(256, np.bool_)
                read_words(sums, half, np.array([at]), code, 64 - bits, found)
                assert found[0, 0] == right
            fails = words_that_fail(memory, use, 256)
            cells = (words.zero | ~words.one) & ((1 << bits + len(words.covers)) - 1)
            corrected += int(((cells != 0) & ~fails).sum())
            other += int((expected != held).sum())
    assert other > 100 or bits == 1
    assert corrected > 0 or kind is ParityBank


def test_words_of_several_lanes_and_others_are_not_known_by_a_code() -> None:
    """They are read by way of their cells."""
    one = Use(name="weight", field="bank", lane_bits=(8,), lane_signed=(True,), depth=16)
    two = replace(one, lane_bits=(8, 8), lane_signed=(True, True))
    memory = SecdedBank(data_bits=8, inner=FaultyBank(rate=0.1))
    assert coded_words(memory, one, 16) is not None
    assert coded_words(memory, two, 16) is None
    assert coded_words(replace(memory, data_bits=16), two, 16) is None
    wide = replace(one, lane_bits=(56,))
    assert coded_words(SecdedBank(data_bits=56, inner=FaultyBank(rate=0.1)), wide, 16) is None
    assert coded_words(FaultyBank(rate=0.1), one, 16) is None


def test_lists_that_begin_again_are_walked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions of weights count 2^5 rows of taps: one of a tap further on is at an earlier one,
    behind others in its list."""
    design = Scnn(
        grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=160,
        operand_bits=8, index_bits=6, accumulator_bits=20, weight_fifo_vectors=60, filter_group=1,
        accumulator_memory=FaultyBank(rate=0.001),
    )  # fmt: skip
    operands, asked = drawn_operands(CONV, 8, 1.0, 2), list[bool]()
    whole = few_sums.Seen.in_order

    def in_order(self: Any, mapping: Any) -> bool:
        asked.append(whole(self, mapping))
        return asked[-1]

    monkeypatch.setattr(few_sums.Seen, "in_order", in_order)
    monkeypatch.setattr(few_sums, "MOST", 1e9)
    for rate in (0.001, 0.5):
        memory = FaultyBank(rate=rate, zero_to_one=1.0)
        layer_timing(replace(design, weight_memory=memory), CONV, operands)
        lists = FaultyStream(rate=rate, zero_to_one=1.0)
        layer_timing(replace(design, activation_memory=lists), CONV, operands)
    assert asked == [True, True, False, True], "no list of activations is as long"


@pytest.mark.parametrize(
    ("column_bits", "filter_bits", "first_far"),
    [(0, 0, 32), (1, 2, 256), (3, 12, (1 << 20) - 1), (0, 16, (1 << 20) - 1)],
)
def test_the_first_position_that_begins_again(
    column_bits: int, filter_bits: int, first_far: int
) -> None:
    """Of rows of taps, of 5 bits, and of all positions, of 20: behind the last a vector begins at
    0.  Also of the second lane, and where the first vector of a list is not the one."""
    reading = 4, 8, 21, filter_bits
    for at, lane, vector in ((0, 0, 0), (0, 1, 0), (7, 1, 1)):
        for position in (first_far - 1, first_far):
            words = np.ones((vector + 1, 2), np.int64)
            words[vector, lane] |= (position - at - lane - 2 * vector) << 8
            words[0, 0] |= at << 8
            words[vector, lane + 1 :] = 0
            if lane == 0:
                words = words[:, :1]
            every = np.zeros_like(words), np.full_like(words, -1), np.ones(4, np.bool_)
            zero, one = (np.repeat(mask[:1], 4, axis=0) for mask in every[:2])
            far, ends = np.zeros(1, np.bool_), np.zeros(1, np.int64)
            lanes = np.zeros((len(words) + 1, words.shape[1], 4), np.int32)
            changed_vectors(
                np.zeros(1, np.int64),
                (words, words, np.array([0, len(words)]), np.zeros(len(words), np.int64)),
                (np.array([column_bits]), zero, one, every[2]), reading, (1, 1, 1),
                (ends, np.zeros(len(words), np.int64), lanes, np.zeros((1, 1), np.int64), far),
            )  # fmt: skip
            assert far[0] == (position == first_far)
