"""Layers as a core sees them: zeros around the ifmap, groups side by side, rows that are sent."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.layer.problem import Problem, margins, problem_of
from workloads.layers import Conv2d, MatMul

SIDES = ("pad_top", "pad_bottom", "pad_left", "pad_right")


def convolution(**changed: int) -> Conv2d:
    plain = Conv2d(name="c", channels=2, filters=3, ifmap_height=7, ifmap_width=8,
                   kernel_height=1, kernel_width=1)  # fmt: skip
    return replace(plain, **changed)


@st.composite
def layers(draw: st.DrawFn) -> Conv2d:
    sizes = {
        f"{what}_{axis}": draw(st.integers(1, 3))
        for what in ("kernel", "stride", "dilation")
        for axis in ("height", "width")
    }
    return convolution(**sizes, **{side: draw(st.integers(0, 3)) for side in SIDES})


def behind_the_last(outputs: int, stride: int, kernel: int, dilation: int) -> int:
    """The first row that no window sees, counted from the first window's first."""
    seen = np.arange(outputs)[:, None] * stride + np.arange(kernel) * dilation
    return int(seen.max()) + 1


@given(layers())
def test_margins_are_what_windows_reach_into(layer: Conv2d) -> None:
    """Not a row or a column more."""
    of = problem_of(layer)
    rows = behind_the_last(of.out_height, of.stride_height, of.kernel_height, of.dilation_height)
    columns = behind_the_last(of.out_width, of.stride_width, of.kernel_width, of.dilation_width)
    assert margins(of) == (
        (of.pad_top, max(rows - of.pad_top - of.height, 0)),
        (of.pad_left, max(columns - of.pad_left - of.width, 0)),
    )


@pytest.mark.parametrize(("axis", "ends"), [("height", SIDES[:2]), ("width", SIDES[2:])])
def test_of_a_kernel_of_one_row_the_rows_that_are_seen_are_sent(
    axis: str, ends: tuple[str, str]
) -> None:
    """With zeros on either side, or on one, all are: windows lie among the zeros too."""
    layer = convolution(**{f"stride_{axis}": 2})
    of, ofmap = problem_of(layer), getattr(layer, f"ofmap_{axis}")
    sample = "row_sample" if axis == "height" else "column_sample"
    assert (getattr(of, axis), getattr(of, f"stride_{axis}"), getattr(of, sample)) == (ofmap, 1, 2)
    for pads in ((1, 0), (0, 1), (1, 1), (2, 2)):
        padded = replace(layer, **dict(zip(ends, pads, strict=True)))
        of = problem_of(padded)
        assert getattr(of, axis) == getattr(padded, f"ifmap_{axis}")
        assert (getattr(of, f"stride_{axis}"), getattr(of, sample)) == (2, 1)
    wide = problem_of(replace(layer, **{f"kernel_{axis}": 2}))
    assert (getattr(wide, f"stride_{axis}"), getattr(wide, sample)) == (2, 1)


@pytest.mark.parametrize(("together", "blocks"), [(1, 5), (2, 3), (3, 2), (5, 1)])
def test_groups_side_by_side(together: int, blocks: int) -> None:
    """The last block has empty groups where they do not divide."""
    of: Problem = problem_of(convolution(channels=10, filters=15, groups=5))
    block = of.side_by_side(together)
    assert (block.groups, block.channels, block.filters) == (blocks, 2 * together, 3 * together)
    assert replace(block, groups=5, channels=2, filters=3) == of


def test_a_product_of_matrices_is_a_row_of_pixels() -> None:
    shared = MatMul(name="m", m=4, n=5, k=6)
    of = problem_of(shared)
    assert (of.groups, of.width, of.out_width, of.channels, of.filters) == (1, 4, 4, 6, 5)
    of = problem_of(replace(shared, batch=3, shared_weight=False))
    assert (of.groups, of.width, of.out_width, of.channels, of.filters) == (3, 4, 4, 6, 5)
    assert margins(of) == ((0, 0), (0, 0))
