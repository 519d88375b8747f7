"""Rows of which units are kept: the words of a load, what is written of them, what they cost."""

from dataclasses import replace

import numpy as np
import pytest

from archsim import EDGE_16
from archsim.energy import account
from archsim.errors import InputError
from archsim.gather import GatherUnit
from archsim.layer.intake import Drawing
from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.simulate import simulate
from archsim.tiled.commands import columns_of, commands_of
from archsim.tiled.design import CoreDesign
from archsim.tiled.plan import plan_columns
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.tiled.trace import answer
from energy_models.technology import load_technology
from workloads.builtin import builtin
from workloads.errors import WorkloadError
from workloads.kept_units import KeptUnits
from workloads.layers import MatMul, Network
from workloads.training.dropout import Dropout
from workloads.training.step import training_step


def _layer(units: int, count: int, m: int = 7, n: int = 5) -> MatMul:
    order = np.random.default_rng(units).permutation(units)
    return MatMul(name="rows", m=m, n=n, k=count, kept=KeptUnits.of(units, order[:count].tolist()))


def test_the_words_of_a_load() -> None:
    """Two lanes of four bits: of eight words of a row the flags are one word."""
    unit = GatherUnit(lanes=2, lane_bits=4, units=30)
    assert (unit.depth, unit.list_words, unit.flag_words(16), unit.flag_words(17)) == (15, 4, 2, 3)
    mask = np.array([1, 0, 0, 1, 1, 1, 0], bool)
    words = unit.load(mask, np.array([[1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14]]))
    assert words.tolist() == [
        [0b1001, 0b0011],
        [1, 2], [3, 4], [5, 6], [7, 0], [8, 9], [10, 11], [12, 13], [14, 0],
    ]  # fmt: skip


def _written(design: CoreDesign, layer: MatMul, words: np.ndarray, tiles: np.ndarray) -> list[int]:
    """Lanes that a scratchpad gets of a port's words, one by one, from flags and rows alone."""
    assert layer.kept is not None and design.gather is not None
    lanes, bits, found, at = design.gather.lanes, design.gather.lane_bits, [], 0
    for tile in commands_of(tiles):
        if not tile.load_ifmap:
            continue
        flags: list[int] = []
        while len(flags) < layer.kept.units:
            flags += [int(lane) >> bit & 1 for lane in words[at] for bit in range(bits)]
            at += 1
        load: list[int] = []
        for _ in range(tile.pixels):
            row: list[int] = []
            while len(row) < layer.kept.units:
                row += words[at].tolist()
                at += 1
            load += [value for value, flag in zip(row, flags, strict=False) if flag]
        found += load + [0] * (-len(load) % lanes)
    assert at == len(words)
    return found


DESIGNS = [
    *(Systolic(rows=3, columns=2, dataflow=dataflow, gather_units=90) for dataflow in DATAFLOWS),
    Systolic(rows=5, columns=2, operand_bits=4, gather_units=90),
    TensorCore(octets=1, group_columns=1, rows=4, gather_units=90),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda one: f"{one.kind}-{one.size}")
@pytest.mark.parametrize(("units", "count"), [(40, 17), (9, 9), (41, 1)])
def test_what_is_written_is_the_layer_of_kept_units(
    design: CoreDesign, units: int, count: int
) -> None:
    """A plain walk over the port's words leaves what crosses the port of the machine without."""
    layer, alone = _layer(units, count), replace(design, gather_units=0)
    tiling = replace(plan_tiling(design, layer, None), pixel_columns=3, channels=-(-count // 2))
    operands = design.numerics.synthetic(layer, Drawing(seed=3))
    ours, theirs = (answer(one, layer, tiling, operands) for one in (design, alone))
    crossed = ours.transfers["ifmap"]
    written = _written(design, layer, crossed.payload, ours.tiles)
    assert written == theirs.transfers["ifmap"].payload.reshape(-1).tolist()
    assert ours.actions["ifmap_write"] * design.gather.lanes == len(written)  # pyright: ignore
    assert ours.actions["gather_flags"] + ours.actions["gather_word"] == len(crossed)
    np.testing.assert_array_equal(
        ours.transfers["ofmap"].payload, theirs.transfers["ofmap"].payload
    )
    tiles, plan = columns_of(ours.tiles), plan_columns(ours.plan)
    loads = tiles.load_ifmap == 1
    last = crossed.cycle[np.cumsum(tiles.ifmap_words[loads]) - 1]
    np.testing.assert_array_equal(plan.loaded[0][loads], last + 1 + 2)


def test_layers_of_whole_rows_are_two_cycles_later_a_load_at_most() -> None:
    layer = MatMul(name="plain", m=60, n=40, k=50)
    alone, ours = time_layer(EDGE_16, layer), time_layer(replace(EDGE_16, gather_units=64), layer)
    assert 0 <= ours.cycles - alone.cycles <= 2 * alone.tiles
    assert (ours.bytes_moved, ours.actions["gather_word"]) == (alone.bytes_moved, 0)


def test_bytes_cross_of_all_units() -> None:
    """Of 7 rows of 650 units 41 words of 16 lanes each, and 6 of flags."""
    design = replace(EDGE_16, gather_units=650)
    layer = _layer(650, 325)
    timed = time_layer(design, layer)
    assert timed.bytes_moved["ifmap"] == (6 + 7 * 41) * 16
    assert timed.actions["ifmap_write"] == -(-7 * 325 // 16)
    assert (timed.actions["gather_flags"], timed.actions["gather_word"]) == (6, 7 * 41)


def test_the_unit_is_priced() -> None:
    technology = load_technology("45nm")
    network = Network(name="one", layers=(_layer(650, 325),), source="test")
    gathers = replace(EDGE_16, gather_units=650)
    costs = [account(simulate(one, network), technology) for one in (EDGE_16, gathers)]
    assert {one.name for one in gathers.components} >= {"gather.list", "gather.compact"}
    areas, energies = ([one.area_um2 or 0 for one in costs], [one.total for one in costs])
    assert areas[1] > areas[0] > 0 and energies[1] > energies[0] > 0


def test_a_dropout_step_says_what_is_kept() -> None:
    """FP alone, and only where something is dropped; the machine takes what is said."""
    network = builtin("lstm-tagging")
    step = training_step(network, dropout=Dropout(case=3, percent=50))
    kept = {one.kind for one in step.passes if getattr(one.layer, "kept", None)}
    assert kept == {"FP"}
    whole = training_step(network, dropout=Dropout(case=3, percent=0))
    assert not any(getattr(one.layer, "kept", None) for one in whole.passes)
    found = simulate(replace(EDGE_16, gather_units=1024), step.network)
    assert sum(one.actions.get("gather_word", 0) for one in found.layers) > 0
    with pytest.raises(InputError, match=r"rows of \d+ units need gather_units of as many, not 8$"):
        simulate(replace(EDGE_16, gather_units=8), step.network)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ("gather_units=-1", "gather_units must be units of a row, or 0 for no gather unit, not -1"),
        ("gather_units=2.5", "gather_units must be"),
        ("gather_units=99999999", "gather_units must be at most 1048560 with 16 lanes, not 99999"),
        ("gather_units=64 ifmap_memory.kind=boveda", "gather_units must be 0 with an ifmap_memory"),
    ],
)
def test_designs_that_cannot_gather_are_refused(settings: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        with_settings(load_design("edge-16"), settings.split())
    with pytest.raises(InputError, match="gather_units must be 0 for kind 'vsq', not 5: a lane"):
        Vsq(gather_units=5)


def test_masks_that_cannot_be_are_refused() -> None:
    kept = KeptUnits.of(10, [9, 0, 3])
    assert (kept.count, kept.positions().tolist()) == (3, [0, 3, 9])
    with pytest.raises(WorkloadError, match="of 10 units one at least must be kept, and none is"):
        KeptUnits.of(10, [])
    with pytest.raises(WorkloadError, match="kept units must be of 0 to 9, not 10"):
        KeptUnits.of(10, [10])
    with pytest.raises(WorkloadError, match="units of a row must be positive, not 0"):
        KeptUnits(units=0, flags=0)
    with pytest.raises(WorkloadError, match="p: k must be the 3 units kept of a row, not 4"):
        MatMul(name="p", m=1, n=1, k=4, kept=kept)
    with pytest.raises(WorkloadError, match="p: products of rows of kept units must share the"):
        MatMul(name="p", m=1, n=1, k=3, batch=2, shared_weight=False, kept=kept)
