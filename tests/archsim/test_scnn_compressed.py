"""Compressed IARAM and OARAM in the model: contents bit by bit, capacity, latencies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from scnn_cases import Case, differences, operands_of, services
from scnn_passes import BiasedOracle
from scnn_stream_cases import (
    COMPRESSED,
    POINT,
    chain_agrees,
    check_content,
    compressed_cases,
    plainly,
    point_operands,
    with_rows,
)
from scnn_streams import codec_rows, contents_of

from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn import strips
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.scnn.layer import layer_passes, layer_timing, layer_values
from archsim.machines.scnn.stream_actions import ROW_ACTIONS
from archsim.machines.scnn.words import LayerRun, PassWords, pass_words
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import PlainStream
from archsim.numbers import ceil_div
from archsim.simulate import simulate
from workloads.layers import Conv2d, Network
from workloads.operands import Operands


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


def test_a_content_that_just_fits_and_one_bit_more() -> None:
    """24 groups of 4 bits are 12 rows of 8; one of 5 begins another."""
    values = [7, -7, 4, -4] * 6
    stored = layer_timing(with_rows(12), POINT, point_operands(values)).passes[0].stored
    ifmap: Any = stored[0] if stored else None
    assert ifmap.rows.tolist() == [[12]]
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


@pytest.mark.parametrize("iaram_bytes", [200, 280, 400, 560])
def test_the_fewest_strips_are_tried(iaram_bytes: int) -> None:
    """Fewer strips do not fit: the number to begin with is not too high."""
    design = replace(COMPRESSED, iaram_bytes=iaram_bytes, oaram_bytes=2 * iaram_bytes)
    design = replace(design, bank_entries=64)
    for bits in (2, 3, 4, 8):
        operands = replace(narrow_operands(bits), shift=12)
        found = layer_passes(design, CONV, operands)[0]
        for number in range(1, len(found)):
            assert not _fits(design, operands, ceil_div(CONV.ofmap_height, number))


def _fits(design: Scnn, operands: Operands, rows: int) -> bool:
    """Whether strips of so many rows fit."""
    problem = problem_of(CONV)
    ofmap = layer_values(design, CONV, operands)
    plane = strips._Plane(  # pyright: ignore[reportPrivateUsage]
        problem=problem,
        ifmap=layout.split_ifmap(CONV, problem, operands.ifmap)[0, 0],
        weight=layout.split_weight(CONV, problem, operands.weight)[0],
        ofmap=np.moveaxis(ofmap[0], 0, -1),
        windows=None,
    )
    try:
        list(strips._strips(design, plane, rows))  # pyright: ignore[reportPrivateUsage]
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


def test_a_chain_agrees() -> None:
    assert chain_agrees()


# the field of a design


def test_the_default_is_plain() -> None:
    assert SCNN_ISCA17.activation_memory == PlainStream()
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
