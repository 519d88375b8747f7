"""Faults put into the fast sums of a vector MAC core are seen by comparison with plain loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_module import Fault, faulty_module
from vector_sums_plainly import (
    Case,
    Sums,
    agrees,
    any_operands,
    plain_sums,
    summation_of,
)

from archsim.machines.vsq import vector_kernels, vector_values
from workloads.layers import Conv2d, MatMul

FAULTS = {
    "a saturation that comes late": (
        "min(max(collectors[pixel, k] + term, lowest), highest)",
        "min(max(collectors[pixel, k], lowest), highest) + term",
    ),
    "no lower limit": ("max(collectors[pixel, k] + term, lowest)", "(collectors[pixel, k] + term)"),
    "products of scales cut, not rounded": ("((1 << rules[DROPPED]) >> 1)", "0"),
    "products of scales beyond their bits": ("min(rounded, rules[LARGEST_SCALE])", "rounded"),
    "a bit of the sums": ("rules[SUM_BITS])\n", "rules[SUM_BITS] - 1)\n"),
    "a bit of the collector": ("rules[BITS])\n", "rules[BITS] - 1)\n"),
    "padding at the top": ("- problem[pb.PAD_TOP]", "- 0"),
    "dilation along a row": ("problem[pb.DILATION_WIDTH]", "1"),
    "scales of the tile before": ("plane[1][y, x, first + j]", "plane[1][y, x, j]"),
    "padding that is not zero": (
        "values[pixel] = 0\n            scales[pixel] = 0",
        "values[pixel] = 1\n            scales[pixel] = 1",
    ),
    "a bound without scales": ("* largest[0] * scale", "* largest[0]"),
    "a bound of the last vector": ("bound += ", "bound = "),
    "a short last vector forgotten": (
        "for c in range(j * length, min((j + 1) * length, channels)):",
        "for c in range(j * length, (j + 1) * length if (j + 1) * length <= channels else 0):",
    ),
    "directly: the limit after a tile": (
        "                if rules[CLIPPED]:\n                    collector = min(max(collector,"
        " rules[LOWEST]), rules[HIGHEST])\n",
        "        if rules[CLIPPED]:\n            collector = min(max(collector,"
        " rules[LOWEST]), rules[HIGHEST])\n",
    ),
}

VALUE_FAULTS = {
    "weights of the first tile": ("base + low : base + low +", "low : low +"),
    "scales of the first tile's weights": (
        "[row, column, first + vector]",
        "[row, column, vector]",
    ),
    "kernel rows and columns swapped in order": (
        "for row in range(self._problem.kernel_height):\n                for column in "
        "range(self._problem.kernel_width):",
        "for column in range(self._problem.kernel_width):\n                for row in "
        "range(self._problem.kernel_height):",
    ),
    "the collector kept from tile to tile": ("collectors.fill(0)", "collectors[:] *= first > 0"),
    "factored beyond the collector": ("stays or (mac.overflow", "True or (mac.overflow"),
    "the limit skipped one bit too early": (
        "tile < min(1 << (mac.accumulator_bits - 1),",
        "tile < min(1 << mac.accumulator_bits,",
    ),
    "a bound of half the range": ("stays = tile < min(", "stays = tile <= min("),
    "wrapped tiles factored into wider sums": ("alike = whole or", "alike = True or"),
    "single precision too long": ("dot <= _SINGLE)", "dot <= _SINGLE << 20)"),
}


def _with_fault(folder: Path, kernels: Fault | None = None, values: Fault | None = None) -> Sums:
    """`vector_sums` of both files with a fault put into one, its kernels run by Python."""
    plain = (
        "from archsim.kernels import inlined, kernel",
        "inlined = kernel = lambda given: given if callable(given) else inlined",
    )
    mutated = faulty_module(vector_kernels, folder, plain, *([kernels] if kernels else []))
    module = faulty_module(vector_values, folder, *([values] if values else []))
    setattr(module, "vk", mutated)  # noqa: B010
    setattr(module, "_BLOCK", 20)  # noqa: B010
    return module.vector_sums


def _few_cases() -> list[Case]:
    """Small layers in which every fault shows: each way, tiles, padding, dilation, both limits."""
    conv = Conv2d(
        name="c", channels=11, filters=5, ifmap_height=4, ifmap_width=4, kernel_height=2,
        kernel_width=2, pad_top=1, pad_right=1, dilation_width=2,
    )  # fmt: skip
    few = replace(conv, filters=1)
    product = MatMul(name="m", m=3, n=4, k=13)
    long = MatMul(name="l", m=2, n=4, k=40)
    rounded = {"scale_product_bits": 6}
    wraps: dict[str, Any] = {"overflow": "wrap"}
    chosen = [
        (conv, summation_of(accumulator_bits=15, **rounded)),
        (conv, summation_of(accumulator_bits=15)),
        (few, summation_of(accumulator_bits=12, **rounded)),
        (conv, replace(summation_of(accumulator_bits=14, **wraps), channel_tile=2)),
        (conv, replace(summation_of(accumulator_bits=12, **wraps), channel_tile=2, sum_bits=13)),
        (conv, replace(summation_of(accumulator_bits=16, **rounded), channel_tile=1, sum_bits=16)),
        (product, summation_of(accumulator_bits=40)),
        (long, summation_of(bits=16, vector=40, accumulator_bits=50, **rounded)),
        (conv, replace(summation_of(2, 1, accumulator_bits=5), channel_tile=8)),
    ]
    drawn = [
        Case(
            layer=layer, summation=summation, operands=any_operands(layer, summation, seed, corner)
        )
        for layer, summation in chosen
        for seed, corner in ((1, 0.3), (2, 0.9), (3, 0.0))
    ]
    return [*drawn, _at_the_bound(4, 8, 24), _at_the_bound(1, 1, 7)]


def _at_the_bound(depth: int, scale_bits: int, accumulator_bits: int) -> Case:
    """Sums of the largest products of all, which are the bound itself and just saturate."""
    layer = MatMul(name="b", m=1, n=4, k=depth)
    summation = summation_of(scale_bits=scale_bits, accumulator_bits=accumulator_bits)
    drawn = any_operands(layer, summation, seed=0)
    scale = np.full((1, 1, 1), 2**scale_bits - 1, np.int32)
    operands = replace(
        drawn,
        ifmap=np.full_like(drawn.ifmap, -8),
        weight=np.full_like(drawn.weight, -8),
        ifmap_scales=scale,
        weight_scales=np.repeat(scale, 4, axis=2),
    )
    case = Case(layer=layer, summation=summation, operands=operands)
    assert (plain_sums(case) == 2 ** (accumulator_bits - 1) - 1).all()
    return case


FEW = _few_cases()


def test_the_untouched_functions_pass(tmp_path: Path) -> None:
    plain = _with_fault(tmp_path)
    assert all(agrees(plain, case) for case in FEW)


@pytest.mark.parametrize("name", [*FAULTS, *VALUE_FAULTS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_faults_are_caught(name: str, tmp_path: Path) -> None:
    faulty = _with_fault(tmp_path, FAULTS.get(name), VALUE_FAULTS.get(name))
    assert not all(agrees(faulty, case) for case in FEW)
