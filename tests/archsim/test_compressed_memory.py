"""Compressed scratchpads in the model: what they hold, the tilings they allow, their latencies."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from compressed_tiles import tile_of
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs.boveda import BovedaFormat, encode
from archsim.errors import InputError
from archsim.layer.problem import Tiling
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.systolic.design import DATAFLOWS, EDGE_16, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import VSQ_16
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain, Use
from archsim.simulate import simulate
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled import plan as pn
from archsim.tiled.choice import find_tiling
from archsim.tiled.design import CoreDesign
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.layer_values import layer_words
from archsim.tiled.numerics import TiledLayer
from archsim.tiled.operand_fit import fit_tiling, stored_tiles
from archsim.tiled.schedule import schedule
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.tiled.walk import walk
from workloads.layers import Conv2d, Layer, MatMul, Network
from workloads.operands import Operands, synthetic

CONV = Conv2d(
    name="c", channels=32, filters=48, ifmap_height=12, ifmap_width=12, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, bias=True,
)  # fmt: skip


def core(ifmap: int = 1024, weight: int = 4096, **settings: Any) -> Systolic:
    """8 × 8 PEs with both memories compressed."""
    return Systolic(
        rows=8,
        columns=8,
        ifmap_memory=Boveda(capacity_bytes=ifmap, group=8, expansion=4),
        weight_memory=Boveda(capacity_bytes=weight, group=8, expansion=4),
        **settings,
    )


def plainly(design: CoreDesign) -> CoreDesign:
    """The same with plain memories of the same capacity."""
    return replace(
        design,
        ifmap_memory=Plain(capacity_bytes=design.ifmap_memory.capacity_bytes),
        weight_memory=Plain(capacity_bytes=design.weight_memory.capacity_bytes),
    )


def narrow(layer: Conv2d | MatMul, bits: int, seed: int = 0) -> Operands:
    """Operands of few bits."""
    drawn = synthetic(layer, seed=seed)
    return replace(drawn, ifmap=drawn.ifmap >> (8 - bits), weight=drawn.weight >> (8 - bits))


def network(*layers: Layer) -> Network:
    return Network(name="n", source="a test", layers=layers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity_bytes": 0}, "capacity_bytes must be positive, not 0"),
        ({"group": 0}, "group must be positive, not 0"),
        ({"unit_words": 12}, "unit_words must be a power of two, not 12"),
        ({"unit_words": 0}, "unit_words must be positive, not 0"),
        ({"expansion": 0}, "expansion must be at least 1, not 0"),
        ({"expansion": 1.5}, "expansion must be a whole number, not 1.5"),
    ],
)
def test_what_a_memory_may_not_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        Boveda(**{"capacity_bytes": 4096, **change})
    assert str(error.value) == message


def test_what_a_design_may_not_compress() -> None:
    memory = Boveda(capacity_bytes=65536, group=16)
    with pytest.raises(InputError, match="ifmap_memory: group must divide the 8 lanes of a word"):
        Systolic(rows=8, ifmap_memory=memory)
    with pytest.raises(
        InputError, match="accumulator_memory must store words as they are: its rows of sums"
    ):
        Systolic(accumulator_memory=memory)
    with pytest.raises(
        InputError, match="weight_memory of a vsq core must store words as they are: its words"
    ):
        replace(VSQ_16, weight_memory=memory)
    with pytest.raises(InputError, match=r"must all be of 4, 8 or 16 bits, not of 4, 6"):
        bits, signed = (4,) * 16 + (6,), (True,) * 17
        memory.check(Use(name="w", field="w_memory", lane_bits=bits, lane_signed=signed))
    with pytest.raises(InputError, match="ifmap_memory holds 16 bytes, but two halves"):
        Systolic(ifmap_memory=Boveda(capacity_bytes=16, group=16, expansion=64))


def test_a_design_is_read_as_it_is_written() -> None:
    design = core()
    assert design_from_record(design_record(design), "here") == design
    changed = with_settings(EDGE_16, ["ifmap_memory.kind=boveda", "ifmap_memory.group=4"])
    assert isinstance(changed, Systolic)
    assert changed.ifmap_memory == Boveda(capacity_bytes=65536, group=4)
    assert with_settings(changed, ["ifmap_memory.kind=plain"]) == EDGE_16
    with pytest.raises(InputError, match="ifmap_memory has no 'read_latency_cycles'"):
        with_settings(changed, ["ifmap_memory.read_latency_cycles=1"])


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([4, 8, 16]), st.booleans(), st.integers(1, 5), st.sampled_from([1, 2, 4, 16]),
    st.integers(1, 40), st.integers(0, 2**32),
)  # fmt: skip
def test_rows_are_those_of_the_codec(
    bits: int, signed: bool, group: int, unit: int, count: int, seed: int
) -> None:
    """Every unit of every column, encoded for itself, has the rows that are counted."""
    rng = np.random.default_rng(seed)
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    words = rng.integers(low, high, (count, 2 * group)) >> rng.integers(0, bits, (count, 1))
    form = BovedaFormat(group=group, container_bits=bits, signed=signed)
    counted = tile_of(words, form, unit).rows[0]
    for column in range(2):
        lanes = words[:, column * group : (column + 1) * group]
        units = [lanes[at : at + unit] for at in range(0, count, unit)]
        assert counted[column] == sum(len(encode(one, form, aligned_axes=0).rows) for one in units)


def _brute_force(values: Any, unit: int) -> int:
    """Rows of a column of signed 8-bit words [words, lanes], value by value."""
    rows = 0
    for start in range(0, len(values), unit):
        taken = 0
        for word in values[start : start + unit]:
            taken += min(
                max(abs(int(value)).bit_length() + 1 for value in word) + (not any(word)), 8
            )
        rows += -(-taken // 8)
    return rows


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_every_tile_fits_and_no_word_is_forgotten(dataflow: Any) -> None:
    """Against the words that cross the port, tile by tile, widths found value by value."""
    design = core(512, 2048, dataflow=dataflow)
    operands = narrow(CONV, 4)
    problem, numerics = design.numerics.problem(CONV), design.numerics
    sure = find_tiling(problem, design.machine)
    tiling, found = fit_tiling("c", design, problem, numerics.stored(CONV, operands), sure)
    tiles = walk(problem.vector(), tiling.vector(), design.machine)

    tiled = TiledLayer(layer=CONV, problem=problem, tiling=tiling, tiles=tiles)
    words = layer_words(design, tiled, operands)
    for name, load, size in (
        ("ifmap", cmd.LOAD_IFMAP, cmd.IFMAP_WORDS), ("weight", cmd.LOAD_WEIGHT, cmd.WEIGHT_WORDS),
    ):  # fmt: skip
        counts = tiles[tiles[:, load] == 1, size]
        parts = np.split(words[name], np.cumsum(counts)[:-1])
        most = max(_brute_force(part, 16) for part in parts)
        tiles_of: Any = found[name]
        assert most == tiles_of.most_rows <= design.memory(name).sure_depth(64)
        assert counts.max() <= design.depth(name)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 8), st.integers(0, 99), st.sampled_from(DATAFLOWS), st.integers(1, 8))
def test_a_tiling_for_values_is_accepted_for_them(
    bits: int, seed: int, dataflow: Any, expansion: int
) -> None:
    """By hand as automatically; and it is the sure one where all values are wide."""
    memory = Boveda(capacity_bytes=1024, group=4, unit_words=4, expansion=expansion)
    design = replace(core(dataflow=dataflow), ifmap_memory=memory, weight_memory=memory)
    operands = narrow(CONV, bits, seed)
    tiling = plan_tiling(design, CONV, None, operands)
    assert plan_tiling(design, CONV, tiling, operands) == tiling
    wide = replace(operands, ifmap=np.full_like(operands.ifmap, -128))
    wide = replace(wide, weight=np.full_like(operands.weight, 127))
    sure = plan_tiling(design, CONV, None)
    assert plan_tiling(design, CONV, None, wide) == sure
    assert sure == plan_tiling(plainly(design), CONV, None)


def test_a_tile_that_does_not_fit_is_named() -> None:
    design = core(512)
    operands = narrow(CONV, 4)
    drawn = operands.ifmap.copy()
    drawn[:, :, 6:] = 127
    operands = replace(operands, ifmap=drawn)
    tiling = Tiling(pixel_rows=2, pixel_columns=6, filters=8, channels=16)
    with pytest.raises(InputError) as error:
        plan_tiling(design, CONV, tiling, operands)
    assert str(error.value) == (
        "c: the ifmap tile at group 0, image 0, row 8, column 0, channel 0 does not fit half of "
        "the compressed ifmap scratchpad: it takes 56 rows, it has 32; take fewer pixels or "
        "channels a tile, or a larger memory"
    )
    with pytest.raises(InputError, match="they need 64 words, it has 32"):
        plan_tiling(design, CONV, tiling)
    same = Boveda(capacity_bytes=512, group=8, expansion=1)
    shallow = replace(design, ifmap_memory=same)
    with pytest.raises(InputError, match="they need 64 words, it has 32"):
        plan_tiling(shallow, CONV, tiling, operands)


def test_a_layer_that_fits_in_nothing_says_so() -> None:
    with pytest.raises(InputError, match="no tiling fits"):
        plan_tiling(core(32, 32), CONV, None, narrow(CONV, 8))


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_narrow_values_are_fetched_less_often(dataflow: Any) -> None:
    """The effective capacity: a layer that a plain memory fetches again and again."""
    design = core(1024, 2048, dataflow=dataflow)
    operands = {"c": narrow(CONV, 3)}
    compressed = simulate(design, network(CONV), operands=operands).layers[0]
    plain = simulate(plainly(design), network(CONV), operands=operands).layers[0]
    assert compressed.total_bytes < 0.8 * plain.total_bytes
    assert compressed.ofmap is not None and plain.ofmap is not None
    assert np.array_equal(compressed.ofmap, plain.ofmap)
    assert compressed.stored["weight_stored_bits"] < 0.7 * compressed.stored["weight_plain_bits"]
    assert plain.stored == {}
    timing = simulate(design, network(CONV)).layers[0]
    assert timing.total_bytes == plain.total_bytes and timing.stored == {}


def test_layers_of_one_shape_are_fitted_each_for_its_values() -> None:
    other = replace(CONV, name="d")
    operands = {"c": narrow(CONV, 2), "d": narrow(CONV, 8)}
    first, second = simulate(core(1024, 2048), network(CONV, other), operands=operands).layers
    assert first.tiling != second.tiling
    assert first.total_bytes < second.total_bytes


def test_bits_stored_are_rows_and_directories() -> None:
    layer = MatMul(name="m", m=16, n=8, k=8)
    design = core()
    operands = narrow(layer, 2)
    problem = design.numerics.problem(layer)
    tiling = Tiling(pixel_rows=1, pixel_columns=16, filters=8, channels=8)
    arrays = design.numerics.stored(layer, operands)
    found: Any = stored_tiles(design, problem, tiling, arrays)["ifmap"]
    assert (found.words.tolist(), found.plain_bits) == ([16], 16 * 64)
    assert found.rows.tolist() == [[6]]  # a word in 3 bits: −2 is among the values
    assert found.stored_bits == 6 * 64 + (6 + 16 * 3)


def test_floats_are_stored_as_patterns() -> None:
    memory = Boveda(capacity_bytes=2048, group=4, unit_words=8, expansion=4)
    design = TensorCore(ifmap_memory=memory, weight_memory=memory)
    layer = MatMul(name="m", m=24, n=24, k=40)
    operands = synthetic(layer, density=0.05, seed=3)
    one = simulate(design, network(layer), operands={"m": operands}).layers[0]
    other = simulate(plainly(design), network(layer), operands={"m": operands}).layers[0]
    assert one.ofmap is not None and other.ofmap is not None
    assert np.allclose(one.ofmap, other.ofmap)
    assert one.stored["ifmap_stored_bits"] < one.stored["ifmap_plain_bits"]


@pytest.mark.parametrize(("ifmap", "weight"), list(product((False, True), repeat=2)))
def test_latencies(ifmap: bool, weight: bool) -> None:
    """A tile is loaded 2 cycles later; operands wait for each other; halves are freed behind."""
    whole = core(65536, 65536)
    plain = plainly(whole)
    design = replace(
        plain,
        ifmap_memory=whole.ifmap_memory if ifmap else plain.ifmap_memory,
        weight_memory=whole.weight_memory if weight else plain.weight_memory,
    )
    late = 3 * (ifmap or weight)
    assert design.operand_latency_cycles == plain.operand_latency_cycles + late
    vector, difference = design.machine, design.machine - plain.machine
    assert vector[mc.IFMAP_WRITE_LATENCY] == 2 * ifmap
    assert vector[mc.WEIGHT_WRITE_LATENCY] == 2 * weight
    assert vector[mc.IFMAP_READ_WAIT] == 3 * (weight and not ifmap)
    assert vector[mc.WEIGHT_READ_WAIT] == 3 * (ifmap and not weight)
    assert difference[mc.RESULT_LATENCY] == late
    tiling = Tiling(pixel_rows=3, pixel_columns=12, filters=16, channels=16)
    tiles = walk(design.numerics.problem(CONV).vector(), tiling.vector(), vector)
    ports = np.zeros((5, pn.SERVICE_COLUMNS), np.int64)
    plan = schedule(tiles, vector, ports, NO_GAPS)
    for name, load, ready, loaded, words in (
        ("ifmap", cmd.LOAD_IFMAP, pn.IFMAP_READY, pn.IFMAP_LOADED, cmd.IFMAP_WORDS),
        ("weight", cmd.LOAD_WEIGHT, pn.WEIGHT_READY, pn.WEIGHT_LOADED, cmd.WEIGHT_WORDS),
    ):
        mine = tiles[:, load] == 1
        wait = plan[mine, loaded] - plan[mine, ready] - tiles[mine, words]
        assert set(wait) == {design.memory(name).write_latency_cycles}


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_halves_are_freed_behind_the_last_read(dataflow: Any) -> None:
    """The tile after next of an operand that waits begins so many cycles later."""
    whole = core(65536, 65536, dataflow=dataflow)
    design = replace(whole, ifmap_memory=Plain(capacity_bytes=65536))
    layer = MatMul(name="m", m=4, n=64, k=64)
    tiling = Tiling(pixel_rows=1, pixel_columns=4, filters=64, channels=8)
    tiles = walk(design.numerics.problem(layer).vector(), tiling.vector(), design.machine)
    ports = np.zeros((5, pn.SERVICE_COLUMNS), np.int64)
    plan = schedule(tiles, design.machine, ports, NO_GAPS)
    ready, used = plan[2:, pn.IFMAP_READY], plan[:-2, pn.STREAM_END]
    if dataflow != "input_stationary":
        assert (ready >= used + 3).all() and (ready == used + 3).any()


def test_no_gain_is_assumed_without_values() -> None:
    plan = plan_tiling(core(), CONV, None)
    assert plan == plan_tiling(plainly(core()), CONV, None)
    assert time_layer(core(), CONV).total_bytes == time_layer(plainly(core()), CONV).total_bytes
