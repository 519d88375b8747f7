"""Lists of the sparse core behind check bits: what PEs read of cells that fail, and its price.

A decoder that tries every single error is laid beside it; RTL: `tests/rtl` has a file of the same
name.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scnn_failing_layers import CONV, LAYERS, SEEN, assert_alike

from archsim.codecs.zero_run import Lists
from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.scnn.failing import seen_lists
from archsim.machines.scnn.layer import Layer, layer_passes, layer_timing, plan_layer
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.code import Code, parity, secded
from archsim.memories.protected.stream import ParityStream, SecdedStream
from archsim.memory import PlainStream
from archsim.robust.placed import At, able, placed
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

SMALL = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8, operand_bits=8,
    index_bits=2, iaram_bytes=400, oaram_bytes=300,
)  # fmt: skip
KINDS: dict[str, Any] = {"parity": ParityStream, "secded": SecdedStream}
CODES: dict[str, Any] = {"parity": parity, "secded": secded}


def checked(kind: str, data_bits: int, inner: Any = None, design: Scnn = SMALL) -> Scnn:
    return replace(
        design,
        activation_memory=KINDS[kind](data_bits=data_bits, inner=inner or PlainStream()),
    )


def operands_of(layer: Layer) -> Operands:
    return synthetic(layer, bits=8, density=0.5, seed=2)


@pytest.mark.parametrize("kind", KINDS)
@LAYERS
def test_where_no_cell_fails_nothing_is_another(
    kind: str, layer: Layer, pool: MaxPool | None
) -> None:
    """Of sound cells, which nobody looks at, and of such as may fail and do not."""
    operands = operands_of(layer)
    right = layer_timing(SMALL, layer, operands, pool=pool)
    for inner in (PlainStream(), FaultyStream(rate=SEEN)):
        design = checked(kind, 20, inner)
        assert design.activation_memory.exact == inner.exact
        assert_alike(layer_timing(design, layer, operands, pool=pool), right)


def one_decoded(code: Code, data: int, checks: int) -> int:
    """The data of the code word that is one bit away at most; 0 of none, and where any was wrong of
    a code that corrects nothing."""

    def checks_of(data: int) -> int:
        return sum(
            (sum(data >> bit & 1 for bit in code.covered(at)) & 1) << at
            for at in range(code.check_bits)
        )

    if checks_of(data) == checks:
        return data
    tried = [data ^ 1 << bit for bit in range(code.data_bits)] if code.corrects else []
    found = [one for one in tried if checks_of(one) == checks]
    found += [data] if code.corrects and (checks_of(data) ^ checks).bit_count() == 1 else []
    assert len(found) < 2
    return found[0] if found else 0


def one_read(memory: Any, code: Any, use: Any, elements: list[int], address: int) -> list[int]:
    """Elements of a vector, by a word of its bits."""
    bits, each = use.element_bits, memory.data_bits // use.element_bits
    groups = [elements[at : at + each] for at in range(0, len(elements), each)]
    codes = [code(bits * len(group)) for group in groups]
    word = at = 0
    for group, own in zip(groups, codes, strict=True):
        data = sum(element << bits * lane for lane, element in enumerate(group))
        checks = sum(
            (sum(data >> bit & 1 for bit in own.covered(place)) & 1) << place
            for place in range(own.check_bits)
        )
        word |= (data | checks << own.data_bits) << at
        at += own.bits
    inside = memory.kept(use).words
    assert inside.word_bits == at
    faults = memory.inner.words_map(inside)
    masks = faults.masks((use.half << HALF_BIT) + address, 1)
    zero, one = (int.from_bytes(mask.tobytes(), "little") for mask in masks)
    word ^= word & one | ~word & zero
    found: list[int] = []
    for group, own in zip(groups, codes, strict=True):
        data = word & (1 << own.data_bits) - 1
        checks = word >> own.data_bits & (1 << own.check_bits) - 1
        word >>= own.bits
        data = one_decoded(own, data, checks)
        found += [data >> bits * lane & (1 << bits) - 1 for lane in range(len(group))]
    return found


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_lists_are_read_as_a_plain_decoder_reads_them(data: st.DataObject) -> None:
    """Of any lanes, code words over some of them, chips and kinds of faults, in both memories."""
    lanes, kind = data.draw(st.integers(1, 5)), data.draw(st.sampled_from(sorted(KINDS)))
    value_bits, index_bits = data.draw(st.sampled_from([4, 8, 16])), data.draw(st.integers(1, 4))
    element = value_bits + index_bits
    share = data.draw(st.floats(0, 1))
    inner = FaultyStream(
        rate=data.draw(st.sampled_from([0.01, 0.05, 0.3, 1.0])), chip=data.draw(st.integers(0, 9)),
        zero_to_one=share, one_to_zero=(1 - share) / 2,
        column_shape=data.draw(st.sampled_from([None, 0.5])),
        protected_bits=data.draw(st.sampled_from([(), (0,)])),
    )  # fmt: skip
    grid = Scnn(
        grid_rows=2, grid_columns=3, ifmap_lanes=lanes, operand_bits=value_bits,
        index_bits=index_bits, iaram_bytes=200, oaram_bytes=90,
    )  # fmt: skip
    design = checked(kind, element * data.draw(st.integers(1, lanes + 1)), inner, grid)
    name = data.draw(st.sampled_from(["iaram", "oaram"]))
    use, memory = design.stream_use(name), design.activation_memory
    draws = np.random.default_rng(data.draw(st.integers(0, 99)))
    each, places = 6, [(0, 0), (1, 2)]
    shape = 2 * each, lanes
    values = draws.integers(-(1 << value_bits - 1), 1 << value_bits - 1, shape)
    values[draws.random(shape) < 0.3] = 0
    indices = draws.integers(0, 1 << index_bits, shape)
    lists = Lists(
        values=values, indices=indices, positions=np.cumsum(indices + 1).reshape(shape),
        starts=np.array([0, 2, each, each + 1, 2 * each]), index_bits=index_bits,
    )  # fmt: skip
    read = seen_lists(design, name, lists, places)
    mask, sign = (1 << value_bits) - 1, 1 << value_bits - 1
    for pe, (row, column) in enumerate(places):
        for n in range(each):
            at = pe * each + n
            elements = [
                int(value) & mask | int(index) << value_bits
                for value, index in zip(values[at], indices[at], strict=True)
            ]
            address = row * 3 + column << use.row_bits | n
            wanted = one_read(memory, CODES[kind], use, elements, address)
            assert [(one & mask ^ sign) - sign for one in wanted] == read.values[at].tolist()
            assert [one >> value_bits for one in wanted] == read.indices[at].tolist()


def test_check_bits_may_stand_around_check_bits() -> None:
    """Of words of one lane with its check bits: parity finds what SECDED reads as zeros."""
    cells = FaultyStream(rate=0.02, chip=3)
    inner = SecdedStream(data_bits=10, inner=cells)
    both = replace(SMALL, activation_memory=ParityStream(data_bits=20, inner=inner))
    with pytest.raises(InputError, match="activation_memory: data_bits must be those"):
        replace(SMALL, activation_memory=SecdedStream(data_bits=10, inner=both.activation_memory))
    operands = operands_of(CONV)
    lone = replace(SMALL, activation_memory=inner)
    wrong = {
        name: np.count_nonzero(
            strip.operands.computed.values != strip.operands.ifmap.values
        )
        for name, design in (("both", both), ("lone", lone))
        for strip in layer_passes(design, CONV, operands)[0]
    }  # fmt: skip
    assert wrong["lone"] > 0 and 0 < wrong["both"] < 4 * wrong["lone"]


def test_secded_wins_where_errors_are_few_and_fails_where_they_are_many() -> None:
    layer = replace(CONV, channels=16, ifmap_height=16, ifmap_width=16, stride_height=1)
    operands, design = operands_of(layer), replace(SMALL, iaram_bytes=4000, oaram_bytes=4000)

    def moved(rate: float, kind: str | None) -> int:
        wrong = 0
        for chip in range(4):
            cells: Any = FaultyStream(rate=rate, chip=chip)
            memory = cells if kind is None else KINDS[kind](data_bits=20, inner=cells)
            ((strip,),) = layer_passes(replace(design, activation_memory=memory), layer, operands)
            meant, read = strip.operands.ifmap, strip.operands.computed
            wrong += int(
                (meant.values != read.values).sum() + (meant.indices != read.indices).sum()
            )
        return wrong

    assert moved(0.001, None) > 20 * moved(0.001, "secded")
    assert moved(0.001, "parity") > moved(0.001, None) / 2
    assert moved(0.1, "secded") > moved(0.1, None)


@pytest.mark.parametrize("kind", KINDS)
def test_check_bits_are_priced_and_so_are_coders(kind: str) -> None:
    """Beside the vectors, whose number stays, in both memories of every PE."""
    settings = [f"activation_memory.kind={kind}", "activation_memory.data_bits=20"]
    plain = SCNN_ISCA17
    design: Any = with_settings(SCNN_ISCA17, settings)
    assert design.activation_memory == KINDS[kind](data_bits=20)
    code = CODES[kind](20)
    sizes = [
        {one.name: one.attributes for one in each.components if one.kind == "sram"}
        for each in (plain, design)
    ]
    for name in ("iaram.words", "oaram.words"):
        was, now = sizes[0][name], sizes[1][name]
        assert now["depth"] == was["depth"]
        assert now["word_bits"] == was["word_bits"] + plain.ifmap_lanes * code.check_bits
    coders = {one.name for one in design.components} - {one.name for one in plain.components}
    assert coders == {"memories.code.encode", "memories.code.decode"}


def test_the_supply_prices_check_bits_too() -> None:
    design = with_settings(
        SCNN_ISCA17,
        ["activation_memory.kind=faulty", "activation_memory.voltage=0.85",
         "activation_memory.kind=secded", "activation_memory.data_bits=20"],
    )  # fmt: skip
    assert design_from_record(design_record(design), "it") == design
    priced = {one.name: one.relative_voltage for one in design.components if one.kind == "sram"}
    assert {name for name, volts in priced.items() if volts == 0.85} == {
        "iaram.words", "oaram.words"
    }  # fmt: skip


def test_the_voltage_study_puts_check_bits_around_one_element() -> None:
    assert able(SCNN_ISCA17)["activation"] == ("plain", "boveda", "secded")
    design: Any = placed(SCNN_ISCA17, [At("activation", "secded", 0.891)], chip=5)
    assert design.activation_memory == SecdedStream(
        data_bits=SCNN_ISCA17.element_bits, inner=FaultyStream(voltage=0.891, chip=5)
    )


def test_ofmaps_stay_behind_check_bits_of_sound_cells() -> None:
    """A layer takes what lies there of the one before, in as many cycles as of plain memories."""
    layer = replace(CONV, channels=5, ifmap_height=4, ifmap_width=7, stride_height=1, groups=1)
    operands = operands_of(layer)
    ofmap = plan_layer(SMALL, layer, operands).ofmap
    after = replace(
        layer, channels=ofmap.shape[1], ifmap_height=ofmap.shape[2], ifmap_width=ofmap.shape[3]
    )
    following = replace(operands_of(after), ifmap=ofmap.astype(np.int16))
    plain, found = (
        chain_timing(each, [layer, after], [operands, following])
        for each in (SMALL, checked("secded", 10))
    )
    assert any(one.mapping.ifmap_kept for one in plain[1].passes)
    assert [one.cycles for one in found] == [one.cycles for one in plain]


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        (SecdedStream(), "data_bits must be those of whole lanes, of 10 bits each, not 8"),
        (
            ParityStream(data_bits=15),
            "data_bits must be those of whole lanes, of 10 bits each, not 15",
        ),
        (
            SecdedStream(data_bits=10, inner=BovedaStream(group=1)),
            "inner must keep vectors as they are, not compress their values: check bits are of "
            "whole elements",
        ),
        (
            FaultyStream(rate=0.1, inner=SecdedStream(data_bits=10)),
            "inner must keep vectors without check bits, not secded: cells fail below them, so "
            "that kind=faulty is set first",
        ),
        (
            SecdedStream(data_bits=10, inner=FaultyStream(rate=0.1, inner=BovedaStream(group=1))),
            "inner must keep vectors as they are, not compress their values: check bits are of "
            "whole elements",
        ),
    ],
)
def test_what_does_not_fit_is_refused(memory: Any, says: str) -> None:
    with pytest.raises(InputError, match=f"^activation_memory: {says}"):
        replace(SMALL, activation_memory=memory)


def test_a_measured_map_is_of_words_with_check_bits(tmp_path: Path) -> None:
    path, rows = tmp_path / "map.npz", 2 * SMALL.pes << SMALL.stream_use("iaram").row_bits
    for bits, fits in ((30, True), (20, False)):
        np.savez(path, map=np.zeros((rows, bits), np.uint8))
        inner = FaultyStream(map=str(path))
        if fits:
            assert checked("secded", 10, inner).activation_memory.exact
        else:
            with pytest.raises(InputError, match="words of 30 bits, 1 in a row"):
                checked("secded", 10, inner)
