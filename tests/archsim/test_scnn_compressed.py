"""Compressed IARAM and OARAM in the model: contents bit by bit, capacity, latencies, faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from faulty_module import Fault, faulty_module
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scnn_cases import Case, designs, differences, layers, operands_of, services
from scnn_oracle import Oracle
from scnn_passes import BiasedOracle, Shape, chained
from scnn_streams import Content, codec_rows, contents_of

from archsim.designs.registry import design_from_record, design_record, with_settings
from archsim.designs.scnn import SCNN_ISCA17, Scnn
from archsim.errors import InputError
from archsim.simulate import simulate
from archsim.sparse import stream_rows, timing
from archsim.sparse.chain import chain_timing
from archsim.sparse.layer import layer_passes, layer_timing
from archsim.sparse.stream_actions import ROW_ACTIONS
from archsim.sparse.words import LayerRun, PassWords, pass_words
from archsim.stream_memory import BovedaStream, PlainStream
from workloads.layers import Conv2d, Network
from workloads.operands import Operands

COMPRESSED = Scnn(
    grid_rows=2, grid_columns=2, activation_memory=BovedaStream(group=2), bank_entries=16,
    iaram_bytes=400, oaram_bytes=400,
)  # fmt: skip


def plainly(design: Scnn) -> Scnn:
    return replace(design, activation_memory=PlainStream())


@st.composite
def compressed_designs(draw: st.DrawFn) -> Scnn:
    group = draw(st.integers(1, 3))
    memory = BovedaStream(group=group, expansion=draw(st.integers(1, 4)))
    return replace(
        draw(designs()),
        operand_bits=draw(st.sampled_from([4, 8, 16])),
        ifmap_lanes=group * draw(st.integers(1, 3)),
        iaram_bytes=draw(st.sampled_from([80, 200, 2000])),
        oaram_bytes=draw(st.sampled_from([80, 200, 2000])),
        activation_memory=memory,
    )


@st.composite
def compressed_cases(draw: st.DrawFn) -> Case:
    design, layer, seed = draw(compressed_designs()), draw(layers()), draw(st.integers(0, 10**6))
    density = st.sampled_from([0.0, 0.1, 0.3, 0.8, 1.0])
    bits = min(design.intake.source_bits, 6)
    operands = operands_of(layer, (draw(density), draw(density)), seed, bits)
    narrow = operands.ifmap >> draw(st.integers(0, bits - 1))
    return Case(
        design=design,
        layer=layer,
        operands=replace(operands, ifmap=narrow, shift=max(0, operands.shift - 3)),
        seed=seed,
        gap=draw(st.sampled_from([0, 0, 3])),
    )


def check_content(design: Scnn, one: Any, oracle: Oracle) -> None:
    """What the model counts is what lies in every PE's memories, and fits."""
    assert one.stored
    rows = (design.iaram_vectors, design.oaram_vectors)
    entries = (design.iaram_entries, design.oaram_entries)
    for found, contents, most, room in zip(
        one.stored, contents_of(oracle), rows, entries, strict=True
    ):
        assert found.rows.tolist() == [[len(column) for column in own.rows] for own in contents]
        assert found.vectors.tolist() == [len(own.entries) for own in contents]
        assert found.rows.max() <= most
        assert found.vectors.max() <= room
        assert found.bits(design, design.compressed) == sum(_bits(design, own) for own in contents)


def _bits(design: Scnn, content: Content) -> int:
    field = design.operand_bits.bit_length() - 1
    rows = sum(len(row) for column in content.rows for row in column) * design.operand_bits
    return rows + sum(
        field * len(widths) + design.index_bits * len(indices) + 1
        for widths, indices, _ in content.entries
    )


def runs_of(case: Case) -> list[PassWords] | None:
    """The passes of a case; None where the core refuses the layer."""
    try:
        return pass_words(case.design, [LayerRun(layer=case.layer, operands=case.operands)])
    except InputError:
        return None


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.filter_too_much])
@given(compressed_cases())
def test_the_model_is_the_stepped_one_and_its_contents_are_the_codec_s(case: Case) -> None:
    passes = runs_of(case)
    assume(passes)
    assert passes
    found = layer_timing(case.design, case.layer, case.operands, services(case))
    gaps = {port: case.gaps(port, 20000).tolist() for port in ("ifmap", "weight", "ofmap")}
    totals = dict.fromkeys(ROW_ACTIONS, 0)
    for words, one in zip(passes, found.passes, strict=True):
        oracle = BiasedOracle(case.design, words, gaps)
        oracle.words = 0
        assert differences(one, oracle.run()) == []
        check_content(case.design, one, oracle)
        ifmap, ofmap = contents_of(oracle)
        for pe, content in zip(oracle.pes, ifmap, strict=True):
            assert content.rows == codec_rows(case.design, list(pe.lists.values()))
        written = [
            sum(len(column) for own in some for column in own.rows) for some in (ifmap, ofmap)
        ]
        totals["iaram_row_write"] += written[0]
        totals["iaram_row_read"] += written[0] * len(oracle.groups)
        totals["oaram_row_write"] += written[1]
        totals["oaram_row_read"] += written[1]
    assert {name: found.actions[name] for name in ROW_ACTIONS} == totals


# capacity

POINT = Conv2d(name="p", channels=24, filters=1, ifmap_height=1, ifmap_width=1, kernel_height=1,
               kernel_width=1)  # fmt: skip
"""One PE, a vector a channel, of one value."""
SINGLE = Scnn(
    grid_rows=1, grid_columns=1, operand_bits=8, ifmap_lanes=2, oaram_bytes=64,
    activation_memory=BovedaStream(group=2),
)  # fmt: skip


def point_operands(values: list[int]) -> Operands:
    drawn = operands_of(POINT, (1.0, 1.0), 1)
    return replace(drawn, ifmap=np.array(values, np.int16).reshape(1, -1, 1, 1))


def with_rows(rows: int, expansion: int = 2) -> Scnn:
    """24 bits a vector: 3 bytes a row."""
    memory = replace(SINGLE.activation_memory, expansion=expansion)
    return replace(SINGLE, iaram_bytes=3 * rows, activation_memory=memory)


def test_a_content_that_just_fits_and_one_bit_more() -> None:
    """24 groups of 4 bits are 12 rows of 8; one of 5 begins another."""
    values = [7, -7, 4, -4] * 6
    stored = layer_timing(with_rows(12), POINT, point_operands(values)).passes[0].stored
    assert stored and stored[0].rows.tolist() == [[12]]
    with pytest.raises(InputError) as raised:
        layer_timing(with_rows(12), POINT, point_operands([8, *values[1:]]))
    assert str(raised.value) == (
        "p: iaram_bytes must be at least 39 (13 rows of values and 24 vectors in a PE, for the "
        "smallest strip of the plane), not 36"
    )
    assert layer_timing(with_rows(13), POINT, point_operands([8, *values[1:]])).strips == 1


def test_entries_are_counted_too() -> None:
    """24 vectors, of zeros but one, take 1 row, and 24 entries."""
    values = [1, *[0] * 23]
    assert layer_timing(with_rows(12), POINT, point_operands(values)).strips == 1
    assert layer_timing(with_rows(6, expansion=4), POINT, point_operands(values)).strips == 1
    with pytest.raises(InputError) as raised:
        layer_timing(with_rows(11), POINT, point_operands(values))
    assert str(raised.value) == (
        "p: iaram_bytes must be at least 36 (1 rows of values and 24 vectors in a PE, for the "
        "smallest strip of the plane), not 33"
    )


def test_the_widest_values_fit_as_plainly() -> None:
    values = point_operands([-128, 127] * 12)
    plain, compressed = plainly(with_rows(24)), with_rows(24)
    for design in (plain, compressed):
        assert layer_timing(design, POINT, values).strips == 1
    for design in (plainly(with_rows(23)), with_rows(23)):
        with pytest.raises(InputError, match="iaram_bytes must be at least 72"):
            layer_timing(design, POINT, values)


CONV = Conv2d(
    name="c", channels=6, filters=5, ifmap_height=16, ifmap_width=12, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True,
)  # fmt: skip


def narrow_operands(bits: int) -> Operands:
    drawn = operands_of(CONV, (0.9, 0.6), seed=3, bits=8)
    return replace(drawn, ifmap=drawn.ifmap >> (8 - bits))


def test_narrow_values_need_fewer_strips() -> None:
    operands = narrow_operands(3)
    design = replace(COMPRESSED, iaram_bytes=300, bank_entries=32)
    compressed, plain = (layer_timing(one, CONV, operands) for one in (design, plainly(design)))
    assert compressed.strips < plain.strips
    assert compressed.ifmap_bits < plain.ifmap_bits
    assert compressed.weight_bits < plain.weight_bits
    assert np.array_equal(compressed.ofmap, plain.ofmap)
    stored = compressed.stored
    assert stored["ifmap_stored_bits"] < stored["ifmap_plain_bits"]
    assert plain.stored == {}
    assert not set(ROW_ACTIONS) & set(plain.actions)


def test_results_say_what_is_stored() -> None:
    network = Network(name="n", source="test", layers=(CONV,))
    (layer,) = simulate(COMPRESSED, network, operands={"c": narrow_operands(3)}).layers
    timed = layer_timing(COMPRESSED, CONV, narrow_operands(3))
    assert dict(layer.stored) == timed.stored
    assert layer.record()["ofmap_stored_bits"] == timed.stored["ofmap_stored_bits"]


def test_the_fewest_strips_are_tried() -> None:
    """One strip fewer does not fit: the number to begin with is not too high."""
    for bits in (2, 4, 8):
        operands = narrow_operands(bits)
        found = layer_passes(COMPRESSED, CONV, operands)[0]
        sizes = [len(strip.rows) for strip in found]
        for rows in range(sizes[0] + 1, CONV.ofmap_height + 1):
            whole = replace(COMPRESSED, iaram_bytes=10**6, oaram_bytes=10**6)
            assert not _fits(whole, operands, rows)


def _fits(whole: Scnn, operands: Operands, rows: int) -> bool:
    """Whether strips of so many rows fit the small memories."""
    from archsim.core import layout
    from archsim.core.problem import problem_of
    from archsim.sparse import strips

    problem = problem_of(CONV)
    plane = strips._Plane(  # pyright: ignore[reportPrivateUsage]
        problem=problem,
        ifmap=layout.split_ifmap(CONV, problem, operands.ifmap)[0, 0],
        weight=layout.split_weight(CONV, problem, operands.weight)[0],
        ofmap=np.moveaxis(layer_timing(whole, CONV, operands).ofmap[0], 0, -1),
    )
    try:
        list(strips._strips(COMPRESSED, plane, rows))  # pyright: ignore[reportPrivateUsage]
    except InputError:
        return False
    return True


# latencies and chains


def test_only_constants_change() -> None:
    """Where all fits: the first group 4 cycles later, the ofmap 4 more."""
    operands, roomy = narrow_operands(8), replace(COMPRESSED, iaram_bytes=4000, oaram_bytes=4000)
    (compressed,), (plain,) = (
        layer_timing(one, CONV, operands).passes for one in (roomy, plainly(roomy))
    )
    assert compressed.starts[0] == plain.starts[0] + 4 == plain.ifmap_cycles[-1] + 5
    assert compressed.ofmap_cycles[0] - compressed.drained[-1] == 7
    assert compressed.cycles == plain.cycles + 8
    assert compressed.compute_cycles == plain.compute_cycles


FIRST = Shape(plane=(3, 5), channels=2, filters=3, kernel=(2, 3), pad=(1, 1), has_bias=True)
SECOND = Shape(plane=(4, 5), channels=3, filters=4, kernel=(3, 3), pad=(1, 1), has_bias=True)
THIRD = Shape(plane=(4, 5), channels=4, filters=2, relu=True)
CHAIN = (FIRST, SECOND, THIRD)


def chain_agrees(module: ModuleType = timing) -> bool:
    """Model and oracle of a chain whose first ofmap stays."""
    for one in pass_words(COMPRESSED, chained(COMPRESSED, CHAIN, (True, False), seed=6)):
        oracle = BiasedOracle(COMPRESSED, one, {})
        found = module.pass_timing(COMPRESSED, one.strip.mapping, one.strip.operands)
        if differences(found, oracle.run()):
            return False
        check_content(COMPRESSED, found, oracle)
    return True


def test_a_chain_agrees() -> None:
    assert chain_agrees()


def test_an_ofmap_stays_that_would_not_plainly() -> None:
    first = replace(CONV, filters=6)
    operands = [narrow_operands(3)]
    operands[0] = replace(
        operands_of(first, (0.9, 0.6), seed=3, bits=8), ifmap=operands[0].ifmap, shift=12
    )
    design = replace(COMPRESSED, iaram_bytes=375, oaram_bytes=375, bank_entries=64)
    ofmap = layer_timing(design, first, operands[0]).ofmap.astype(np.int16)
    operands.append(replace(operands_of(CONV, (0.9, 0.6), seed=4, bits=8), ifmap=ofmap))
    found, plain = (chain_timing(one, (first, CONV), operands) for one in (design, plainly(design)))
    assert [one.ofmap_bits == 0 for one in found] == [True, False]
    assert [one.ofmap_bits == 0 for one in plain] == [False, False]
    assert found[1].actions["iaram_row_write"] == found[0].actions["oaram_row_read"] == 0
    assert found[1].actions["iaram_row_read"] > 0


# the field of a design


def test_the_default_is_plain() -> None:
    assert SCNN_ISCA17.activation_memory == PlainStream()
    assert SCNN_ISCA17.compressed is None
    assert (SCNN_ISCA17.iaram_entries, SCNN_ISCA17.ofmap_latency_cycles) == (1024, 3)


def test_it_is_set_as_other_memories_are() -> None:
    settings_ = ["activation_memory.kind=boveda", "activation_memory.group=2"]
    design = with_settings(SCNN_ISCA17, settings_)
    assert design == replace(SCNN_ISCA17, activation_memory=BovedaStream(group=2))
    assert design_from_record(design_record(design), "x") == design
    assert with_settings(design, ["activation_memory.kind=plain"]) == SCNN_ISCA17


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_memory.group": 3}, "group must divide ifmap_lanes, 4, not be 3"),
        ({"activation_memory.group": 0}, "group must be positive, not 0"),
        ({"activation_memory.expansion": 0}, "expansion must be at least 1, not 0"),
        (
            {"operand_bits": 12},
            "operand_bits must be 4, 8 or 16 for compressed activations, not 12",
        ),
        ({"activation_memory.unit_words": 4}, "activation_memory has no 'unit_words'"),
        ({"activation_memory.kind": "zip"}, "activation_memory has no kind 'zip'"),
    ],
)
def test_what_it_may_not_be(change: dict[str, Any], message: str) -> None:
    given_ = ["activation_memory.kind=boveda", *(f"{key}={value}" for key, value in change.items())]
    with pytest.raises(InputError) as raised:
        with_settings(SCNN_ISCA17, given_)
    assert message in str(raised.value)


# faults of the model

TIMING_FAULTS: dict[str, Fault] = {
    "the first group without its latency": ("start += design.load_latency_cycles", "start += 0"),
    "the first group a cycle early": (
        "start += design.load_latency_cycles if",
        "start += design.load_latency_cycles - 1 if",
    ),
    "the first group a cycle late": (
        "start += design.load_latency_cycles if",
        "start += design.load_latency_cycles + 1 if",
    ),
    "what has stayed is waited for": ("if offered else 0", "if True else 0"),
    "the ofmap a cycle early": (
        "free + design.ofmap_latency_cycles",
        "free + design.ofmap_latency_cycles - 1",
    ),
    "the ofmap a cycle late": (
        "free + design.ofmap_latency_cycles",
        "free + design.ofmap_latency_cycles + 1",
    ),
    "the ofmap as of a plain memory": ("free + design.ofmap_latency_cycles", "free + 3"),
    "what stays as of a plain memory": ("else design.exchange_cycles", "else 2 + 4"),
}


@pytest.mark.parametrize("name", TIMING_FAULTS)
def test_a_wrong_latency_is_caught(name: str, tmp_path: Path) -> None:
    assert not chain_agrees(faulty_module(timing, tmp_path, TIMING_FAULTS[name]))


ROW_FAULTS: dict[str, Fault] = {
    "a row begun is forgotten": ("rows=-(-sums // design.operand_bits)", "rows=sums // 16"),
    "a row too many": ("rows=-(-sums // design.operand_bits)", "rows=sums // 16 + 1"),
    "PEs share a memory": ("starts[:-1], axis=0", "starts[:-1] * 0, axis=0"),
    "zeros take bits": (
        "form.numbers, (0, len(widths)), widths)\n    starts",
        "(*form.numbers[:3], 0), (0, len(widths)), widths)\n    starts",
    ),
    "a group is as wide as its first lane": (
        "(lists.lanes, columns), form.numbers, (0",
        "(lists.lanes, columns), (1, *form.numbers[1:]), (0",
    ),
    "no sign": ("form.numbers, (0, len(widths)), widths)\n    starts",
                "(*form.numbers[:2], 0, 1), (0, len(widths)), widths)\n    starts"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROW_FAULTS)
def test_rows_counted_wrong_are_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = faulty_module(stream_rows, tmp_path, ROW_FAULTS[name])
    monkeypatch.setattr(timing, "stored_lists", copy.stored_lists)
    with pytest.raises(AssertionError):
        assert chain_agrees()


FIT_FAULTS: dict[str, tuple[Fault, Callable[[], Any]]] = {
    "a row more than there is": (
        ("rows <= held", "rows <= held + 1"),
        lambda: layer_timing(with_rows(12), POINT, point_operands([8, 7] + [4, -4] * 11)),
    ),
    "entries not counted": (
        ("and vectors <= memory.entries(held)", ""),
        lambda: layer_timing(with_rows(11), POINT, point_operands([1, *[0] * 23])),
    ),
}


@pytest.mark.parametrize("name", FIT_FAULTS)
def test_a_wrong_capacity_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archsim.sparse import strips

    fault, refused = FIT_FAULTS[name]
    with pytest.raises(InputError):
        refused()
    monkeypatch.setattr(strips, "why_not", faulty_module(stream_rows, tmp_path, fault).why_not)
    refused()
