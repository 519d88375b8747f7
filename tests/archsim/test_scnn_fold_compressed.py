"""Folded fully connected layers in compressed memories: passes, contents, faults.

How many filters a pass has is decided by what their outputs take of an OARAM, which is counted here
plainly: an output is a vector of its own, so it takes an entry, and its own width of the rows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from faulty_module import Fault, faulty_module
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scnn_cases import differences, operands_of
from scnn_passes import BiasedOracle
from scnn_stream_cases import check_content, compressed_designs, plainly
from scnn_streams import width_of

from archsim.errors import InputError
from archsim.machines.scnn import fold
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.scnn.fold import folded
from archsim.machines.scnn.layer import layer_passes, layer_timing, layer_values
from archsim.machines.scnn.words import LayerRun, pass_words
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.numbers import ceil_div
from archsim.simulate import simulate
from workloads.layers import MatMul, Network
from workloads.operands import Operands

ROWS = 6
"""Vectors of an OARAM, whatever their values: 3 bytes each."""
DESIGN = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
    iaram_bytes=600, oaram_bytes=3 * ROWS, operand_bits=8, weight_fifo_vectors=20,
    activation_memory=BovedaStream(group=2, expansion=3),
)  # fmt: skip


def product_of(outputs: list[list[int]], design: Scnn) -> tuple[MatMul, Operands]:
    """A product of so many inputs that it is folded, of which the first makes the outputs."""
    rows = np.array(outputs, np.int16)
    layer = MatMul(name="fc", m=len(rows), n=rows.shape[1], k=design.iaram_entries + 1)
    drawn = operands_of(layer, (1.0, 1.0), seed=1)
    ifmap, weight = np.zeros((1, layer.m, layer.k), np.int16), np.zeros((1, layer.k, layer.n))
    ifmap[0, range(layer.m), range(layer.m)], weight[0, : layer.m] = 1, rows
    ifmap[0, :, layer.m :] = np.arange(layer.m, layer.k) % 3  # by weights that are zero
    weights = weight.astype(np.int16)
    return layer, replace(drawn, ifmap=ifmap, weight=weights, bias=None, multiplier=1, shift=0)


def takes(design: Scnn, outputs: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Rows and entries of the outputs of one image."""
    widths = [width_of([int(value)], design.operand_bits) for value in outputs]
    return ceil_div(sum(widths), design.operand_bits), len(widths)


def holds(design: Scnn, ofmap: np.ndarray[Any, Any], size: int) -> bool:
    """Whether passes of so many filters fit, of every image [M, N]."""
    return all(
        rows <= design.oaram_vectors and entries <= design.oaram_entries
        for image in ofmap
        for first in range(0, len(image), size)
        for rows, entries in [takes(design, image[first : first + size])]
    )


def filters_of(design: Scnn, outputs: list[list[int]], module: ModuleType = fold) -> list[int]:
    """Of each part."""
    layer, operands = product_of(outputs, design)
    ofmap = layer_values(design, layer, operands)[0]
    assert ofmap.tolist() == outputs
    return [one.layer.filters for one in module.folded(design, layer, operands, ofmap)]


@pytest.mark.parametrize(
    ("outputs", "filters"),
    [
        ([[7, -7] * 6], [12]),  # 12 of 4 bits: 6 rows
        ([[7, -7] * 5 + [7, 8]], [6, 6]),  # one of 5 bits begins another
        ([[7, -7] * 6, [1] * 12], [12]),  # images lie there one after the other
        ([[1] * 12, [7, -7] * 5 + [7, 8]], [6, 6]),  # and both must fit
        ([[0] * 18], [18]),  # an entry each, and no bits
        ([[0] * 19], [10, 9]),  # one more than there are entries
        ([[127, -128] * 6], [6, 6]),  # as plainly
        ([[127] * 6 + [0] * 12], [18]),  # full rows, and zeros
        ([[127] * 3 + [0] * 6 + [127] * 6 + [0] * 3], [9, 9]),  # 3 rows and 6
        ([[127] * 9 + [0] * 9], [6, 6, 6]),  # no cut into two does
    ],
)
def test_filters_of_a_pass(outputs: list[list[int]], filters: list[int]) -> None:
    assert filters_of(DESIGN, outputs) == filters
    plain = filters_of(plainly(DESIGN), outputs)
    assert len(plain) == ceil_div(sum(filters), ROWS) >= len(filters)


FAULTS: dict[str, tuple[Fault, list[list[int]]]] = {
    "the sure depth": (("design.oaram_entries)", "design.oaram_vectors)"), [[7, -7] * 6]),
    "only the last part looked at": (
        ("all(_held(design, part) for part in parts)", "_held(design, [*parts][-1])"),
        [[127] * 9 + [0] * 9],
    ),
    "only the first image counted": (
        ("outputs.reshape(-1, 1), lanes", "outputs[:1].reshape(-1, 1), lanes"),
        [[1] * 12, [7, -7] * 5 + [7, 8]],
    ),
    "images share a memory": (("lists, len(outputs)) is None", "lists, 1) is None"),
                              [[7, -7] * 6, [1] * 12]),
    "a number of passes not tried": (("ceil_div(filters, size - 1)", "passes + 2"),
                            [[7, -7] * 5 + [7, 8]]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_count_is_caught(name: str, tmp_path: Path) -> None:
    fault, outputs = FAULTS[name]
    copy = faulty_module(fold, tmp_path, fault)
    try:
        found = filters_of(DESIGN, outputs, copy)
    except InputError:
        return
    assert found != filters_of(DESIGN, outputs)


@st.composite
def products(draw: st.DrawFn) -> tuple[Scnn, MatMul, Operands]:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    design = replace(
        draw(compressed_designs()), oaram_bytes=whole(20, 60), strip_rows=0, weight_fifo_vectors=20
    )
    layer = MatMul(name="m", m=whole(1, 3), n=whole(1, 40), k=whole(1, 60),
                   bias=draw(st.booleans()), relu=draw(st.booleans()))  # fmt: skip
    bits = min(design.intake.source_bits, 6)
    operands = operands_of(layer, (whole(1, 10) / 10, whole(1, 10) / 10), whole(0, 999), bits)
    narrower = whole(0, 3)
    return design, layer, replace(operands, shift=operands.shift + narrower)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
@given(products())
def test_parts_are_the_fewest_and_fit_bit_by_bit(case: tuple[Scnn, MatMul, Operands]) -> None:
    design, layer, operands = case
    ofmap = layer_values(design, layer, operands)[0]
    try:
        parts = folded(design, layer, operands, ofmap)
    except InputError:
        assume(False)
        return
    assert not any(
        holds(design, ofmap, ceil_div(layer.n, number)) for number in range(1, len(parts))
    )
    together = np.concatenate([part.ofmap for part in parts], axis=1)
    assert np.array_equal(together, ofmap)
    for part in parts:
        values = layer_values(design, part.layer, part.operands)[:, :, 0, 0]
        assert np.array_equal(values, part.ofmap)
        timed = layer_timing(design, part.layer, part.operands)
        passes = pass_words(design, [LayerRun(layer=part.layer, operands=part.operands)])
        for words, one in zip(passes, timed.passes, strict=True):
            oracle = BiasedOracle(design, words, {})
            oracle.words = 0
            assert differences(one, oracle.run()) == []
            check_content(design, one, oracle)


def test_a_layer_of_alexnet_s_size_takes_fewer_passes() -> None:
    """4096 outputs of 8 bits in 1024 rows of 16."""
    layer = MatMul(name="fc7", m=1, n=4096, k=4096, relu=True)
    operands = operands_of(layer, (0.4, 0.05), seed=1, bits=8)
    network = Network(name="n", source="test", layers=(layer,))
    compressed = replace(SCNN_ISCA17, activation_memory=BovedaStream())
    found, plain = (
        simulate(one, network, operands={"fc7": operands}).layers[0]
        for one in (compressed, SCNN_ISCA17)
    )
    assert (found.tiles, plain.tiles) == (2, 4)
    assert found.cycles < plain.cycles
    assert found.bytes_moved["ifmap"] * 2 == plain.bytes_moved["ifmap"]
    assert found.bytes_moved["weight"] == plain.bytes_moved["weight"]
    assert found.ofmap is not None and plain.ofmap is not None
    assert np.array_equal(found.ofmap, plain.ofmap)


def test_holding_more_is_no_loss() -> None:
    """ResNet-50's layer, whole, fits compressed memories only; folded, it moves less in both."""
    layer = MatMul(name="fc", m=1, n=1000, k=2048)
    operands = operands_of(layer, (0.4, 0.4), seed=1, bits=8)
    compressed = replace(SCNN_ISCA17, activation_memory=BovedaStream())
    with pytest.raises(InputError):
        layer_passes(SCNN_ISCA17, layer, operands)
    assert layer_passes(compressed, layer, operands)
    found, plain = (layer_timing(one, layer, operands) for one in (compressed, SCNN_ISCA17))
    assert found.weight_bits == plain.weight_bits
    assert found.cycles == plain.cycles + 8 * len(found.passes)
