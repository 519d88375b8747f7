"""Compressed lists of the sparse core in cells that fail: what PEs read, count and give out.

Contents are laid out bit by bit beside it (`scnn_streams`), and read again one bit behind the
other.  RTL: `tests/rtl/test_scnn_failing_compressed.py`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scnn_failing_layers import CONV, LAYERS, SEEN, assert_alike
from scnn_streams import Content, content_of

from archsim.codecs.zero_run import Lists
from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.scnn.failing import seen_lists
from archsim.machines.scnn.layer import Layer, layer_passes, layer_timing
from archsim.machines.scnn.stream_actions import row_actions
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.stream import FaultyStream
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

SMALL = Scnn(
    grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=8, operand_bits=8,
    index_bits=2, iaram_bytes=400, oaram_bytes=300, activation_memory=BovedaStream(group=2),
)  # fmt: skip


def failing(rate: float = 0.05, design: Scnn = SMALL, **more: Any) -> Scnn:
    memory = FaultyStream(rate=rate, chip=3, inner=design.activation_memory, **more)
    return replace(design, activation_memory=memory)


def operands_of(layer: Layer) -> Operands:
    return synthetic(layer, bits=8, density=0.5, seed=2)


@LAYERS
def test_where_no_cell_fails_nothing_is_another(layer: Layer, pool: MaxPool | None) -> None:
    """By lists that are read out of rows and directories; counts of rows are the same."""
    operands = operands_of(layer)
    right = layer_timing(SMALL, layer, operands, pool=pool)
    for design in (failing(SEEN), replace(SMALL, weight_memory=FaultyBank(rate=SEEN))):
        found = layer_timing(design, layer, operands, pool=pool)
        assert_alike(found, right)
        assert row_actions(found.passes) == row_actions(right.passes)


def bit_of(memory: Any, use: Any, sram: str, row: int, at: int, bit: int) -> int:
    """What is read of a bit that lies in a row of an SRAM."""
    faults = memory.maps(use)[sram]
    masks = faults.masks((use.half << HALF_BIT) + row, 1)
    zero, one = (int.from_bytes(mask.tobytes(), "little") >> at & 1 for mask in masks)
    return bit ^ (one if bit else zero)


class Walk:
    """A PE's content, read bit by bit."""

    def __init__(self, design: Scnn, name: str, content: Content, pe: int) -> None:
        self.memory: Any = design.activation_memory
        self.use, self.content = design.stream_use(name), content
        self.first = pe << self.use.row_bits
        self.bits, self.group = design.operand_bits, self.memory.inner.group
        self.field_bits = self.bits.bit_length() - 1
        most = max(design.iaram_vectors, design.oaram_vectors)
        self.numbers = 1 << max((most - 1).bit_length(), 1)
        """Of rows, behind which they begin again."""

    def entry(self, number: int) -> tuple[list[int], list[int]]:
        """Widths of columns and indices of lanes."""
        fields, indices, _ = self.content.entries[number]
        bits = [field >> bit & 1 for field in fields for bit in range(self.field_bits)]
        bits += [index >> bit & 1 for index in indices for bit in range(self.use.index_bits)]
        read = [
            bit_of(self.memory, self.use, "directory", self.first + number, at, bit)
            for at, bit in enumerate(bits)
        ]
        count = len(fields) * self.field_bits
        cut = [read[at : at + self.field_bits] for at in range(0, count, self.field_bits)]
        codes = [sum(bit << at for at, bit in enumerate(one)) for one in cut]
        marks = [
            read[at : at + self.use.index_bits]
            for at in range(count, len(read), self.use.index_bits)
        ]
        return (
            [code + 1 if code else 0 for code in codes],
            [sum(bit << at for at, bit in enumerate(one)) for one in marks],
        )

    def value(self, column: int, lane: int, begin: int, width: int) -> int:
        """Sign and magnitude, from a bit of the column's line on."""
        rows, found = self.content.rows[column][: self.use.rows], 0
        first = begin // self.bits % self.numbers
        for n in range(width):
            row, bit = first + (begin % self.bits + n) // self.bits, (begin + n) % self.bits
            if row >= len(rows):
                continue
            at = (column * self.group + lane) * self.bits + bit
            stored = rows[row][lane] >> bit & 1
            found |= bit_of(self.memory, self.use, "rows", self.first + row, at, stored) << n
        magnitude = found & (1 << width - 1) - 1 if width else 0
        if width and found >> width - 1:
            return -magnitude if magnitude else self.least(width)
        return magnitude

    def least(self, width: int) -> int:
        """What minus zero stands for."""
        return -(1 << self.bits - 1)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_lists_are_read_as_bits_one_behind_the_other(data: st.DataObject) -> None:
    """Of any groups, widths, chips, sizes and kinds of faults, of both memories."""
    group, columns = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    value_bits, index_bits = data.draw(st.sampled_from([4, 8, 16])), data.draw(st.integers(1, 4))
    lanes, share = group * columns, data.draw(st.floats(0, 1))
    rows = data.draw(st.integers(3, 9))
    vector = lanes * (value_bits + index_bits)
    inner = BovedaStream(group=group, expansion=data.draw(st.integers(1, 3)))
    design = Scnn(
        grid_rows=2, grid_columns=3, ifmap_lanes=lanes, operand_bits=value_bits,
        index_bits=index_bits, iaram_bytes=-(-vector * 2 * rows // 8),
        oaram_bytes=-(-vector * rows // 8),
        activation_memory=FaultyStream(
            rate=data.draw(st.sampled_from([0.001, 0.02, 0.3, 1.0])),
            chip=data.draw(st.integers(0, 9)), zero_to_one=share, one_to_zero=(1 - share) / 2,
            column_shape=data.draw(st.sampled_from([None, 0.5])), inner=inner,
        ),
    )  # fmt: skip
    name, places = data.draw(st.sampled_from(["iaram", "oaram"])), [(0, 0), (1, 2)]
    draws = np.random.default_rng(data.draw(st.integers(0, 99)))
    use = design.stream_use(name)
    each = int(draws.integers(1, inner.entries(use.rows) + 4))
    shape = 2 * each, lanes
    values = draws.integers(-(1 << value_bits - 1), 1 << value_bits - 1, shape)
    if data.draw(st.booleans(), label="narrow"):
        values >>= draws.integers(0, value_bits, (2 * each, 1))
        values[draws.random(shape) < 0.3] = 0
    indices = draws.integers(0, 1 << index_bits, shape)
    middle = (each + 1) // 2
    starts = [0, middle, each, each + middle, 2 * each]
    lists = Lists(
        values=values, indices=indices, positions=np.cumsum(indices + 1).reshape(shape),
        starts=np.array(starts), index_bits=index_bits,
    )  # fmt: skip
    read, walked = seen_lists(design, name, lists, places), 0
    for number, (row, column) in enumerate(places):
        held = min(each, inner.entries(use.rows))
        vectors = [
            [(int(v), int(i), None) for v, i in zip(values[n], indices[n], strict=True)]
            for n in range(number * each, number * each + held)
        ]
        plain = replace(design, activation_memory=inner)
        walk = Walk(design, name, content_of(plain, [vectors]), row * 3 + column)
        ends = [0] * columns
        for n in range(held):
            widths, marks = walk.entry(n)
            assert read.indices[number * each + n].tolist() == marks
            found: list[int] = []
            for at, width in enumerate(widths):
                found += [walk.value(at, lane, ends[at], width) for lane in range(group)]
                ends[at] += width
            assert read.values[number * each + n].tolist() == found
        walked += sum(-(-end // value_bits) for end in ends)
    assert read.walked_rows == walked


def test_directories_have_no_protected_bits() -> None:
    """Not even where their entries have as many bits as rows have."""
    design = replace(SMALL, ifmap_lanes=1, operand_bits=4, activation_memory=BovedaStream(group=1))
    use = design.stream_use("iaram")
    both = [
        failing(0.5, design, protected_bits=bits).activation_memory.maps(use)  # pyright: ignore
        for bits in ((), (0, 1))
    ]
    assert {sram: faults.word_bits for sram, faults in both[0].items()} == {
        "rows": 4, "directory": 4
    }  # fmt: skip
    assert [faults["directory"].protected_bits for faults in both] == [(), ()]
    assert [faults["rows"].protected_bits for faults in both] == [(), (0, 1)]


def test_vectors_without_an_entry_take_no_rows() -> None:
    """Of a PE with more of them than an OARAM has entries, beside one with fewer."""
    memory, design = BovedaStream(group=2, expansion=1), replace(SMALL, oaram_bytes=20)
    use = design.stream_use("oaram")
    assert memory.entries(use.rows) == use.rows == 8
    values = np.concatenate([np.full((5, 2), 3), np.full((11, 2), 100), np.full((3, 2), 3)])
    lists = Lists(
        values=values, indices=np.zeros_like(values), positions=np.zeros_like(values),
        starts=np.array([0, 16, 19]), index_bits=2,
    )  # fmt: skip
    found = memory.content(use, lists, 2)
    assert found is not None and found.all_rows == -(-(5 * 3 + 3 * 8) // 8) + -(-3 * 3 // 8)
    assert found.stored_bits == found.all_rows * 16 + 11 * (2 * 2 + 1 + 3)


def test_a_width_costs_more_than_a_value() -> None:
    """What stands behind a wrong one is elsewhere, to the end of the PE's content."""
    layer = replace(CONV, channels=16, ifmap_height=16, ifmap_width=16, stride_height=1)
    operands = operands_of(layer)
    design = replace(SMALL, iaram_bytes=4000, oaram_bytes=4000)
    plain = FaultyStream(rate=0.001, chip=3)
    wrong: list[int] = []
    for memory in (plain, replace(plain, inner=BovedaStream(group=2))):
        ((strip,),) = layer_passes(replace(design, activation_memory=memory), layer, operands)
        meant, read = strip.operands.ifmap, strip.operands.computed
        wrong.append(int(np.count_nonzero(meant.values != read.values)))
    assert wrong[1] > 5 * wrong[0] > 0


def test_rows_that_are_read_are_counted_by_wrong_widths() -> None:
    """At as many cycles of loading; rows written are those that were meant."""
    operands = operands_of(CONV)
    found, right = (
        row_actions(layer_timing(design, CONV, operands).passes)
        for design in (failing(0.05), SMALL)
    )
    assert found["iaram_row_write"] == right["iaram_row_write"]
    assert found["iaram_row_read"] != right["iaram_row_read"]
    assert found["oaram_row_read"] != found["oaram_row_write"]


def test_the_supply_prices_rows_and_directories() -> None:
    kinds = ["activation_memory.kind=boveda", "activation_memory.kind=faulty"]
    design: Any = with_settings(SCNN_ISCA17, [*kinds, "activation_memory.voltage=0.85"])
    assert design_from_record(design_record(design), "it") == design
    priced = {one.name: one.relative_voltage for one in design.components if one.kind == "sram"}
    names = {
        f"{ram}{part}.words" for ram in ("iaram", "oaram") for part in ("", ".marks", ".widths")
    }
    assert {name for name, volts in priced.items() if volts == 0.85} == names
    sound: Any = with_settings(SCNN_ISCA17, kinds[:1])
    assert {one.name for one in design.components} == {one.name for one in sound.components}


def test_measured_maps_are_of_rows_and_of_directories(tmp_path: Path) -> None:
    use = SMALL.stream_use("iaram")
    rows = 2 * SMALL.pes << use.row_bits
    for bits in (16, 10, 12):
        np.savez(tmp_path / f"{bits}.npz", map=np.zeros((rows, bits), np.uint8))

    def of(map_bits: int, directory_bits: int | None) -> Scnn:
        paths = {"map": str(tmp_path / f"{map_bits}.npz")}
        if directory_bits:
            paths["directory_map"] = str(tmp_path / f"{directory_bits}.npz")
        memory = FaultyStream(inner=BovedaStream(group=2), **paths)  # pyright: ignore[reportArgumentType]
        return replace(SMALL, activation_memory=memory)

    with pytest.raises(InputError, match=r"^activation_memory: directory_map must be given beside"):
        of(16, None)
    with pytest.raises(InputError, match=r"^activation_memory: map: .* words of 16 bits"):
        of(10, 10)
    with pytest.raises(
        InputError, match=r"^activation_memory: directory_map: .* entries of 7 bits"
    ):
        of(16, 12)
