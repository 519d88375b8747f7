"""Layers in faulty memories: the fast ways compute what output tiles one by one do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.layer import integer_values
from archsim.layer.intake import Drawing
from archsim.layer.problem import Tiling
from archsim.machine.registry import load_design, with_settings
from archsim.memory.lane_masks import LaneMasks
from archsim.simulate import simulate
from archsim.tiled import changed_kernels, changed_sums, layer_values
from archsim.tiled.numerics import TiledLayer
from archsim.tiled.walk import walk_layer
from workloads.layers import Conv2d, MatMul, Network

_add_weight = changed_sums._add_weight  # pyright: ignore[reportPrivateUsage]

LAYERS: dict[str, Any] = {
    "plane": Conv2d(
        name="plane", channels=20, ifmap_height=9, ifmap_width=11, filters=40, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, batch=3, bias=True,
    ),
    "groups": Conv2d(
        name="groups", channels=16, ifmap_height=6, ifmap_width=6, filters=32, kernel_height=3,
        kernel_width=3, groups=4, batch=2,
    ),
    "product": MatMul(name="product", m=30, n=50, k=70),
}  # fmt: skip
SMALL = ("ifmap_memory.capacity_bytes=2048", "accumulator_memory.capacity_bytes=4096")


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("memory", ["weight", "bias"])
@pytest.mark.parametrize("size", [(), SMALL])
def test_tiles_at_once_are_tiles_one_by_one(
    name: str, memory: str, size: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [f"{memory}_memory.kind=faulty", f"{memory}_memory.rate=0.02"]
    design = with_settings(load_design("edge-16"), [*size, *faults])
    layer = LAYERS[name]
    network = Network(name="one", layers=(layer,), source="here")
    operands = {name: design.intake.synthetic(layer, Drawing(seed=1))}
    found: list[Any] = []
    for most in (layer_values.MOST_WEIGHTS, 500, 0):
        monkeypatch.setattr(layer_values, "MOST_WEIGHTS", most)
        result = simulate(design, network, operands=operands)
        found.append(result.layers[0].ofmap)
    right = simulate(load_design("edge-16"), network, operands=operands).layers[0].ofmap
    assert right is not None
    assert all(np.array_equal(one, found[0]) for one in found)
    assert not np.array_equal(found[0], right) or (memory, name) != ("weight", "plane")


def test_sums_of_vectors_over_several_channel_tiles_are_computed() -> None:
    """A channel tile that is not the last has no bias word, and of vectors not its multipliers."""
    sizes = ("lanes=2", "vector=4", "ifmap_memory.capacity_bytes=64", *SMALL[1:])
    faults = ("accumulator_memory.kind=faulty", "accumulator_memory.rate=0.01")
    design = with_settings(load_design("vsq-16"), [*sizes, *faults])
    layer = MatMul(name="deep", m=3, n=4, k=256)
    operands = {"deep": design.intake.synthetic(layer, Drawing(seed=1))}
    network = Network(name="one", layers=(layer,), source="here")
    found = simulate(design, network, operands=operands).layers[0]
    assert found.tiling is not None and found.tiling.channels < 256 // 4
    assert found.ofmap is not None


@pytest.mark.parametrize("machine", ["edge-16", "vsq-16", "vsq-baseline", "volta"])
@pytest.mark.parametrize("memory", ["ifmap", "weight", "bias", "accumulator"])
def test_where_no_cell_fails_tiles_compute_what_sound_ones_do(machine: str, memory: str) -> None:
    """Of filters in several tiles; of some thousand cells none fails at this rate."""
    sound = load_design(machine)
    rates = [f"{memory}_memory.kind=faulty", f"{memory}_memory.rate=1e-7"]
    layer = _conv(pad_top=1)
    network = Network(name="one", layers=(layer,), source="here")
    operands = {"one": sound.intake.synthetic(layer, Drawing(seed=1))}
    found, right = (
        simulate(design, network, operands=operands).layers[0].ofmap
        for design in (with_settings(sound, rates), sound)
    )
    assert found is not None and right is not None
    assert found.dtype == right.dtype and np.array_equal(found, right)


def _conv(**more: Any) -> Conv2d:
    plain: dict[str, Any] = {
        "name": "one", "channels": 20, "ifmap_height": 9, "ifmap_width": 11, "filters": 40,
        "kernel_height": 3, "kernel_width": 3,
    }  # fmt: skip
    return Conv2d(**plain | more)


WINDOWS: dict[str, Any] = {
    "padded": _conv(pad_top=1, pad_left=2, pad_bottom=1, pad_right=2, batch=3, bias=True),
    "strided": _conv(stride_height=2, stride_width=3, pad_top=1, relu=True),
    "dilated": _conv(dilation_height=2, dilation_width=3, batch=2),
    "sampled": _conv(kernel_height=1, kernel_width=1, stride_height=2, stride_width=2),
    "groups": _conv(channels=16, filters=32, groups=4, batch=2, bias=True),
    "behind": _conv(ifmap_height=2, kernel_height=1, pad_bottom=5, pad_top=4, ifmap_width=5),
    "product": MatMul(name="one", m=30, n=50, k=70),
}
CORES: dict[str, tuple[str, ...]] = {
    "whole": (),
    "small": (*SMALL, "weight_memory.capacity_bytes=2048"),
    "outputs stay": ("dataflow=output_stationary", *SMALL),
    "inputs stay": ("dataflow=input_stationary", *SMALL),
    "narrow": ("operand_bits=4", "accumulator_bits=11", "rows=8", "columns=4"),
}
KINDS: dict[str, tuple[str, ...]] = {
    "flips": ("rate=0.01",),
    "one way": ("rate=0.2", "zero_to_one=0.6", "one_to_zero=0.3", "stuck=0.1"),
    "columns": ("rate=0.02", "column_shape=0.3", "protected_bits=[3]"),
}


def _words(design: Any, layer: Any, operands: Any) -> Any:
    """The ofmap's port, of a layer that begins in the second half of the ifmap's memory."""
    problem = design.numerics.problem(layer)
    tiling = simulate(design, Network(name="one", layers=(layer,), source="here")).layers[0].tiling
    assert tiling is not None
    tiles = walk_layer(problem, tiling, design.machine)
    tiled = TiledLayer(layer=layer, problem=problem, tiling=tiling, tiles=tiles)
    halves = {"ifmap": 1, "accumulator": 1}
    return layer_values.layer_words(design, tiled, operands, halves)["ofmap"]


def _of_bytes(macs: int, depth: int) -> Any:
    """A product as `integer_products` has them, on any processor."""
    return lambda left, right: (left.astype(np.int32) - 128) @ right.astype(np.int32)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("memory", ["ifmap", "weight", "bias", "ifmap weight", "accumulator"])
def test_what_is_wrong_of_sums_is_what_output_tiles_compute(
    core: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a layer that begins in the second half, and with the words of its ports."""
    changed = 0
    for number, layer in enumerate(WINDOWS.values()):
        kind = tuple(KINDS.values())[number % len(KINDS)]
        faults = [
            f"{name}_memory.{one}" for name in memory.split() for one in ("kind=faulty", *kind)
        ]
        design = with_settings(load_design("edge-16"), [*CORES[core], *faults])
        exact = with_settings(load_design("edge-16"), [*CORES[core]])
        network = Network(name="one", layers=(layer,), source="here")
        operands = {"one": design.intake.synthetic(layer, Drawing(seed=number))}
        with monkeypatch.context() as patch:
            found: list[Any] = [simulate(design, network, operands=operands).layers[0].ofmap]
            patch.setattr(integer_values, "product_for", _of_bytes)
            if core != "whole":  # several blocks of rows
                patch.setattr(integer_values, "_BLOCK_BYTES", 64)
                patch.setattr(integer_values, "_LEAST_PIXELS", 30)
            found.append(simulate(design, network, operands=operands).layers[0].ofmap)
            found.append(_words(design, layer, design.intake.take(layer, operands["one"])))
            patch.setattr(layer_values, "changed", lambda *_: None)
            right: Any = simulate(design, network, operands=operands).layers[0].ofmap
            words = _words(design, layer, design.intake.take(layer, operands["one"]))
        assert all(np.array_equal(*pair) for pair in zip(found, (right, right, words), strict=True))
        plain: Any = simulate(exact, network, operands=operands).layers[0].ofmap
        changed += not np.array_equal(right, plain)
    assert changed > (0 if memory == "bias" else len(WINDOWS) // 2)


@pytest.mark.parametrize("core", ["small", "outputs stay", "inputs stay"])
@pytest.mark.parametrize("name", ["padded", "strided", "dilated"])
def test_weights_that_tiles_read_in_several_ways_are_added(
    core: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tiles of filters in two halves: each is read in both."""
    layer = replace(WINDOWS[name], filters=48, relu=False)
    small = [*CORES[core], "weight_memory.capacity_bytes=8192"]
    faults = ["weight_memory.kind=faulty", "weight_memory.rate=0.001", "weight_memory.chip=3"]
    design: Any = with_settings(load_design("edge-16"), [*small, *faults])
    operands = design.intake.take(layer, design.intake.synthetic(layer, Drawing(seed=1)))
    given = {"pixel_rows": 2, "pixel_columns": 3, "filters": 16, "channels": 20}
    tiling = Tiling(**given, order="pixels_outer", images=1, groups=1)
    added: list[Any] = []

    def add(*given: Any) -> Any:
        added.append(_add_weight(*given))
        return added[-1]

    monkeypatch.setattr(changed_sums, "_add_weight", add)
    found = layer_values.layer_ofmap(design, layer, tiling, operands)
    assert len(added) == 1 and added[0].any()
    monkeypatch.setattr(layer_values, "changed", lambda *_: None)
    assert np.array_equal(found, layer_values.layer_ofmap(design, layer, tiling, operands))


def test_sums_of_groups_that_fill_a_block_up_fail_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three groups by two side by side: words have lanes of a fourth, which has no outputs."""
    faults = ["accumulator_memory.kind=faulty", "accumulator_memory.rate=0.3"]
    design: Any = with_settings(load_design("edge-16"), ["rows=3", "columns=2", *faults])
    layer = MatMul(name="one", m=2, n=1, k=1, batch=3, shared_weight=False)
    operands = design.intake.take(layer, design.intake.synthetic(layer, Drawing(seed=1)))
    problem = design.numerics.problem(layer)
    tiling = Tiling(pixel_rows=1, pixel_columns=1, filters=2, channels=2, images=1, groups=2)
    tiles = walk_layer(problem, tiling, design.machine)
    tiled = TiledLayer(layer=layer, problem=problem, tiling=tiling, tiles=tiles)
    found = layer_values.layer_words(design, tiled, operands)["ofmap"]
    monkeypatch.setattr(layer_values, "changed", lambda *_: None)
    right = layer_values.layer_words(design, tiled, operands)["ofmap"]
    assert np.array_equal(found, right)
    assert right.reshape(-1, 2)[-2:, 1].any()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.sampled_from([4, 8, 13, 64]), min_size=1, max_size=3))
def test_words_are_read_past_masks(seed: int, bits: list[int]) -> None:
    """Of three loads of six words, in lanes with a sign and without, some of which hold nothing;
    some elements are read by several."""
    random, lanes = np.random.default_rng(seed), len(bits)
    above = 64 - np.array(bits)
    signed = (above == 0) | (random.random(lanes) < 0.5)
    unsigned = np.where(signed, -1, np.int64(-1) ^ (np.int64(-1) << (64 - above)))
    zero, one = random.integers(-(1 << 62), 1 << 62, (2, 8, lanes)) & random.integers(0, 9, (8, 1))
    masks = LaneMasks(if_zero=zero, kept=~one, above=above, unsigned=unsigned)
    values = (random.integers(-8, 8, (3, 6, lanes)) & np.where(signed, -1, 7)).astype(np.int16)
    elements = np.where(random.random(6 * lanes) < 0.9, np.arange(6 * lanes), -1)
    begins, read_by = np.arange(3) * 6 * lanes, random.integers(1, 3, values.size)
    tiles = np.stack([begins, begins]), np.stack([elements, *2 * [np.arange(6 * lanes)]])
    out = np.full((4, values.size), -99)
    given = values.reshape(-1), (masks.cells(6), masks.lanes), tiles, read_by, out
    alone, several = changed_kernels.read_by_masks(*given)
    wrong = np.stack([masks.read(each.astype(np.int64)) for each in values]) - values
    wrong = np.where(elements < 0, 0, wrong.reshape(3, -1)).reshape(-1)
    for found, those in ((out[:, :alone], read_by == 1), (out[:, ::-1][:, :several], read_by > 1)):
        (places,) = np.nonzero((wrong != 0) & those)
        load, element = np.divmod(places, 6 * lanes)
        assert np.array_equal(found, np.stack([load, element, wrong[places], places]))


def test_kernels_wrap_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """As plain Python, which is how a debugger sees them, sums of 32 bits wrap as they do in
    compiled code, and nothing is said."""
    layer = _conv(channels=3, filters=5, ifmap_height=4, ifmap_width=4)
    sizes = ["rows=2", "columns=4", "operand_bits=16", "accumulator_bits=32"]
    faults = ["accumulator_memory.kind=faulty", "accumulator_memory.rate=0.3"]
    design = with_settings(load_design("edge-16"), [*sizes, *faults])
    drawn = design.intake.synthetic(layer, Drawing(seed=1))
    ends = (
        np.where(one > 0, 32767, -32768).astype(np.int16) for one in (drawn.ifmap, drawn.weight)
    )
    ifmap, weight = ends
    operands = {layer.name: replace(drawn, ifmap=ifmap, weight=weight)}
    compiled: Any = changed_sums.read_failing
    wrapped = list[Any]()

    def both(*given: Any) -> int:
        plain = tuple(one.copy() for one in given[-1])
        count = compiled(*given)
        with monkeypatch.context() as patch, np.errstate(all="raise"):
            patch.setattr(changed_kernels, "add_spans", changed_kernels.add_spans.py_func)
            assert compiled.py_func(*given[:-1], plain) == count
        for one, other in zip(plain, given[-1], strict=True):
            assert np.array_equal(one[:count], other[:count])
        wrapped.append(np.abs(plain[1][:count]).max())
        return count

    monkeypatch.setattr(changed_sums, "read_failing", both)
    simulate(design, Network(name="one", layers=(layer,), source="here"), operands=operands)
    assert wrapped and wrapped[0] > 1 << 30


@st.composite
def any_case(draw: st.DrawFn) -> tuple[list[str], Conv2d]:
    """A core's settings and a layer: spans longer and shorter than a tap's channels, tiles of some
    channels, filters, rows and images, operands of three widths, stuck cells and flips."""
    one = st.sampled_from
    memory = draw(one(["accumulator", "accumulator", "ifmap", "ifmap in Boveda's form"]))
    compressed = memory.endswith("form")
    name = memory.split()[0]
    rows = 16 if compressed else draw(one([1, 3, 16, 32, 40]))
    bits = draw(one([4, 8, 16]))
    cell = [f"rate={draw(one([1e-3, 0.02, 0.3, 1.0]))}", f"chip={draw(one([1, 2, 3]))}"]
    if draw(st.booleans()):
        cell += [f"zero_to_one={draw(one([0, 0.25, 0.5]))}", f"stuck={draw(one([0, 0.5]))}"]
    found = [
        f"rows={rows}", f"columns={draw(one([1, 4, 16]))}", f"operand_bits={bits}",
        f"accumulator_bits={draw(one([max(2 * bits - 3, 11), 32]))}",
        f"dataflow={draw(one(['weight_stationary', 'output_stationary', 'input_stationary']))}",
        *([f"{name}_memory.kind=boveda"] if compressed else []), f"{name}_memory.kind=faulty",
        *(f"{name}_memory.{each}" for each in cell),
    ]  # fmt: skip
    for scratchpad in ("ifmap", "accumulator", "weight"):
        if draw(st.booleans()):
            found.append(f"{scratchpad}_memory.capacity_bytes=4096")
    kernel = draw(one([(1, 1), (3, 3), (2, 3)]))
    layer = Conv2d(
        name="one", channels=draw(one([1, 5, 16, 32, 40])), filters=draw(one([1, 7, 20])),
        ifmap_height=draw(one([5, 9])), ifmap_width=draw(one([5, 12])), kernel_height=kernel[0],
        kernel_width=kernel[1], pad_top=draw(one([0, 1])), pad_left=draw(one([0, 2])),
        pad_right=draw(one([0, 1])), stride_height=draw(one([1, 2])),
        stride_width=draw(one([1, 3])), batch=draw(one([1, 3])), bias=draw(st.booleans()),
    )  # fmt: skip
    return found, layer


@settings(max_examples=120, deadline=None)
@given(case=any_case())
def test_layers_at_once_are_layers_tile_by_tile(case: tuple[list[str], Conv2d]) -> None:
    settings_of, layer = case
    try:
        design: Any = with_settings(load_design("edge-16"), settings_of)
    except InputError:
        reject()
    operands = design.intake.synthetic(layer, Drawing(seed=3))
    network = Network(name="one", layers=(layer,), source="here")
    try:
        found = simulate(design, network, operands={"one": operands}).layers[0].ofmap
    except InputError:
        reject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer_values, "changed", lambda *_: None)
        right = simulate(design, network, operands={"one": operands}).layers[0].ofmap
    assert found is not None and right is not None
    assert np.array_equal(found, right)
