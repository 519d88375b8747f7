"""Accumulators of the sparse core in cells that fail: what every PE sums, sends, reads and gives.

A plain walk over products, halos and windows, sum by sum, is laid beside it; RTL:
`tests/rtl/test_scnn_failing_sums.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scnn_failing_layers import CONV, POOL, PRODUCT, SEEN, any_layer, assert_alike

from archsim.errors import InputError
from archsim.layer.values import requantize
from archsim.machines.scnn import failing as failing_passes
from archsim.machines.scnn import few_sums
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import SCNN_DNNSIM, SCNN_ISCA17, Scnn
from archsim.machines.scnn.exact import best_choice
from archsim.machines.scnn.layer import Layer, layer_passes, layer_timing, layer_values
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.words import LayerRun, pass_words
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.measured import FLIPS, READS_ONE, READS_ZERO
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.faulty.word_masks import MOST_BITS
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memory.at_once import words_that_fail
from archsim.memory.plain import WORDS
from archsim.numbers import wrap
from workloads.layers import Conv2d
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

SMALL = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=40,
    operand_bits=8, index_bits=2, accumulator_bits=20, weight_fifo_vectors=60, filter_group=3,
    iaram_bytes=400, oaram_bytes=300,
)  # fmt: skip
EVERYTHING: dict[str, Any] = {
    "column_shape": 0.5, "persistent": 0.4, "draw": 3, "zero_to_one": 0.2, "one_to_zero": 0.5,
}  # fmt: skip
LAYERS = pytest.mark.parametrize(
    ("layer", "pool"),
    [
        (CONV, None),
        (replace(CONV, ifmap_height=30, relu=True), None),
        (replace(CONV, stride_height=1, batch=2), POOL),
        (replace(CONV, stride_height=1), MaxPool(window=(3, 2), stride=(2, 1), pad=(1, 0))),
        (PRODUCT, None),
    ],
    ids=["strided", "strips", "pooled", "windows that overlap", "product"],
)


def failing(design: Scnn = SMALL, rate: float = 0.05, **more: Any) -> Scnn:
    return replace(design, accumulator_memory=FaultyBank(rate=rate, chip=3, **more))


def operands_of(layer: Layer) -> Operands:
    return synthetic(layer, bits=8, density=0.5, seed=2)


@LAYERS
def test_where_no_cell_fails_nothing_is_another(layer: Layer, pool: MaxPool | None) -> None:
    """Walked sum by sum, also in protected cells, behind check bits and of lists in failing
    cells."""
    operands = operands_of(layer)
    right = layer_timing(SMALL, layer, operands, pool=pool)
    every = tuple(range(SMALL.accumulator_bits))
    coded = SecdedBank(data_bits=20, inner=FaultyBank(rate=SEEN))
    for design in (
        failing(rate=SEEN),
        failing(rate=0.5, protected_bits=every),
        failing(replace(SMALL, activation_memory=FaultyStream(rate=SEEN)), rate=SEEN),
        failing(replace(SMALL, weight_memory=FaultyBank(rate=SEEN)), rate=SEEN),
        replace(SMALL, accumulator_memory=coded),
    ):
        assert not design.accumulator_memory.exact
        assert_alike(layer_timing(design, layer, operands, pool=pool), right)


Read = Callable[[int, int, int, int], int]
"""What is read of a sum: of which half, PE and address, and what is stored."""


def reader(design: Scnn) -> Read:
    """By its cells, one sum at a time."""
    memory, use = design.accumulator_memory, design.use("accumulator")
    assert isinstance(memory, FaultyBank)
    faults, bits = memory.fault_map(use, WORDS, use.word_bits), design.accumulator_bits
    entry_bits = (design.bank_entries - 1).bit_length()

    def read(half: int, pe: int, address: int, stored: int) -> int:
        entry, bank = divmod(address, design.banks)
        word = half << HALF_BIT | (pe * design.banks + bank) << entry_bits | entry
        zero, one = (int.from_bytes(mask.tobytes(), "little") for mask in faults.masks(word, 1))
        found = stored ^ (stored & one | ~stored & zero)
        return int(wrap(np.array(found), bits))

    return read


Sum = tuple[int, int, int, int]
"""Of a PE, an output (row, column) and a filter of a group."""


def walked(design: Scnn, strip: Any, read: Read) -> dict[tuple[int, int, int], list[int]]:
    """What is read of sums as PEs give them out, or see them in a window: by output and filter, a
    value of each PE that sees it."""
    mapping, lists, bits = strip.mapping, strip.operands.ifmap, design.accumulator_bits
    rows, columns = mapping.rows, mapping.columns
    places = [mapping.place(pe) for pe in range(mapping.used_pes)]
    out: dict[tuple[int, int, int], list[int]] = {}

    def kept(value: int) -> int:
        return int(wrap(np.array(value), bits))

    def look(half: int, stored: dict[Sum, int], of: Sum) -> int:
        pe, p, q, k = of
        row, column = places[pe]
        at = (p - rows.region(row).start) * columns.extent + q - columns.region(column).start
        number = row * design.grid_columns + column
        return read(half, number, at * mapping.filter_pitch + k, stored.get(of, 0))

    for group in range(mapping.groups):
        filters = range(mapping.group_filters(group))
        half, stored = group % 2, dict[Sum, int]()
        weights = weight_lists(design, mapping, strip.operands.weight, group)
        for pe, (row, column) in enumerate(places):
            for number in range(mapping.lists):
                phase = mapping.phases[number % len(mapping.phases)]
                own = pe * mapping.lists + number
                for v in range(lists.starts[own], lists.starts[own + 1]):
                    for w in range(weights.starts[number], weights.starts[number + 1]):
                        for i in range(lists.lanes):
                            for f in range(weights.lanes):
                                product = int(lists.values[v, i]) * int(weights.values[w, f])
                                if not product:
                                    continue
                                y, x = divmod(int(lists.positions[v, i]), mapping.input_pitch)
                                tap, k = divmod(int(weights.positions[w, f]), mapping.filter_pitch)
                                r, s = divmod(tap, mapping.tap_pitch(phase[1]))
                                p = y + rows.base(row) - (phase[0] >= rows.threshold(row))
                                q = x + columns.base(column)
                                q -= phase[1] >= columns.threshold(column)
                                p += rows.region(row).start - r
                                q += columns.region(column).start - s
                                if p in rows.region(row) and q in columns.region(column):
                                    to = pe, p, q, k
                                    stored[to] = kept(look(half, stored, to) + product)
        for keep in (False, True):
            for step in ((0, -1), (0, 1), (-1, 0), (1, 0)):
                before = dict(stored)
                for pe, (row, column) in enumerate(places):
                    to = row + step[0], column + step[1]
                    if to not in places:
                        continue
                    other = places.index(to)
                    for p in rows.region(row):
                        for q in columns.region(column):
                            if not goes(mapping, (row, column), to, (p, q), keep=keep):
                                continue
                            for k in filters:
                                here, there = (pe, p, q, k), (other, p, q, k)
                                sent = look(half, before, here)
                                stored[there] = kept(look(half, before, there) + sent)
                                if not keep:
                                    stored[here] = 0
        for pe, (row, column) in enumerate(places):
            if not (rows.given(row) and columns.given(column)):
                continue
            for p in rows.seen(row):
                for q in columns.seen(column):
                    for k in filters:
                        at = p, q, group * mapping.group_size + k
                        out.setdefault(at, []).append(look(half, stored, (pe, p, q, k)))
    return out


def goes(
    mapping: Any, place: tuple[int, int], to: tuple[int, int], at: tuple[int, int], *, keep: bool
) -> bool:
    """Whether a PE sends its sum of an output to a neighbour: a halo's to who owns it, first to the
    sides; a copy of its own to whose windows see it, first to the sides."""
    axes = mapping.rows, mapping.columns
    own = [at[n] in axes[n].owned(place[n]) for n in (0, 1)]
    theirs = [at[n] in axes[n].owned(to[n]) for n in (0, 1)]
    seen = [at[n] in axes[n].seen(to[n]) for n in (0, 1)]
    along = 0 if place[0] == to[0] else 1
    across = 1 - along
    if not keep:
        return theirs[across] and not own[across] and (along == 0 or own[along])
    mine = own[across] and seen[across] and not theirs[across]
    held = at[along] in axes[along].seen(place[along])
    return mine and (own[along] or (along == 1 and held))


@pytest.mark.parametrize("rate", [0.01, 0.2])
@pytest.mark.parametrize("more", [{}, EVERYTHING], ids=["plain", "everything"])
@LAYERS
def test_outputs_are_those_of_a_plain_walk(
    layer: Layer, pool: MaxPool | None, rate: float, more: dict[str, Any]
) -> None:
    design, operands = failing(rate=rate, **more), operands_of(layer)
    strips = [one for some in layer_passes(design, layer, operands, pool) for one in some]
    found = [walked(design, one, reader(design)) for one in strips[:2]]
    for strip, sums in zip(strips, found, strict=False):
        right = outputs_of(design, strip, sums, operands)
        assert strip.values is not None and np.array_equal(strip.values, right)
    sound = layer_values(SMALL, layer, operands, pool)
    assert rate < 0.1 or not np.array_equal(layer_values(design, layer, operands, pool), sound)


def outputs_of(design: Scnn, strip: Any, sums: Any, operands: Operands) -> Any:
    """[U, V, K]: the largest of each window of what its own PE reads."""
    rows, columns = strip.mapping.rows, strip.mapping.columns
    shape = rows.window.outputs, columns.window.outputs, strip.mapping.filters
    found = np.full(shape, np.iinfo(np.int64).min)
    bias = operands.bias if strip.operands.has_bias else None
    turns: dict[Any, int] = {}
    for row in range(rows.pes):
        for column in range(columns.pes):
            if not (rows.given(row) and columns.given(column)):
                continue
            for p in rows.seen(row):
                for q in columns.seen(column):
                    for k in range(shape[2]):
                        turn = turns.get((p, q, k), 0)
                        turns[p, q, k] = turn + 1
                        value = requantize(
                            np.array(sums[p, q, k][turn]), 0 if bias is None else int(bias[k]),
                            (operands.multiplier, operands.shift), bool(strip.problem.relu),
                            design.operand_bits,
                        )  # fmt: skip
                        for u in rows.given(row):
                            for v in columns.given(column):
                                if p in rows.window.seen(range(u, u + 1), rows.outputs) and (
                                    q in columns.window.seen(range(v, v + 1), columns.outputs)
                                ):
                                    found[u, v, k] = max(found[u, v, k], int(value))
    return found


MEMORIES = st.one_of(
    st.builds(
        lambda rate, chip, more: FaultyBank(rate=rate, chip=chip, **more),
        st.sampled_from([SEEN, 1e-4, 1e-3, 1e-2, 0.2, 1.0]), st.integers(0, 9),
        st.sampled_from([{}, EVERYTHING, {"protected_bits": (3, 19)}]),
    ),
    st.builds(
        lambda code, rate: code(data_bits=20, inner=FaultyBank(rate=rate)),
        st.sampled_from([ParityBank, SecdedBank]), st.sampled_from([1e-3, 0.02, 1.0]),
    ),
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    layer=any_layer(),
    memory=MEMORIES,
    grid=st.sampled_from([(1, 1), (2, 2), (3, 2), (1, 4)]),
    lanes=st.sampled_from([(1, 3), (2, 2), (4, 1)]),
    group=st.sampled_from([1, 3, 4]),
    density=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_few_sums_laid_over_sound_ones_are_those_of_the_whole_walk(
    layer: Conv2d,
    memory: Any,
    grid: tuple[int, int],
    lanes: tuple[int, int],
    group: int,
    density: float,
) -> None:
    """Bit by bit and cycle by cycle, at every rate, however many sums fail."""
    design = replace(
        SMALL, grid_rows=grid[0], grid_columns=grid[1], weight_lanes=lanes[0],
        ifmap_lanes=lanes[1], filter_group=group, accumulator_memory=memory,
        bank_entries=160, iaram_bytes=4000, oaram_bytes=4000,
    )  # fmt: skip
    operands = replace(synthetic(layer, bits=8, density=density, seed=2), shift=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_sums, "MOST", -1)
        try:
            right = layer_timing(design, layer, operands)
        except InputError:
            reject()
        patch.setattr(few_sums, "MOST", 1e9)
        assert_alike(layer_timing(design, layer, operands), right)


@pytest.mark.parametrize(("operand_bits", "bits"), [(16, 32), (16, 33), (12, 48)])
@pytest.mark.parametrize("rate", [0.003, 0.05])
def test_wide_sums_are_walked_alone_too(
    operand_bits: int, bits: int, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also such of which more than 32 bits count."""
    design = failing(
        replace(
            SMALL, operand_bits=operand_bits, accumulator_bits=bits, bank_entries=160,
            iaram_bytes=4000, oaram_bytes=4000, weight_fifo_vectors=200,
        ),
        rate=rate,
    )  # fmt: skip
    layer = replace(CONV, filters=12, stride_height=1)
    operands = synthetic(layer, bits=operand_bits, density=0.9, seed=2)
    highest = 1 << (operand_bits - 2)
    operands = replace(
        operands,
        ifmap=np.where(operands.ifmap % 3 == 1, np.sign(operands.ifmap) * highest, operands.ifmap),
        weight=np.where(operands.weight % 3 == 1, highest, operands.weight),
        shift=bits - operand_bits - 1,
    )
    monkeypatch.setattr(few_sums, "MOST", -1)
    right = layer_timing(design, layer, operands)
    monkeypatch.setattr(few_sums, "MOST", 1e9)
    assert_alike(layer_timing(design, layer, operands), right)
    assert (
        right.ofmap
        != layer_timing(
            replace(design, accumulator_memory=SMALL.accumulator_memory), layer, operands
        ).ofmap
    ).any()


def test_few_sums_are_walked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few fail, whatever else does; where many do, and of memories of which is not known how
    words are read, all."""
    operands, calls = operands_of(CONV), list[str]()
    for name in ("given_of_few_sums", "given_of_failing_sums"):
        whole = getattr(failing_passes, name)
        monkeypatch.setattr(
            failing_passes, name,
            lambda *given, name=name, whole=whole: (calls.append(name), whole(*given))[1],
        )  # fmt: skip
    for design in (
        failing(rate=1e-4),
        failing(replace(SMALL, activation_memory=FaultyStream(rate=SEEN)), rate=1e-4),
        failing(replace(SMALL, weight_memory=FaultyBank(rate=SEEN)), rate=1e-4),
        replace(SMALL, accumulator_memory=SecdedBank(data_bits=20, inner=FaultyBank(rate=0.01))),
    ):
        calls.clear()
        layer_timing(design, CONV, operands)
        assert set(calls) == {"given_of_few_sums"}
    calls.clear()
    pooled = replace(CONV, stride_height=1, batch=2)
    layer_timing(failing(rate=1e-4), pooled, operands_of(pooled), pool=POOL)
    assert set(calls) == {"given_of_few_sums"}
    calls.clear()
    sparse = synthetic(CONV, bits=8, density=0.05, seed=2)
    layer_timing(failing(rate=0.5), CONV, sparse)
    assert set(calls) == {"given_of_failing_sums"}
    calls.clear()
    monkeypatch.setattr(FaultyBank, "by_bits", lambda self, use, words: None)
    layer_timing(failing(rate=1e-4), CONV, operands)
    assert set(calls) == {"given_of_failing_sums"}


def one_cell(path: Path, word: int, bit: int, kind: int, *, bits: int = 20) -> str:
    """A measured map of both halves of all banks, of which one cell fails."""
    found = np.zeros((2 * SMALL.bank_words, bits), np.uint8)
    found[word, bit] = kind
    np.savez(path, map=found)
    return str(path)


@pytest.mark.parametrize("half", [0, 1])
def test_one_cell_spoils_the_sums_that_lie_there(half: int, tmp_path: Path) -> None:
    """Of PE 1 filter 1 of a group: groups of the other half, and all other sums, are as meant."""
    operands, seen = replace(operands_of(CONV), shift=4), set[tuple[int, int]]()
    sound = layer_values(SMALL, CONV, operands)
    for place in range(6):
        entry, bank = divmod(4 * place + 1, 4)
        word = half * SMALL.bank_words + (1 * 4 + bank << 6 | entry)
        path = one_cell(tmp_path / f"{place}.npz", word, 16, READS_ONE)
        design = replace(SMALL, accumulator_memory=FaultyBank(map=path))
        wrong = np.argwhere(layer_values(design, CONV, operands)[0] != sound[0])
        assert len(wrong) <= 1
        seen |= {(int(filter_), place) for filter_, _, _ in wrong}
    assert {filter_ for filter_, _ in seen} == {(1, 4)[half]} and len(seen) > 1


def test_memories_whose_masks_are_not_kept_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of large memories, by cells of zeros and of ones; of others by the cells of every sum."""
    design = failing(rate=0.1, zero_to_one=0.3)
    operands = operands_of(CONV)
    right = layer_timing(design, CONV, operands)
    whole = FaultyBank.masks

    def of_few(self: Any, use: Any, words: int) -> Any:
        return whole(self, use, words) if words == 1 else None

    monkeypatch.setattr(FaultyBank, "masks", of_few)
    assert_alike(layer_timing(design, CONV, operands), right)
    monkeypatch.setattr(FaultyBank, "masks", lambda self, use, words: None)
    assert_alike(layer_timing(design, CONV, operands), right)
    assert SCNN_ISCA17.bank_words * SCNN_ISCA17.accumulator_bits > MOST_BITS, "so it is of these"


def test_check_bits_correct_one_error_and_lose_a_sum_of_two(tmp_path: Path) -> None:
    operands, lost = replace(operands_of(CONV), shift=4), 0
    sound = layer_values(SMALL, CONV, operands)
    code = SecdedBank(data_bits=20)
    bits = code.coded(SMALL.use("accumulator")).word_bits
    for entry in range(4):
        word = 1 * 4 + 1 << 6 | entry
        path = one_cell(tmp_path / f"{entry}.npz", word, 3, FLIPS, bits=bits)
        one = replace(SMALL, accumulator_memory=replace(code, inner=FaultyBank(map=path)))
        assert not one.accumulator_memory.exact
        assert np.array_equal(layer_values(one, CONV, operands), sound)
        found = np.load(path)["map"]
        found[word, 9] = FLIPS
        path = str(tmp_path / f"{entry} twice.npz")
        np.savez(path, map=found)
        two = replace(SMALL, accumulator_memory=replace(code, inner=FaultyBank(map=path)))
        wrong = int((layer_values(two, CONV, operands) != sound).sum())
        assert wrong <= 1
        lost += wrong
    assert lost


def test_words_that_may_fail_are_those_with_failing_cells(tmp_path: Path) -> None:
    use = SMALL.use("accumulator")
    memory = FaultyBank(map=one_cell(tmp_path / "m.npz", 70, 3, READS_ZERO))
    assert np.flatnonzero(words_that_fail(memory, use, SMALL.bank_words)).tolist() == [70]
    assert not words_that_fail(memory, use.in_half(1), SMALL.bank_words).any()
    inner = FaultyBank(rate=0.02, chip=4)
    coded = ParityBank(data_bits=20, inner=inner)
    found = words_that_fail(coded, use, 200)
    assert np.array_equal(found, words_that_fail(inner, coded.coded(use), 200))
    twice = SecdedBank(data_bits=20, inner=inner)
    assert 0 < words_that_fail(twice, use, 2000).sum() < words_that_fail(coded, use, 2000).sum()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sparsity": "weights"}, "sparsity must be both where cells fail, not weights"),
        (
            {"grid_rows": 64, "grid_columns": 64, "banks": 16, "bank_entries": 17},
            "accumulator_memory: a half of the banks of all PEs must have at most 1048576 places "
            "to fail, in powers of two each, not 2097152",
        ),
        ({"bank_hash": "dnnsim"}, "bank_hash must be linear where cells of sums fail, not dnnsim"),
        (
            {"accumulator_memory": FaultyBank(rate=0.1, protected_bits=(20,))},
            "accumulator_memory: protected_bits must be below the 20 bits of a lane, not 20",
        ),
    ],
)
def test_what_cannot_fail_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"^{says}"):
        replace(failing(), **change)


def test_maps_have_the_geometry_of_the_banks(tmp_path: Path) -> None:
    """64 places in each of 16 banks, in two halves, of which 40 are used."""
    for words, bits in ((1024, 20), (2048, 24)):
        np.savez(tmp_path / "m.npz", map=np.full((words, bits), FLIPS, np.uint8))
        memory = FaultyBank(map=str(tmp_path / "m.npz"))
        with pytest.raises(InputError, match="where accumulator has 2 x 1024 words of 20 bits"):
            replace(SMALL, accumulator_memory=memory)


def test_dnnsims_count_has_no_cells() -> None:
    with pytest.raises(InputError, match=r"^accumulator_memory must be exact where cycles are cou"):
        failing(SCNN_DNNSIM)


def test_ofmaps_do_not_stay_and_nothing_is_searched() -> None:
    design, operands = failing(), operands_of(CONV)
    run = LayerRun(layer=CONV, operands=operands, keep_ofmap=True)
    with pytest.raises(InputError, match=r"^conv: accumulator_memory must be exact for an ofmap t"):
        pass_words(design, [run, run])
    with pytest.raises(InputError, match=r"^conv: nothing is searched where cells fail"):
        best_choice(design, CONV, operands)
    (chained,) = chain_timing(design, [CONV], [operands])
    assert not any(one.mapping.keep_ofmap for one in chained.passes)
