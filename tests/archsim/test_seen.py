"""What windows see of any block of a layer, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.layer.integer_kernels import OutputRules, add_pixels, keep_planes
from archsim.layer.pixel_sums import PixelSums
from archsim.layer.problem import Problem
from archsim.layer.seen import Block, Windows


@st.composite
def _problems(draw: st.DrawFn) -> Problem:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    kernel, dilation = (whole(1, 3), whole(1, 3)), (whole(1, 2), whole(1, 2))
    stride = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 2)]))
    pad, groups = (whole(0, 2), whole(0, 2)), whole(1, 3)
    out = whole(1, 5), whole(1, 5)
    if draw(st.booleans()):  # pixels may see themselves
        kernel = stride = dilation = (1, 1)
        pad = (0, 0)
    reach = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in (0, 1)]
    size = [(out[axis] - 1) * stride[axis] + reach[axis] - pad[axis] for axis in (0, 1)]
    return Problem(
        images=whole(1, 4), groups=groups, channels=whole(1, 4),
        height=max(size[0] - whole(0, 2), 1), width=max(size[1] - whole(0, 2), 1),
        kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=stride[0], stride_width=stride[1],
        dilation_height=dilation[0], dilation_width=dilation[1],
        pad_top=pad[0], pad_left=pad[1], out_height=out[0], out_width=out[1],
        filters=1, has_bias=0, relu=0,
    )  # fmt: skip


def _seen(
    one: Problem, planes: npt.NDArray[Any], block: Block, *, taps_first: bool
) -> npt.NDArray[Any]:
    """[depth, images, rows, Q], one by one."""
    taps = one.kernel_height * one.kernel_width
    images, rows = block.image_behind - block.image, block.row_behind - block.row
    found = np.zeros((one.channels * taps, images, rows, one.out_width), planes.dtype)
    for n, c, r, s, p, q in np.ndindex(
        images, one.channels, one.kernel_height, one.kernel_width, rows, one.out_width
    ):
        y = (block.row + p) * one.stride_height + r * one.dilation_height - one.pad_top
        x = q * one.stride_width + s * one.dilation_width - one.pad_left
        tap = r * one.kernel_width + s
        at = tap * one.channels + c if taps_first else c * taps + tap
        if 0 <= y < one.height and 0 <= x < one.width:
            own = block.group * one.channels + c
            found[at, n, p, q] = planes[block.image + n, own, y, x]
    return found


@settings(deadline=None, max_examples=200)
@given(_problems(), st.sampled_from([np.int8, np.int16, np.int32]), st.booleans(), st.data())
def test_a_block_is_gathered_as_plain_loops_do(
    one: Problem, kind: Any, taps_first: bool, data: st.DataObject
) -> None:
    """Bound once, of two blocks of one size: of all rows of some images, or some rows of one."""
    shape = one.images, one.groups * one.channels, one.height, one.width
    planes = np.random.default_rng(0).integers(-99, 99, shape).astype(kind)
    windows = Windows(one, taps_first=taps_first)
    images = data.draw(st.integers(1, one.images))
    rows = one.out_height if images > 1 else data.draw(st.integers(1, one.out_height))
    place = np.empty(5, np.int64)
    out = np.full(windows.shape(one.channels, images * rows), 77, kind)
    gather = windows.bound(planes, place, out)
    for _ in range(2):
        image = data.draw(st.integers(0, one.images - images))
        row = data.draw(st.integers(0, one.out_height - rows))
        group = data.draw(st.integers(0, one.groups - 1))
        block = Block(image, image + images, group, row, row + rows)
        place[:] = block
        gather()
        found = out.reshape(len(out), images, rows, windows.width)[..., : one.out_width]
        assert np.array_equal(found, _seen(one, planes, block, taps_first=taps_first))
        own = planes[image : image + images, group * one.channels :][:, : one.channels]
        again = windows.seen(own, (row, row + rows))
        assert again.shape == out.shape
        kept = again.reshape(len(out), images, rows, windows.width)[..., : one.out_width]
        assert np.array_equal(kept, found)


@pytest.mark.parametrize("wide", [5, 7, 40])
@pytest.mark.parametrize("rows", [(0, 4), (1, 3), (3, 4)])
@pytest.mark.parametrize("adds", [False, True])
def test_a_block_is_kept_where_it_belongs(rows: tuple[int, int], wide: int, adds: bool) -> None:
    """Of the second of two groups, two of four planes of 4 rows of 5 pixels, whose sums lie in
    wider rows; all others stay.  With more, and without."""
    random, (first, last) = np.random.default_rng(wide), rows
    sums = random.integers(-100, 100, (3, 2 * (last - first) * wide), np.int32)
    more = random.integers(-100, 100, (4, 6, 4, 5), np.int32)
    bias, found = np.arange(-150, 150, 50), np.full((4, 6, 4, 5), 99, np.int8)
    rules = OutputRules(
        multiplier=1, half=0, shift=0, wrapped=32, lowest=-128, highest=127, by_column=0
    )
    place, flat = np.array(Block(1, 3, 1, first, last)), more.reshape(4, 6, -1)[: 4 * adds]
    keep_planes((sums, flat), place, 5, bias, rules.vector(), found.reshape(4, 6, -1))
    own = sums.reshape(3, 2, last - first, wide)[..., :5].transpose(1, 0, 2, 3)
    own = own + adds * more[1:3, 3:, first:last] + bias[3:, None, None]
    assert np.array_equal(found[1:3, 3:, first:last], np.clip(own, -128, 127))
    found[1:3, 3:, first:last] = 99
    assert (found == 99).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 20), st.integers(0, 10**6))
def test_pixels_have_sums_of_their_own(images: int, groups: int, filters: int, seed: int) -> None:
    """Of some pixels, in rows of any order; of a block of all rows of some images, or of some rows
    of one; and of all together."""
    random, (tall, across, wide) = np.random.default_rng(seed), (4, 5, 7)
    shape = images, groups, tall, across
    pixels = np.flatnonzero(random.random(np.prod(shape)) < 0.5)
    sums = random.integers(-(1 << 31), 1 << 31, (len(pixels) + 2, filters)).astype(np.int32)
    more = PixelSums(pixels, random.permutation(len(sums))[: len(pixels)], sums)
    one = Problem(
        images=images, groups=groups, channels=1, height=tall, width=across, kernel_height=1,
        kernel_width=1, stride_height=1, stride_width=1, dilation_height=1, dilation_width=1,
        pad_top=0, pad_left=0, out_height=tall, out_width=across, filters=filters, has_bias=0,
        relu=0,
    )  # fmt: skip
    expected = np.zeros((images * groups * tall * across, filters), np.int32)
    expected[pixels] = sums[more.rows]
    whole = more.whole(one)
    assert np.array_equal(whole, expected.reshape(*shape, filters))
    for block in (Block(0, images, 0, 0, tall), Block(images - 1, images, groups - 1, 1, 3)):
        if groups > 1 and block.image_behind - block.image > 1:
            continue
        held = random.integers(-9, 9, (filters, block.rows, wide)).astype(np.int32)
        found = held.copy().reshape(filters, -1)
        added = more.pixels, more.rows, more.sums
        add_pixels(found, np.array(block), added, (groups, tall, across))
        own = whole[block.image : block.image_behind, block.group, block.row : block.row_behind]
        held[..., :across] += own.reshape(block.rows, across, filters).transpose(2, 0, 1)
        assert np.array_equal(found, held.reshape(filters, -1))
