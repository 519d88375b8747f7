"""Row actions of compressed memories: against every address walked in plain Python, and priced."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compressed_designs import random_design, with_compressed
from compressed_tiles import tile_of
from compressed_walks import plain_row_actions
from tensorcore_designs import random_design as random_tensor_core

from archsim.codecs.boveda_format import BovedaFormat
from archsim.codecs.boveda_kernels import measure
from archsim.energy import account, action_counts
from archsim.layer.intake import Drawing
from archsim.layer.problem import Tiling
from archsim.machines.systolic.design import DATAFLOWS, EDGE_16, Systolic
from archsim.memories.boveda import rows as compressed_rows
from archsim.memories.boveda.ifmap_walk import piece_bits
from archsim.memories.boveda.read_tiles import MISPLACED
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.boveda.store import ROW_ACTIONS
from archsim.memories.faulty.scratchpad import Faulty
from archsim.numbers import IntArray
from archsim.simulate import simulate
from archsim.tiled import actions
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.operand_fit import action_bounds, stored_tiles, value_actions
from archsim.tiled.timing import plan_tiling
from archsim.tiled.walk import walk_layer
from rtl import tile_cases
from rtl.cases import Draw
from rtl.tile_conformance import TileCase, free_services
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import synthetic

CASES = 60
TENSOR_CORES = 10
LARGER = 12

CONV = Conv2d(
    name="c", channels=10, filters=12, ifmap_height=7, ifmap_width=7, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1,
)  # fmt: skip


def random_tile_case(number: int) -> TileCase:
    """Any dataflow, layer, tiling, shape of memory; the last ones on tensor cores."""
    draw = Draw(17, number)
    tensor = number >= CASES - TENSOR_CORES
    design = with_compressed(draw, random_tensor_core(draw)) if tensor else random_design(draw)
    return tile_cases.random_tile_case(17, number, design, 1500)


def larger_case(number: int) -> TileCase:
    """Few channels and many pixels, of which several lie in a row: what is held matters."""
    draw = Draw(23, number)
    memory = Boveda(capacity_bytes=4096, group=4, unit_words=draw.one_of(2, 8), expansion=4)
    design = Systolic(
        rows=4,
        columns=draw.one_of(3, 4),
        dataflow=DATAFLOWS[number % 3],
        ifmap_memory=memory,
        weight_memory=replace(memory, group=1),
    )
    layer = replace(
        CONV, channels=draw.whole(1, 4), dilation_width=draw.whole(1, 2), batch=draw.whole(1, 3)
    )
    operands = design.numerics.synthetic(layer, Drawing(seed=number, density=draw.rng.random()))
    operands = replace(operands, ifmap=operands.ifmap >> draw.whole(0, 6))
    tiling = Tiling(
        pixel_rows=draw.whole(1, 6), pixel_columns=draw.whole(1, 6), filters=12, channels=4,
        images=draw.whole(1, 3),
    )  # fmt: skip
    return TileCase(
        design=design, layer=layer, tiling=tiling, operands=operands, services=free_services()
    )


def all_cases() -> Iterator[TileCase]:
    yield from map(random_tile_case, range(CASES))
    yield from map(larger_case, range(LARGER))


def stored_of(case: TileCase) -> dict[str, Any]:
    """What its tiles take."""
    numerics = case.design.numerics
    arrays = numerics.stored(case.layer, numerics.take(case.layer, case.operands))
    found = stored_tiles(case.design, numerics.problem(case.layer), case.tiling, arrays)
    return dict[str, Any](found)


def counted(case: TileCase) -> dict[str, int]:
    """By the kernels."""
    design, found = case.design, stored_of(case)
    tiles = walk_layer(design.numerics.problem(case.layer), case.tiling, design.machine)
    return value_actions(design, found) | actions.count_store_writes(tiles, design.stores)


def plainly(case: TileCase) -> dict[str, int]:
    return plain_row_actions(case.design, case.layer, case.tiling, case.operands)


@pytest.mark.parametrize("number", range(CASES))
def test_rows_are_those_of_every_address(number: int) -> None:
    case = random_tile_case(number)
    assert counted(case) == plainly(case)


@pytest.mark.parametrize("number", range(LARGER))
def test_rows_of_larger_layers(number: int) -> None:
    case = larger_case(number)
    assert counted(case) == plainly(case)


def failing_case(number: int) -> TileCase:
    """Memories whose directories read wrong in nearly every unit, or in one of ten."""
    case = random_tile_case(number)
    rate = 0.1 if number % 2 else 0.01
    memories: dict[str, Any] = {
        f"{name}_memory": Faulty(inner=case.design.memory(name), rate=rate, chip=number)
        for name in case.design.stores
    }
    return replace(case, design=replace(case.design, **memories))


@pytest.mark.parametrize("number", range(20))
def test_rows_are_those_that_failing_directories_say(number: int) -> None:
    case = failing_case(number)
    assert counted(case) == plainly(case)


def test_failing_directories_are_seen() -> None:
    """In all of what they may do; some cases read other rows for it than they should."""
    cases = [failing_case(number) for number in range(20)]
    happened = [stored.happened() for case in cases for stored in stored_of(case).values()]
    assert set[str]().union(*happened) == set(MISPLACED)
    right = [random_tile_case(number) for number in range(20)]
    other = sum(counted(one) != counted(two) for one, two in zip(cases, right, strict=True))
    assert other >= 5 and not any(two.happened() for two in stored_of(right[0]).values())


def _ways(case: TileCase) -> set[str]:
    """How the kernel reads the ifmap's tiles: words of one group, groups, or less."""
    design = case.design
    if "ifmap" not in design.stores:
        return set()
    store: Any = design.stores["ifmap"]
    chunk = int(design.machine[mc.CHUNK])
    problem = design.numerics.problem(case.layer)
    found: set[str] = set()
    for row in walk_layer(problem, case.tiling, design.machine):
        lanes = 1 << piece_bits(row, store.form.group, chunk)
        whole = "words" if lanes == store.lanes else "groups"
        found.add(whole if lanes == store.form.group else "pieces")
    return found


def test_the_cases_read_in_all_ways() -> None:
    ways = [_ways(case) for case in all_cases()]
    for way in ("words", "groups", "pieces"):
        assert sum(way in found for found in ways) >= 5


def _changed(name: str, change: Any) -> Any:
    """A kernel of `compressed_rows`, or of `actions`, whose arguments or result are changed."""
    module = compressed_rows if hasattr(compressed_rows, name) else actions

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        kernel = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *arguments: change(kernel, *arguments))

    return patch


def _again_as_first(kernel: Any, *arguments: Any) -> None:
    kernel(*arguments)
    found = arguments[-1]
    found[:, 1], found[:, 3] = found[:, 0], found[:, 2]


def _one_too_many(kernel: Any, *arguments: Any) -> None:
    kernel(*arguments)
    arguments[-1][0, 0] += 1


def _never_spilt(placed: Any) -> Any:
    return placed[0], placed[1] & ~1


def _uses(column: int, value: int) -> Any:
    def change(kernel: Any, uses: Any, *rest: Any) -> Any:
        other = uses.copy()
        other[:, column] = value
        return kernel(other, *rest)

    return change


def _whole_units(kernel: Any, tiles: IntArray, stores: Any) -> Any:
    full = tiles.copy()
    for name, column in (("ifmap", cmd.IFMAP_WORDS), ("weight", cmd.WEIGHT_WORDS)):
        if name in stores:
            full[:, column] -= full[:, column] % stores[name].memory.unit_words
    return kernel(full, stores)


def _all_loaded(tiles: IntArray) -> IntArray:
    loaded = tiles.copy()
    loaded[:, [cmd.LOAD_IFMAP, cmd.LOAD_WEIGHT]] = 1
    return loaded


FAULTS: dict[str, Any] = {
    "a tile walked again reads all anew": _changed("walk_ifmap", _again_as_first),
    "a row too many": _changed("walk_ifmap", _one_too_many),
    "no word of the ifmap spills": _changed(
        "walk_ifmap", lambda kernel, rows, placed, *rest: kernel(rows, _never_spilt(placed), *rest)
    ),
    "blocks one pixel larger": _changed(
        "walk_ifmap",
        lambda kernel, rows, placed, shape, loops, found: kernel(
            rows, placed, shape, (loops[0] + 1, loops[1]), found
        ),
    ),
    "units of one word": _changed(
        "walk_ifmap",
        lambda kernel, rows, placed, shape, loops, found: kernel(
            rows, placed, (*shape[:2], 0), loops, found
        ),
    ),
    "weights a bit narrower": _changed(
        "walk_weights",
        lambda kernel, uses, stored, *rest: kernel(uses, (stored[0], stored[1] - 1), *rest),
    ),
    "units of weights begin in row 0": _changed(
        "walk_weights",
        lambda kernel, uses, stored, directory, form: kernel(uses, stored, directory * 0, form),
    ),
    "weights are never read again": _changed("walk_weights", _uses(3, 1)),
    "every weight tile is loaded": _changed("walk_weights", _uses(1, 1)),
    "weights in one step": _changed("walk_weights", _uses(2, 1)),
    "entries are written with every word": _changed(
        "count_store_writes",
        lambda kernel, tiles, stores: kernel(
            tiles,
            {
                name: replace(store, memory=replace(store.memory, unit_words=1))
                for name, store in stores.items()
            },
        ),
    ),
    "entries are written once for all columns": _changed(
        "count_store_writes",
        lambda kernel, tiles, stores: kernel(
            tiles, {name: replace(one, lanes=one.form.group) for name, one in stores.items()}
        ),
    ),
    "a tile's short unit has no entry": _changed("count_store_writes", _whole_units),
    "entries of tiles that stay are written": _changed(
        "count_store_writes", lambda kernel, tiles, *rest: kernel(_all_loaded(tiles), *rest)
    ),
    "rows are written once for all lanes": lambda monkeypatch: monkeypatch.setattr(
        compressed_rows, "_written", lambda *_: 0
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_walks_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    assert any(counted(one) != plainly(one) for one in all_cases())


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_widths_many_values_at_a_time(bits: int, signed: bool) -> None:
    """Groups that fill 64 bits and others: the same widths, −2^(B−1) among the values."""
    rng = np.random.default_rng(bits)
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    for group in (1, 2, 4, 5, 7, 8, 16, 24):
        form = BovedaFormat(group=group, container_bits=bits, signed=signed)
        words = rng.integers(low, high, (60, 3 * group)) >> rng.integers(0, bits + 1, (60, 1))
        words[0] = low
        one_by_one = np.empty(180, np.uint8)
        values = words.astype(form.value_type).reshape(-1)
        measure(values, (3 * group, 3), form.numbers, (0, 180), one_by_one)
        assert np.array_equal(tile_of(words, form).widths.reshape(-1), one_by_one)


def test_rows_by_hand() -> None:
    """Words of 3 bits in units of 4: rows 0, 0, 0 and 1 (bits 6 to 8), 1; then row 2."""
    form = BovedaFormat(group=2, container_bits=8, signed=True)
    words = np.full((5, 2), 3)
    stored = tile_of(words, form, unit_words=4)
    assert stored.words.tolist() == [5]
    assert stored.placed[1].tolist() == [[0, 0, 1, 2, 4]]
    assert stored.rows.tolist() == [[3]]


BOTH = Systolic(
    rows=4,
    columns=4,
    ifmap_memory=Boveda(capacity_bytes=16384, group=4),
    weight_memory=Boveda(capacity_bytes=16384, group=4),
)


def test_sequential_weights_read_each_row_once() -> None:
    """Weight-stationary, one tile: as many rows are read as were written."""
    layer = MatMul(name="m", m=5, n=8, k=30)
    operands = {"m": synthetic(layer, seed=1)}
    network = Network(name="n", source="a test", layers=(layer,))
    tilings = {"m": Tiling(pixel_rows=1, pixel_columns=5, filters=8, channels=30)}
    actions = simulate(BOTH, network, operands=operands, mappings=tilings)
    counts = actions.layers[0].actions
    assert counts["weight_row_read"] == counts["weight_row_write"] > 0
    assert counts["weight_entry_read"] == counts["weight_entry_write"] == -(-60 // 16)


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_counts_are_bounded_and_priced(density: float) -> None:
    """With operands the counted rows, without at most, and the account says so."""
    network = Network(name="n", source="a test", layers=(CONV,))
    operands = {"c": BOTH.numerics.synthetic(CONV, Drawing(seed=3, density=density))}
    tiling = {"c": plan_tiling(BOTH, CONV, None)}
    exact = simulate(BOTH, network, operands=operands, mappings=tiling)
    bound = simulate(BOTH, network, mappings=tiling)
    names = [f"{name}_{what}" for name in ("ifmap", "weight") for what in ROW_ACTIONS]
    most = action_bounds(BOTH, action_counts(bound.layers[0]))
    known = {"ifmap_entry_write", "weight_entry_write"}
    assert set(most) == set(names) and set(names) & set(bound.layers[0].actions) == known
    for name in names:
        assert 0 < exact.layers[0].actions[name] <= most[name]
    for name in known:
        assert bound.layers[0].actions[name] == exact.layers[0].actions[name]
        assert action_counts(bound.layers[0], BOTH)[name] == exact.layers[0].actions[name]
    counted_energy, bounded_energy = account(exact), account(bound)
    assert counted_energy.bounded == () and bounded_energy.bounded == ("c",)
    assert "bounded" not in counted_energy.record()["energy"]
    assert bounded_energy.record()["energy"]["bounded"] == ["c"]
    less = bounded_energy.by_component["ifmap.memory"] - counted_energy.by_component["ifmap.memory"]
    assert less > 0
    rest = set(counted_energy.by_component) - {
        f"{name}.{part}" for name in ("ifmap", "weight") for part in ("memory", "directory", "held")
    }
    for name in rest:
        assert counted_energy.by_component[name] == pytest.approx(bounded_energy.by_component[name])


def test_plain_memories_count_no_rows() -> None:
    layer = MatMul(name="m", m=5, n=8, k=30)
    network = Network(name="n", source="a test", layers=(layer,))
    result = simulate(EDGE_16, network, operands={"m": synthetic(layer)})
    assert not [name for name in result.actions if "row" in name or "entry" in name]
    assert account(result).bounded == () and account(simulate(EDGE_16, network)).bounded == ()
    half = replace(EDGE_16, weight_memory=Boveda(capacity_bytes=65536, group=16))
    assert [name for name in half.actions if "row" in name] == [
        "weight_row_read",
        "weight_row_write",
    ]
