"""Sums with a scale a vector, by products of bytes: against plain loops, and with faults put in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_module import Fault, faulty_module
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_sums_plainly import Case, agrees, any_operands, layers

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vsquant import VectorFormat
from archsim.layer import integer_products
from archsim.machines.vsq import product_kernels, vector_products, vector_values
from archsim.machines.vsq.vector_values import VectorSummation, vector_sums
from workloads.layers import Conv2d, MatMul


def summation(vector: int = 4, **changes: Any) -> VectorSummation:
    """Of weights and activations of 4 bits, but for the changes."""
    chosen: dict[str, Any] = {
        "bits": (4, 4), "signed": (True, False), "scale_bits": 6, "product_bits": 5,
        "collector": 14, "overflow": "saturate", "tile": 2, "sum_bits": 20,
    }  # fmt: skip
    assert not changes.keys() - chosen.keys()
    chosen |= changes
    weight, activation = (
        VectorFormat(bits=bits, signed=signed, vector=vector, scale_bits=chosen["scale_bits"])
        for bits, signed in zip(chosen["bits"], chosen["signed"], strict=True)
    )
    mac = VectorMac(
        weight=weight,
        activation=activation,
        scale_product_bits=chosen["product_bits"],
        accumulator_bits=chosen["collector"],
        overflow=chosen["overflow"],
    )
    return VectorSummation(mac=mac, channel_tile=chosen["tile"], sum_bits=chosen["sum_bits"])


@st.composite
def summations(draw: st.DrawFn) -> VectorSummation:
    """All that products of bytes may sum, to the ends of what they may."""
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    scale_bits, collector = whole(1, 8), whole(4, 30)
    return summation(
        draw(st.sampled_from([1, 2, 3, 5, 8, 64])),
        bits=(whole(2, 7), whole(2, 7)), signed=(draw(st.booleans()), draw(st.booleans())),
        scale_bits=scale_bits, product_bits=whole(1, 2 * scale_bits - 1), collector=collector,
        overflow=draw(st.sampled_from(["saturate", "wrap"])), tile=whole(1, 4),
        sum_bits=whole(collector, 40),
    )  # fmt: skip


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Products of bytes are taken for whatever size, in small blocks; how often they were."""
    exact, made = integer_products.exact_product(), [0]
    assert exact is not None

    def product_for(macs: int, depth: int) -> integer_products.Product:
        made[0] += 1
        return exact

    monkeypatch.setattr(vector_values, "product_for", product_for)
    monkeypatch.setattr(vector_products, "_LEAST_LENGTH", 1)
    monkeypatch.setattr(vector_products, "_LEAST_PIXELS", 7)
    monkeypatch.setattr(vector_products, "_DOT_BYTES", 200)
    yield made


def test_sums_equal_the_plain_loops(taken: list[int]) -> None:
    @settings(max_examples=70, deadline=None)
    @given(layers(), summations(), st.integers(0, 10**6))
    def check(layer: Conv2d | MatMul, how: VectorSummation, seed: int) -> None:
        widest = how.mac.term_bits(how.vector)
        before, case = taken[0], Case(layer=layer, summation=how,
                                      operands=any_operands(layer, how, seed))  # fmt: skip
        assert agrees(vector_sums, case)
        assert (taken[0] > before) == (widest <= 30)

    check()


def test_what_does_not_fit_is_not_taken(taken: list[int]) -> None:
    """A byte of no sign, a collector of more than 30 bits, terms of more, products not rounded."""
    layer = MatMul(name="m", m=3, n=4, k=9)
    ways = [
        summation(bits=(8, 8), signed=(True, False)),
        summation(collector=31, sum_bits=40),
        summation(64, bits=(8, 8), signed=(True, True), scale_bits=11, product_bits=11),
        summation(scale_bits=2, product_bits=4),
    ]
    for how in ways:
        case = Case(layer=layer, summation=how, operands=any_operands(layer, how, 1, 0.9))
        assert agrees(vector_sums, case)
        assert taken[0] == 0
    fits = summation(bits=(8, 8), signed=(True, True), collector=30, sum_bits=30)
    assert agrees(
        vector_sums, Case(layer=layer, summation=fits, operands=any_operands(layer, fits, 1))
    )
    assert taken[0] == 1


KERNEL_FAULTS: dict[str, Fault] = {
    "a saturation that comes late": (
        "min(max(np.int32(sums[n] + term), lowest), highest)",
        "min(max(sums[n], lowest), highest) + term",
    ),
    "wraps that are limited": ("if rules[CLIPPED]:", "if True:"),
    "limits that wrap": ("if rules[CLIPPED]:", "if False:"),
    "products of scales cut, not rounded": ("(1 << rules[DROPPED]) >> 1", "0"),
    "products of scales beyond their bits": (
        "dots[n] * min(scale, largest))\n            sums[n] = ",
        "dots[n] * scale)\n            sums[n] = ",
    ),
    "a bit of the collector": ("(32 - bits)", "(33 - bits)"),
    "a bit of the sums": ("64 - bits", "65 - bits"),
    "sums of the last tile alone": ("totals[k, n] += ", "totals[k, n] = "),
    "a weight of the next tap": ("low * taps + tap", "low * taps"),
    "rows as wide as their pixels": ("[k, p * width + start", "[k, p * wide + start"),
}  # fmt: skip

FIRST = ": tile.stop - tile.start"
PLACE_FAULTS: dict[str, Fault] = {
    "collectors of the sums' width": (
        "add_collectors(collectors, named.bits",
        "add_collectors(collectors, min(named.sum_bits, 32)",
    ),
    "one tile as wide as its sums": ("collectors, named.bits\n", "collectors, named.sum_bits\n"),
    "sums that are held too narrow": ("bits <= 32", "True"),
    "the collector kept from tile to tile": ("collectors[:] = 0", "collectors[:] *= first > 0"),
    "scales of the first tile's weights": (
        "weight_scales[:, tile]",
        f"weight_scales[:, {FIRST}]",
    ),
    "scales of the first tile's pixels": (
        "ifmap_scales[None, tile]",
        f"ifmap_scales[None, {FIRST}]",
    ),
    "pixels of the first rows": ("(rows[0] * one.out_width", "(0 * one.out_width"),
    "weights of the first tile": ("planes.weight[:, tile]", f"planes.weight[:, {FIRST}]"),
}  # fmt: skip


def _agree(folder: Path, kernels: Fault | None, places: Fault | None) -> bool:
    """Whether few cases agree with a fault put into one of the files, kernels run by Python."""
    plain = (
        "from archsim.kernels import inlined, kernel",
        "inlined = kernel = lambda given: given if callable(given) else inlined",
    )
    mutated = faulty_module(product_kernels, folder, plain, *([kernels] if kernels else []))
    module = faulty_module(vector_products, folder, *([places] if places else []))
    setattr(module, "pk", mutated)  # noqa: B010
    for name in ("_LEAST_LENGTH", "_LEAST_PIXELS", "_DOT_BYTES"):
        setattr(module, name, getattr(vector_products, name))
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        patch.setattr(vector_values, "sums_by_products", module.sums_by_products)
        return all(agrees(vector_sums, case) for case in FEW)


def _few() -> list[Case]:
    conv = Conv2d(
        name="c", channels=22, filters=6, ifmap_height=4, ifmap_width=4, kernel_height=2,
        kernel_width=2, pad_top=1, pad_right=1, dilation_width=2, groups=2,
    )  # fmt: skip
    product = MatMul(name="m", m=3, n=4, k=13)
    chosen = [
        (conv, summation(collector=12)),
        (conv, summation(collector=12, overflow="wrap", sum_bits=13)),
        (product, summation(collector=13, tile=8, sum_bits=13)),
        (product, summation(collector=24, product_bits=1, sum_bits=24)),
        (product, summation(collector=10, overflow="wrap", tile=8, sum_bits=13)),
    ]
    # sums of a hundred collectors, of more than 32 bits
    long = MatMul(name="l", m=1, n=2, k=400)
    wide = summation(
        bits=(7, 7), signed=(True, True), scale_bits=8, product_bits=14, collector=30, tile=1,
        sum_bits=40,
    )  # fmt: skip
    chosen_long = Case(layer=long, summation=wide, operands=any_operands(long, wide, 1, 1.0))
    return [chosen_long] + [
        Case(layer=layer, summation=how, operands=any_operands(layer, how, seed, corner))
        for layer, how in chosen
        for seed, corner in ((1, 0.3), (2, 0.9))
    ]


FEW = _few()


def test_the_untouched_modules_agree(taken: list[int], tmp_path: Path) -> None:
    assert _agree(tmp_path, None, None)
    assert taken[0] == len(FEW)


@pytest.mark.parametrize("name", [*KERNEL_FAULTS, *PLACE_FAULTS])
def test_every_fault_is_seen(name: str, taken: list[int], tmp_path: Path) -> None:
    assert not _agree(tmp_path, KERNEL_FAULTS.get(name), PLACE_FAULTS.get(name))
