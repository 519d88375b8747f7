"""Cases and bins of the sparse training machine with BF16 operands."""

from collections.abc import Iterator
from typing import cast

import numpy as np

from archsim.arithmetic.formats import BF16, FP32, FloatFormat
from archsim.layer.float_intake import FloatOperands
from archsim.machine.model import MatrixLayer
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.sparsetrain.model import SparseTrainAnswer
from archsim.machines.sparsetrain.vectors import in_steps
from archsim.numbers import IntArray
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.float_bins import drawn_patterns, float_bins, magnitude
from rtl.coverage.integer_bins import EDGES
from rtl.draw import Draw
from workloads.layers import MatMul
from workloads.operands import operand_shapes

NEAR = "exponents near one another"
CANCELS = "products that cancel"
LONE = "one infinity or NaN"
RISES = "exponents that rise"
SUBNORMAL = "subnormals times large numbers"
"""The aims (`rtl.sparsetrain_verification`)."""

LARGEST = (0x7F7F, 0x7B7F, 0x777F)
"""BF16 numbers, eight places apart, whose sum is the largest of FP32."""

FULL = 0x3FFF
"""A BF16 number of ones alone, just below two."""

SPREADS = (0, 3, 12, 40)
"""Of exponents: in one, within the bits of a BF16, of an aligned product, and beyond."""


def float_sums_bins() -> Iterator[Bin]:
    """Of operands as they are given, of what leaves, and of what is between."""
    yield from float_bins({"ifmap": BF16, "weight": BF16, "ofmap": FP32}, _values)
    yield Bin(
        name="an infinity or a NaN beside a zero",
        why="a zero is passed over, whatever it would be multiplied by",
        hit=_special_beside_zero,
        aim=EDGES,
    )
    yield Bin(
        name="a step of the largest significands in all lanes",
        why="its sum is the largest that the bits of a step are for",
        hit=_largest_step,
        aim=EDGES,
    )
    yield Bin(
        name="sums that are not exact",
        why="what alignment shifts out is dropped, and what has no place in a sum",
        hit=_inexact,
        aim=NEAR,
    )
    yield Bin(
        name="sums that cancel to zero",
        why="there is no leading one to be found",
        hit=_cancelled,
        aim=CANCELS,
    )

    yield Bin(
        name="a sum that is infinite before its end",
        why="later products are added to an infinity, which stays",
        hit=_stays_infinite,
        aim=LONE,
    )

    yield Bin(
        name="a sum cut to products that are larger",
        why="what it has below their last place is dropped, towards zero, before they are added",
        hit=_cut_sums,
        aim=RISES,
    )
    yield Bin(
        name="a sum of products of subnormals alone",
        why="a subnormal has no leading one, and counts where the other operand is large",
        hit=_small_alone,
        aim=SUBNORMAL,
    )


def split_floats_bins() -> Iterator[Bin]:
    """Of a design with segments."""
    yield Bin(
        name="an infinity or a NaN in one segment, finite sums in another",
        why="what is special is told of each segment by itself",
        hit=_special_in_one_segment,
        aim=LONE,
    )


def special_operands(draw: Draw, layer: MatrixLayer) -> FloatOperands:
    """Special patterns; in half of the cases infinities and NaNs too, in the others of a row and a
    column what adds up to the largest number, of another what fills all bits of a step."""
    finite = draw.chance(0.5)
    given = (drawn_patterns(draw, BF16, shape, finite=finite) for shape in operand_shapes(layer))
    ifmap, weight = given
    if not finite:
        for own in (ifmap, weight):
            own.flat[draw.whole(0, own.size - 1)] = BF16.infinity + draw.whole(1, 127)
    else:
        ifmap[0, -1], weight[0, :, -1] = FULL, FULL
    if finite and ifmap.shape[2] >= len(LARGEST) and min(ifmap.shape[1], weight.shape[2]) > 1:
        ifmap[0, 0], weight[0, : len(LARGEST), 0] = 0, BF16.bias << BF16.fraction_bits
        ifmap[0, 0, : len(LARGEST)] = LARGEST
    return _given(ifmap, weight, "special patterns")


def near_operands(draw: Draw, layer: MatrixLayer) -> FloatOperands:
    """Any signs and fractions; of each operand exponents that are not far from one another."""
    ifmap, weight = (_floats(draw, BF16, shape) for shape in operand_shapes(layer))
    return _given(ifmap, weight, NEAR)


def rising_operands(draw: Draw, design: SparseTrain, layer: MatMul) -> FloatOperands:
    """Any signs and fractions; of rows exponents that rise or fall from one step to the next."""
    found = [_floats(draw, BF16, shape, lowest=BF16.bias - 1) for shape in operand_shapes(layer)]
    ifmap, weight = found
    steps = np.arange(layer.k) // draw.one_of(design.lanes, design.segment_lanes)
    rise = draw.whole(3, 12)
    fields = np.minimum(steps * rise, BF16.bias - 4)
    ifmap += (fields if draw.chance(0.8) else fields[::-1]) << BF16.fraction_bits
    return _given(ifmap, weight, RISES)


def small_operands(draw: Draw, layer: MatrixLayer) -> FloatOperands:
    """Of one operand subnormals, of the other numbers that are as large as those are small, or
    below one, so that sums are subnormals too."""
    shapes = list(operand_shapes(layer))
    large = draw.one_of(BF16.special_exponent - draw.whole(8, 24), BF16.bias - draw.whole(3, 6))
    side = draw.whole(0, 1)
    found = [_floats(draw, BF16, shape, lowest=large) for shape in shapes]
    found[side] &= BF16.sign_mask | ((1 << BF16.fraction_bits) - 1)
    ifmap, weight = found
    return _given(ifmap, weight, SUBNORMAL)


def lone_operands(draw: Draw, layer: MatrixLayer) -> FloatOperands:
    """Numbers about one; of a column, or of a row at its begin, one infinity or a NaN."""
    found = [_floats(draw, BF16, shape, lowest=BF16.bias - 1) for shape in operand_shapes(layer)]
    ifmap, weight = found
    special = BF16.infinity + draw.one_of(0, 0, 0, 1) | draw.one_of(0, BF16.sign_mask)
    if draw.chance(0.7):
        weight[0, 0, draw.whole(0, weight.shape[2] - 1)] = special
    else:
        ifmap[0, draw.whole(0, ifmap.shape[1] - 1), 0] = special
    return _given(ifmap, weight, LONE)


def cancelling_operands(draw: Draw, layer: MatrixLayer) -> FloatOperands:
    """Of a product: every second value of a row is the one before, negated, or nearly so, beside
    the same in the column."""
    found = near_operands(draw, layer)
    ifmap, weight = found.ifmap.copy(), found.weight.copy()
    half = ifmap.shape[2] // 2
    ifmap[:, :, 1 : 2 * half : 2] = ifmap[:, :, : 2 * half : 2] ^ BF16.sign_mask
    weight[:, 1 : 2 * half : 2] = weight[:, : 2 * half : 2]
    if draw.chance(0.5):
        ifmap ^= (draw.rng.random(ifmap.shape) < 0.2).astype(np.int64)
    return _given(ifmap, weight, CANCELS)


def _given(ifmap: IntArray, weight: IntArray, scheme: str) -> FloatOperands:
    return FloatOperands(ifmap=ifmap, weight=weight, bias=None, scheme=scheme)


def _floats(
    draw: Draw, form: FloatFormat, shape: tuple[int, ...], lowest: int | None = None
) -> IntArray:
    """lowest: exponent field, with two more; None for any, and a few more or many."""
    spread = 2
    if lowest is None:
        lowest, spread = draw.whole(0, form.special_exponent - 1), draw.one_of(*SPREADS)
    fields = lowest + draw.rng.integers(0, spread + 1, shape)
    field = np.minimum(fields, form.special_exponent - 1)
    fraction = draw.rng.integers(0, 1 << form.fraction_bits, shape)
    sign = draw.rng.integers(0, 2, shape) * form.sign_mask
    return (sign | (field << form.fraction_bits) | fraction).astype(np.int64)


def _values(seen: Seen, port: str) -> IntArray:
    """What is given of an operand, before its zeros lose their sign; else what crosses."""
    if port == "ofmap":
        return seen.words(port)
    answer = _answer(seen)
    own = answer.operands if isinstance(answer.operands, FloatOperands) else answer.taken
    return getattr(own, port)


def _answer(seen: Seen) -> SparseTrainAnswer:
    return cast(SparseTrainAnswer, seen.expected)


def _largest_step(seen: Seen) -> bool:
    """Whether an output is computed of as many of these as lanes, or more, in all lanes at once."""
    work = _answer(seen).work
    rows, columns = ((one == FULL).all(axis=2) for one in work.vectors)
    computed = rows[:, :, None] & columns[:, None]
    if work.needed is not None:
        computed &= work.needed
    whole = work.cut.segments == 1 and work.vectors[0].shape[2] >= work.design.lanes
    return whole and bool(computed.any())


def _special_beside_zero(seen: Seen) -> bool:
    """Whether a row has an infinity or a NaN where a column has a zero, or the other way round."""
    rows, columns = (one.astype(np.int64) for one in _answer(seen).work.vectors)
    special = [magnitude(BF16, one) >= BF16.infinity for one in (rows, columns)]
    zero = [one == 0 for one in (rows, columns)]
    meets = (special[0].any(axis=1) & zero[1].any(axis=1)).any()
    return bool(meets or (special[1].any(axis=1) & zero[0].any(axis=1)).any())


def _exactly(seen: Seen) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of outputs [groups, rows, columns] the sum as nearly as float64 has it, of products that are
    there; what leaves; and how many products are not zero."""
    answer = _answer(seen)
    rows, columns = (BF16.decode(one.astype(np.int64)) for one in answer.work.vectors)
    with np.errstate(all="ignore"):
        exact = rows @ columns.transpose(0, 2, 1)
        pairs = (rows != 0).astype(np.int64) @ (columns != 0).astype(np.int64).transpose(0, 2, 1)
    if answer.work.needed is not None:
        pairs = pairs * answer.work.needed
    return exact, FP32.decode(answer.sums), pairs


def _cut_sums(seen: Seen) -> bool:
    """Whether what steps add up to has bits below those of a product of the next one, and above
    its last place: as nearly as float64 has it, steps in their order."""
    work = _answer(seen).work
    lanes = work.step_lanes
    rows, columns = (in_steps(BF16.decode(one.astype(np.int64)), lanes) for one in work.vectors)
    for group in range(len(rows)):
        with np.errstate(all="ignore"):
            products = rows[group][:, None] * columns[group][None]
            sums = np.abs(products.sum(axis=3).cumsum(axis=2))[..., :-1]
            largest = np.abs(products).max(axis=3)[..., 1:]
            if ((sums < largest * 2.0**-9) & (sums > largest * 2.0**-22)).any():
                return True
    return False


def _stays_infinite(seen: Seen) -> bool:
    """Whether infinite products, all of them out of reach when the last step leaves, make a sum
    infinite."""
    answer = _answer(seen)
    sums, lanes = FP32.decode(answer.sums), answer.work.step_lanes
    rows, columns = (BF16.decode(one.astype(np.int64)) for one in answer.work.vectors)
    steps = -(-rows.shape[2] // lanes)
    last = max(steps - answer.design.window_rows, 0) * lanes
    for group, row, column in np.argwhere(np.isinf(sums)):
        here = np.isinf(rows[group, row]) | np.isinf(columns[group, column])
        pairs = (rows[group, row] != 0) & (columns[group, column] != 0)
        if (here & pairs)[:last].any() and not (here & pairs)[last:].any() and pairs[last:].any():
            return True
    return False


def _special_in_one_segment(seen: Seen) -> bool:
    work = _answer(seen).work
    pes, segments = work.design.pes, work.cut.segments
    if segments == 1:
        return False
    _, found, pairs = _exactly(seen)
    short = -found.shape[2] % (pes * segments)
    kinds = [
        np.pad(work.in_order(one), ((0, 0), (0, 0), (0, short)))
        for one in (~np.isfinite(found), np.isfinite(found) & (pairs > 0))
    ]
    special, finite = (one.reshape(*one.shape[:2], -1, segments, pes).any(axis=3) for one in kinds)
    return bool((special & finite).any())


def _small_alone(seen: Seen) -> bool:
    """Whether an output that is no zero has a subnormal in each of its products."""
    _, found, pairs = _exactly(seen)
    vectors = (magnitude(BF16, one.astype(np.int64)) for one in _answer(seen).work.vectors)
    rows, columns = ((one >> BF16.fraction_bits != 0).astype(np.int64) for one in vectors)
    alone = rows @ columns.transpose(0, 2, 1) == 0
    return bool((alone & (pairs > 0) & np.isfinite(found) & (found != 0)).any())


def _inexact(seen: Seen) -> bool:
    exact, found, pairs = _exactly(seen)
    return bool((np.isfinite(exact) & np.isfinite(found) & (pairs > 0) & (exact != found)).any())


def _cancelled(seen: Seen) -> bool:
    _, found, pairs = _exactly(seen)
    return bool(((found == 0) & (pairs > 1)).any())


__all__ = [
    "CANCELS",
    "LONE",
    "NEAR",
    "RISES",
    "SUBNORMAL",
    "cancelling_operands",
    "float_sums_bins",
    "lone_operands",
    "near_operands",
    "rising_operands",
    "small_operands",
    "special_operands",
    "split_floats_bins",
]
