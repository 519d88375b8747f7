"""The tensor array's model: against plain matrix products, and its cycles against Volta's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensor_array_bench import random_sets, tensor_arrays

from archsim.arithmetic.dot_product import INT8_DOT, VOLTA_FP16, VOLTA_FP32, DotProduct
from archsim.arithmetic.formats import BF16, FP16, FP32, FloatFormat, IntegerFormat
from archsim.errors import InputError
from archsim.machines.tensorcore.tensor_array import TensorArrayDesign, TensorSets
from archsim.numbers import IntArray, ceil_div

MIXED = TensorArrayDesign()
NARROW = TensorArrayDesign(dot=VOLTA_FP16)
INTEGER = TensorArrayDesign(dot=INT8_DOT)


def _block(design: TensorArrayDesign, a: IntArray, b: IntArray, begin: int = 0) -> TensorSets:
    """The sets of one block a [P, K] · b [K, F], K in chunks of k, the last filled up with 0."""
    k = design.dot.length
    n = ceil_div(a.shape[1], k)
    a, b = np.pad(a, ((0, 0), (0, n * k - a.shape[1]))), np.pad(b, ((0, n * k - len(b)), (0, 0)))
    at = np.arange(n)
    return TensorSets(
        begin_cycles=begin + at * design.set_cycles,
        first=(at == 0).astype(np.int64),
        last=(at == n - 1).astype(np.int64),
        ifmap=np.ascontiguousarray(a.reshape(len(a), n, k).swapaxes(0, 1)),
        weight=b.reshape(n, k, -1),
    )


@given(design=tensor_arrays(), products=st.integers(1, 23), seed=st.integers(0, 99))
def test_a_block_is_the_product_of_matrices(
    design: TensorArrayDesign, products: int, seed: int
) -> None:
    """Small integers, which the sums of all formats hold exactly, or modulo their bits."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-5, 6, (design.rows, products))
    b = rng.integers(-3, 4, (products, design.columns))
    operand, accumulator = design.dot.operand, design.dot.accumulator
    if isinstance(operand, IntegerFormat):
        sets = _block(design, operand.encode(a), operand.encode(b))
    else:
        sets = _block(
            design, operand.encode(a.astype(np.float64)), operand.encode(b.astype(np.float64))
        )
    rows = design.compute(sets)
    sums = accumulator.decode(rows.sums)
    wanted = a @ b
    if isinstance(accumulator, IntegerFormat):
        wanted = accumulator.decode(accumulator.encode(wanted))
    np.testing.assert_array_equal(sums, wanted)
    np.testing.assert_array_equal(np.diff(rows.cycles), 1)
    first_pass = design.set_cycles
    assert rows.cycles[-1] == first_pass + design.wmma_cycles(products)


def _slow(design: TensorArrayDesign, sets: TensorSets) -> tuple[list[int], list[list[int]]]:
    """Cycles and rows of sums, from the units' point of view: pass by pass, a unit at a time."""
    dot, half, units = design.dot, design.rows // 2, design.group_columns
    block = np.zeros((design.rows, design.columns), np.int64)
    cycles, rows = list[int](), list[list[int]]()
    for n in range(len(sets)):
        for number in range(design.rows):
            for group in range(2):
                for octet in range(design.octets):
                    for unit in range(units):
                        row = group * half + number % half
                        column = octet * 2 * units + number // half * units + unit
                        before = block[row, column] if not sets.first[n] else 0
                        block[row, column] = dot.compute(
                            sets.ifmap[n, row : row + 1],
                            sets.weight[n, :, column].reshape(1, -1),
                            np.array([before]),
                        )[0]
        if sets.last[n]:
            start = int(sets.begin_cycles[n]) + design.set_cycles - 1 + design.array_latency_cycles
            cycles += range(start, start + design.rows)
            rows += block.tolist()
    return cycles, rows


@pytest.mark.parametrize("dot", [INT8_DOT, VOLTA_FP32, VOLTA_FP16])
def test_passes_of_units_make_the_block(dot: DotProduct) -> None:
    """Which unit computes what in which pass: every sum once a set, in the order of the sets."""
    design = TensorArrayDesign(dot=replace(dot, length=2), octets=2, group_columns=1, rows=6)
    sets = random_sets(design, 9, seed=3, gaps=4)
    rows = design.compute(sets)
    assert (rows.cycles.tolist(), rows.sums.tolist()) == _slow(design, sets)


def test_the_order_of_sets_is_that_of_the_sums() -> None:
    """2^24 + 1 + 1 + … in FP32, rounded towards zero, never moves; 1 + 1 + … + 2^24 does."""
    a, b = np.zeros((8, 16), np.int64), np.zeros((16, 16), np.int64)
    a[:, ::4], b[::4] = FP16.encode(np.array(1.0)), FP16.encode(np.array(1.0))
    a[:, 0], b[0] = FP16.encode(np.array(4096.0)), FP16.encode(np.array(4096.0))
    for order, wanted in ((1, 2.0**24), (-1, 2.0**24 + 2)):
        sets = _block(MIXED, a, b)
        sets = replace(sets, ifmap=sets.ifmap[::order], weight=sets.weight[::order])
        assert (FP32.decode(MIXED.compute(sets).sums) == wanted).all()


def test_a_warp_s_product_takes_what_a_titan_v_was_measured_to_take() -> None:
    """m16n16k16, of which each of two cores computes 8 × 16: 54 cycles, or 64 in FP16."""
    assert (MIXED.wmma_cycles(16), NARROW.wmma_cycles(16)) == (54, 64)
    assert INTEGER.wmma_cycles(16) == 54
    for design, cycles in ((MIXED, 54), (NARROW, 64)):
        zeros = np.zeros((16, 16), np.int64)
        rows = design.compute(_block(design, zeros[:8], zeros, begin=5))
        assert rows.cycles[-1] - (5 + design.set_cycles) == cycles


def test_steps_and_sets() -> None:
    """A STEP every 2 cycles; sets 10 or 13 cycles apart."""
    mixed = [[10, 12, 14, 16], [20, 22, 24, 26], [30, 32, 34, 36], [40, 42, 44, 46]]
    narrow = [[13, 17], [26, 30], [39, 43], [52, 56]]
    assert MIXED.step_completions().tolist() == mixed
    assert MIXED.step_completions(9).tolist() == mixed[:3]
    assert NARROW.step_completions().tolist() == narrow
    assert (MIXED.step_passes, NARROW.step_passes, INTEGER.step_passes) == (2, 4, 2)
    assert (MIXED.columns, MIXED.dot.latency_cycles) == (16, 4)


def test_cycles_of_unusual_designs() -> None:
    cases: list[tuple[dict[str, Any], tuple[int, ...]]] = [
        ({}, (2, 9, 10, 10, 16)),
        ({"dot": VOLTA_FP16}, (4, 10, 13, 13, 17)),
        ({"rows": 2}, (2, 9, 10, 10, 10)),
        ({"rows": 2, "dot": VOLTA_FP16}, (2, 10, 11, 11, 11)),
        ({"rows": 6, "dot": VOLTA_FP16}, (2, 10, 11, 11, 15)),
        ({"rows": 16}, (2, 9, 10, 16, 24)),
        ({"dot": replace(INT8_DOT, length=1), "rows": 14}, (2, 7, 8, 14, 20)),
        ({"dot": replace(VOLTA_FP32, operand=BF16, length=5)}, (2, 10, 11, 11, 17)),
    ]
    for changes, wanted in cases:
        design = TensorArrayDesign(**changes)
        assert wanted == (
            design.step_passes,
            design.result_cycles,
            design.chain_cycles,
            design.set_cycles,
            design.drain_start_cycles,
        )
        assert design.array_latency_cycles == design.drain_start_cycles + 2


@given(design=tensor_arrays(), k=st.integers(1, 99))
def test_formulas_agree(design: TensorArrayDesign, k: int) -> None:
    latency = design.collect_cycles + design.dot.latency_cycles
    latency += design.pack_cycles + design.write_cycles
    assert design.chain_cycles == latency + design.step_passes - 1
    assert design.drain_start_cycles == design.chain_cycles + design.rows - design.step_passes
    completions = design.step_completions(k)
    assert completions[0, 0] == design.chain_cycles
    assert design.wmma_cycles(k) == completions[-1, -1] + design.rows
    assert design.set_cycles >= max(design.rows, design.chain_cycles, design.dot.length)


@given(design=tensor_arrays(), seed=st.integers(0, 99))
def test_neither_buffer_is_overwritten_before_it_is_read(
    design: TensorArrayDesign, seed: int
) -> None:
    """By the cycles of docs/contracts/tensor-array.md: of any two sets with the same half."""
    begin = random_sets(design, 8, seed, gaps=3).begin_cycles
    issue = begin + design.set_cycles
    half = design.rows // 2
    row = np.arange(design.rows)
    for n in range(len(begin) - 2):
        reads = issue[n] + design.drain_start_cycles + row
        for block in range(2):
            write = issue[[n, n + 2]] + block * half + design.result_cycles - 1
            assert (write[0] + row % half < reads).all()
            assert (reads <= write[1] + row % half).all()
        assert issue[n] + design.rows - 1 < begin[n + 2]
        assert begin[n] + max(design.rows, design.dot.length) <= issue[n]
    assert (np.diff(issue) >= design.rows).all()


def test_designs_that_cannot_be() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"rows": 3}, "rows must be even, not 3"),
        ({"rows": 0}, "rows must be positive, not 0"),
        ({"octets": 0}, "octets must be positive, not 0"),
        ({"group_columns": -1}, "group_columns must be positive, not -1"),
        (
            {"dot": replace(VOLTA_FP32, length=16)},
            "dot.length must be at most 12, the cycles of a set, not 16",
        ),
    ]
    for changes, message in cases:
        with pytest.raises(InputError) as error:
            TensorArrayDesign(**changes)
        assert str(error.value) == message
    assert TensorArrayDesign(dot=replace(VOLTA_FP32, length=16), rows=16).set_cycles == 16
    for call in (MIXED.wmma_cycles, MIXED.step_completions):
        with pytest.raises(InputError, match=r"^k must be positive, not 0$"):
            call(0)


def test_sets_that_cannot_be() -> None:
    sets = random_sets(MIXED, 4, seed=1)
    MIXED.compute(sets)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ifmap": sets.ifmap[:, :7]}, "ifmap must be of shape (4, 8, 4), not of (4, 7, 4)"),
        ({"weight": sets.weight * 0 + 65536}, "weight must be 0 to 65535, not 65536"),
        ({"last": sets.last > 0}, "last must be int64, not bool"),
        ({"begin_cycles": np.arange(4) * 9}, "begin_cycles must be at least 10 apart, not 9"),
        ({"first": sets.first * 0}, "first must be 1 in the first set, not 0"),
    ]
    for changes, message in cases:
        with pytest.raises(InputError) as error:
            MIXED.compute(replace(sets, **changes))
        assert str(error.value) == message
    with pytest.raises(InputError, match=r"^there must be at least one set$"):
        MIXED.compute(replace(sets, begin_cycles=np.zeros(0, np.int64)))


def test_sets_of_which_no_rows_leave() -> None:
    rows = MIXED.compute(replace(random_sets(MIXED, 3, seed=1), last=np.zeros(3, np.int64)))
    assert (rows.cycles.shape, rows.sums.shape) == ((0,), (0, 16))


def test_only_floats_of_up_to_16_bits_are_packed() -> None:
    """17 bits do not share a register of 32."""
    wide = FloatFormat(exponent_bits=5, fraction_bits=11)
    assert NARROW.pack_cycles == 1
    assert replace(NARROW, dot=replace(VOLTA_FP16, accumulator=wide)).pack_cycles == 0
    narrow = replace(INT8_DOT, accumulator=IntegerFormat(bits=16))
    assert replace(INTEGER, dot=narrow).pack_cycles == 0
