"""FIFOs of weights of the sparse core in cells that fail: what every PE reads, and computes of it.

A plain walk over the vectors of every PE's FIFO is laid beside it; RTL:
`tests/rtl/test_scnn_failing_weights.py`.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scnn_failing_layers import CONV, LAYERS, SEEN, assert_alike

from archsim.errors import InputError
from archsim.layer.values import requantize
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import SCNN_DNNSIM, SCNN_ISCA17, Scnn
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.layer import Layer, layer_passes, layer_timing
from archsim.machines.scnn.lists import ofmap_lists, weight_lists
from archsim.machines.scnn.seen_weights import SeenWeights
from archsim.machines.scnn.words import LayerRun, pass_words
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.measured import FLIPS
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memory.around import AroundBank
from archsim.memory.plain import WORDS
from archsim.numbers import wrap
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

SMALL = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8, operand_bits=8,
    index_bits=2, weight_fifo_vectors=13, filter_group=3, iaram_bytes=400, oaram_bytes=300,
)  # fmt: skip


def failing(design: Scnn = SMALL, rate: float = 0.05, **more: Any) -> Scnn:
    return replace(design, weight_memory=FaultyBank(rate=rate, chip=3, **more))


def operands_of(layer: Layer) -> Operands:
    return synthetic(layer, bits=8, density=0.5, seed=2)


@LAYERS
def test_where_no_cell_fails_nothing_is_another(layer: Layer, pool: MaxPool | None) -> None:
    """By lists of every PE's own, with IARAMs that are sound and such as may fail."""
    operands = operands_of(layer)
    right = layer_timing(SMALL, layer, operands, pool=pool)
    for design in (SMALL, replace(SMALL, activation_memory=FaultyStream(rate=SEEN))):
        assert not failing(rate=SEEN).weight_memory.exact
        found = layer_timing(failing(design, rate=SEEN), layer, operands, pool=pool)
        assert_alike(found, right)


def walked(design: Scnn, strip: Any) -> tuple[Any, Any]:
    """The sums [P, Q, K] of a strip and the products of each PE, weight by weight."""
    mapping, lists = strip.mapping, strip.operands.ifmap
    rows, columns = mapping.rows, mapping.columns
    memory, use = design.weight_memory, design.use("weight")
    assert isinstance(memory, FaultyBank)
    faults = memory.fault_map(use, WORDS, use.word_bits)
    sums = np.zeros((rows.outputs, columns.outputs, mapping.filters), np.int64)
    products = np.zeros(mapping.used_pes, np.int64)
    for pe in range(mapping.used_pes):
        row, column = mapping.place(pe)
        regions = rows.region(row), columns.region(column)
        crossed = 0
        for group in range(mapping.groups):
            weights = weight_lists(design, mapping, strip.operands.weight, group)
            for number in range(len(weights)):
                phase = mapping.phases[number % len(mapping.phases)]
                own = pe * mapping.lists + number
                vectors = slice(lists.starts[own], lists.starts[own + 1])
                held = [
                    (int(value), *divmod(int(at), mapping.input_pitch))
                    for value, at in zip(
                        lists.values[vectors].flat, lists.positions[vectors].flat, strict=True
                    )
                    if value
                ]
                position = -1
                for n in range(weights.starts[number], weights.starts[number + 1]):
                    place = crossed % design.weight_fifo_vectors
                    crossed += 1
                    word = 0
                    for lane in range(weights.lanes):
                        value, index = weights.values[n, lane], weights.indices[n, lane]
                        word |= (int(value) & 255 | int(index) << 8) << 10 * lane
                    address = row * design.grid_columns + column << 4 | place
                    zero, one = (
                        int.from_bytes(mask.tobytes(), "little")
                        for mask in faults.masks(address, 1)
                    )
                    word ^= word & one | ~word & zero
                    for lane in range(weights.lanes):
                        element = word >> 10 * lane & 1023
                        position += 1 + (element >> 8)
                        value = (element & 255 ^ 128) - 128
                        tap, k = divmod(position, mapping.filter_pitch)
                        r, s = divmod(tap, mapping.tap_pitch(phase[1]))
                        if not value or k >= mapping.group_filters(group):
                            continue
                        for activation, y, x in held:
                            p = y + rows.base(row) - (phase[0] >= rows.threshold(row))
                            q = x + columns.base(column) - (phase[1] >= columns.threshold(column))
                            p, q = p + regions[0].start - r % 32, q + regions[1].start - s
                            if p in regions[0] and q in regions[1]:
                                k_all = group * mapping.group_size + k
                                sums[p, q, k_all] += activation * value
                                products[pe] += 1
    return sums, products


@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_sums_are_those_of_a_plain_walk(rate: float) -> None:
    design, operands = failing(rate=rate), operands_of(CONV)
    ((strip,),) = layer_passes(design, CONV, operands)
    sums, products = walked(design, strip)
    assert operands.bias is not None
    scaling, bias = (operands.multiplier, operands.shift), operands.bias.astype(np.int64)
    right = requantize(
        wrap(sums, design.accumulator_bits), bias, scaling, CONV.relu, design.operand_bits
    )
    assert strip.operands.written is not None
    written = ofmap_lists(design, strip.mapping, right)
    assert np.array_equal(strip.operands.written.values, written.values)
    (timed,) = layer_timing(design, CONV, operands).passes
    assert np.array_equal(timed.pes.products, products)
    (sound,) = layer_timing(SMALL, CONV, operands).passes
    assert not np.array_equal(timed.pes.products, sound.pes.products)


def test_the_way_over_cells_reads_what_masks_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories of which a bit does not fare by itself are read by their cells."""
    design = failing(rate=0.1, zero_to_one=0.3)
    operands = operands_of(CONV)
    right = layer_timing(design, CONV, operands)
    monkeypatch.setattr(FaultyBank, "masks", AroundBank.masks)
    assert design.weight_memory.masks(design.use("weight"), 1) is None
    assert_alike(layer_timing(design, CONV, operands), right)


def flips_at(path: Path, *cells: tuple[int, int], words: int = 64, bits: int = 30) -> str:
    """A measured map of FIFOs with cells (word, bit) that read the other value."""
    found = np.zeros((words, bits), np.uint8)
    for word, bit in cells:
        found[word, bit] = FLIPS
    np.savez(path, map=found)
    return str(path)


def seen_of(design: Scnn) -> SeenWeights:
    ((strip,),) = layer_passes(design, CONV, operands_of(CONV))
    assert strip.operands.seen is not None
    return strip.operands.seen


def test_check_bits_correct_one_error_and_lose_a_lane_of_two(tmp_path: Path) -> None:
    """SECDED (15, 10) of two lanes: of PE 2, place 3 has an error in each lane, place 4 two in its
    second."""
    word = 2 << 4 | 3
    path = flips_at(tmp_path / "m.npz", (word, 7), (word, 17), (word + 1, 15), (word + 1, 20))
    memory = SecdedBank(data_bits=10, inner=FaultyBank(map=path))
    design = replace(SMALL, weight_memory=memory)
    assert design.weights_as_crossed and not design.weight_memory.exact
    seen, meant, kept, lost = seen_of(design), seen_of(failing(rate=SEEN)), 0, 0
    for group in range(seen.mapping.groups):
        own, right = seen.read(group), meant.read(group)
        lists, first = seen.meant[group], sum(one.vectors for one in seen.meant[:group])
        place = (first + np.arange(lists.vectors)) % SMALL.weight_fifo_vectors
        assert not own.values[2, place == 4, 1].any()
        lost += right.values[2, place == 4, 1].any()
        for begin, end in pairwise(lists.starts.tolist()):
            pes = [pe for pe in range(4) if pe != 2 or 4 not in place[begin:end]]
            kept += 2 in pes and 3 in place[begin:end]
            for one, other in zip(own, right, strict=True):
                assert (one[pes, begin:end] == other[pes, begin:end]).all()
    assert lost and kept, "of lists some have corrected errors and no others"


def test_check_bits_of_sound_cells_change_nothing() -> None:
    design = replace(SMALL, weight_memory=ParityBank(data_bits=10))
    assert design.weights_as_crossed and design.weight_memory.exact
    assert not SMALL.weights_as_crossed
    operands = operands_of(CONV)
    assert_alike(layer_timing(design, CONV, operands), layer_timing(SMALL, CONV, operands))


def test_maps_have_the_geometry_of_the_fifos(tmp_path: Path) -> None:
    """16 places of 20 bits in each of four PEs, of which 13 are used."""
    flips = FaultyBank(map=flips_at(tmp_path / "m.npz", bits=20))
    assert replace(SMALL, weight_memory=flips).weight_memory.exact  # none fails
    for words, bits in ((52, 20), (128, 20), (64, 28)):
        path = flips_at(tmp_path / "n.npz", (0, 0), words=words, bits=bits)
        with pytest.raises(InputError, match="where weight has 64 words of 20 bits, 1 in a row"):
            replace(SMALL, weight_memory=FaultyBank(map=path))
    side = FaultyBank(map=flips_at(tmp_path / "s.npz", (0, 0), words=32, bits=40), interleave=2)
    assert not replace(SMALL, weight_memory=side).weight_memory.exact


def test_the_supply_prices_the_vectors_of_the_fifo() -> None:
    priced = replace(SCNN_ISCA17, weight_memory=FaultyBank(voltage=0.85)).components
    low = {one.name for one in priced if one.kind == "sram" and one.relative_voltage == 0.85}
    assert low == {"weight_fifo.words"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sparsity": "weights"}, "sparsity must be both where cells fail, not weights"),
        (
            {"grid_rows": 64, "grid_columns": 64, "weight_fifo_vectors": 257},
            "weight_memory: the FIFOs of all PEs must have at most 1048576 places to fail, in "
            "powers of two each, not 2097152",
        ),
        (
            {"weight_memory": FaultyBank(rate=0.1, protected_bits=(10,))},
            "weight_memory: protected_bits must be below the 10 bits of a lane, not 10",
        ),
    ],
)
def test_what_cannot_fail_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"^{says}"):
        replace(failing(), **change)


def test_dnnsims_count_has_no_cells() -> None:
    with pytest.raises(InputError, match=r"^weight_memory must be exact where cycles are counted"):
        failing(SCNN_DNNSIM)


def test_ofmaps_do_not_stay_and_nothing_is_searched() -> None:
    design, operands = failing(), operands_of(CONV)
    run = LayerRun(layer=CONV, operands=operands, keep_ofmap=True)
    with pytest.raises(InputError, match=r"^conv: weight_memory must be exact for an ofmap that"):
        pass_words(design, [run, run])
    with pytest.raises(InputError, match=r"^conv: nothing is searched where cells fail"):
        best_choice(design, CONV, operands)
    (chained,) = chain_timing(design, [CONV], [operands])
    assert not any(one.mapping.keep_ofmap for one in chained.passes)
