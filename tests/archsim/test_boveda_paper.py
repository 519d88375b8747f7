"""`archsim paper boveda`: number formats, footprints, SCNN's words and the sweeps of memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from archsim.codecs.boveda import BovedaFormat
from archsim.compressed_memory import Boveda
from archsim.compression import measure, tensors_of
from archsim.errors import InputError
from archsim.papers import boveda, boveda_machines, boveda_rows, boveda_schemes
from archsim.papers.boveda_footprint import GROUP, OTHERS, chosen, counted, share
from archsim.papers.boveda_gains import curve, gains, size_for, value_at
from archsim.papers.boveda_machines import (
    MACHINES,
    Point,
    Step,
    has_flip_flops,
    memory_bytes,
    sweep,
    with_memories,
)
from archsim.papers.boveda_schemes import (
    DNNSIM,
    LIMIT,
    Scheme,
    fixed_point,
    profile,
    reaches,
    room,
    room_for,
    schemes,
)
from archsim.papers.boveda_scnn import (
    Words,
    activation_lists,
    drawn_words,
    photograph_words,
    total,
    weight_lists,
    words_of,
)
from archsim.papers.boveda_tensors import RealTensor, densities, fold_stride, real_tensors
from archsim.papers.figures import Row, load_figures, read_paper
from archsim.simulate import simulate
from workloads.layers import Conv2d
from workloads.onnx_import import import_onnx
from workloads.operands import from_onnx
from workloads.packaged import packaged
from workloads.sparse import NETWORK

PROFILED = {
    ("photographs", "right"): (6, -4),
    ("photographs", "kept"): (13, 1),
    ("words", "right"): (7, 5),
    ("words", "kept"): (13, 8),
}
"""What `profile` answers (the slow test), so that other tests need not search."""

small = st.integers(1, 6)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boveda_schemes, "profile", lambda *asked: PROFILED[asked])


# Data file


def test_every_figure_has_a_source_and_a_reason_for_its_tolerance() -> None:
    figures = load_figures("boveda")
    assert len(figures) == 14
    for figure in figures.values():
        assert figure.value is not None and figure.tolerance == 10
        assert figure.source.startswith(("abstract", "Lascorz")) and figure.why
    published = {key.partition(".")[2]: figure.value for key, figure in figures.items()}
    assert published == {
        "dense": 53,
        "value": 34,
        "word": 34,
        "shapeshifter8": 33,
        "shapeshifter16": 36,
    }
    assert set(boveda.REASONS) <= set(figures)
    assert 0 < densities()["others"] < densities()["first"] < 1
    assert "abstract only" in read_paper("boveda")["title"]


def test_a_reason_stands_only_where_a_figure_is_outside() -> None:
    figure = load_figures("boveda")["SqueezeNet.value"]
    assert boveda._judged(figure, 34.5, "remark").reason == "remark"
    assert boveda._judged(figure, 60, "remark").reason.startswith("between this")
    with pytest.raises(InputError, match="without a reason"):
        boveda._judged(load_figures("boveda")["AlexNet.value"], 60, "")


def test_the_notes_say_what_is_not_known() -> None:
    notes = " ".join(boveda.notes())
    assert "could not be had" in notes
    assert "0.37 of all other weights" in notes and "drawn" in notes


# Tensors


@given(
    values=arrays.arrays(np.float32, st.tuples(small, small, small, small), elements=st.just(1.0)),
    stride=st.integers(1, 4),
)
def test_folding_moves_every_value_and_adds_only_zeros(values: np.ndarray, stride: int) -> None:
    values = np.arange(1, values.size + 1, dtype=np.float32).reshape(values.shape)
    tensor = RealTensor(layer="l", kind="activations", values=values, aligned_axes=3, stride=stride)
    folded = fold_stride(tensor).values
    assert np.count_nonzero(folded) == values.size
    channels = values.shape[3]
    for n, y, x, c in np.ndindex(values.shape):
        at = ((y % stride) * stride + x % stride) * channels + c
        assert folded[n, y // stride, x // stride, at] == values[n, y, x, c]


def test_only_convolutions_are_folded() -> None:
    flat = np.ones((3, 4), np.float32)
    with pytest.raises(InputError, match="must be a convolution's to be folded"):
        fold_stride(RealTensor(layer="l", kind="weights", values=flat, aligned_axes=1))


def test_real_tensors_are_the_networks_own() -> None:
    dense, pruned = (real_tensors("photographs", pruned=one) for one in (False, True))
    assert len(dense) == len(pruned) == 2 * 26
    assert dense[0].values.shape == (64, 3, 3, 3) and dense[1].values.shape == (1, 227, 227, 3)
    for one, other in zip(dense, pruned, strict=True):
        assert (one.layer, one.kind, one.values.shape) == (
            other.layer,
            other.kind,
            other.values.shape,
        )
        if one.kind == "weights":
            kept = densities()["first" if one.layer == "conv1" else "others"]
            assert np.count_nonzero(other.values) == round(kept * one.values.size)
    assert not np.array_equal(dense[-1].values, pruned[-1].values)
    words = real_tensors("words", pruned=True)
    assert {one.layer for one in words} >= {"enc_w_ih", "dec_w_hh", "fc_w"}
    for one in words:
        assert one.signed and one.values.ndim == 2 and one.values.shape[1] == 256
        if one.kind == "weights":
            assert np.count_nonzero(one.values) == round(0.37 * one.values.size)


# Number formats


@given(st.floats(-5000, 5000, width=32), st.integers(-8, 15))
def test_fixed_point_rounds_half_away_from_zero_and_clips(x: float, fraction: int) -> None:
    found = int(fixed_point(np.array([x], np.float32), fraction)[0])
    expected = min(floor(abs(x) * 2.0**fraction + 0.5), 32767)
    assert found == (expected if x >= 0 else -expected)


def test_halves_go_away_from_zero() -> None:
    values = np.array([0.5, -0.5, 1.5, -2.5, 40000, -40000], np.float32)
    assert fixed_point(values, 0).tolist() == [1, -1, 2, -3, LIMIT, -LIMIT]


@given(st.floats(1e-4, 30000))
def test_room_is_just_enough(largest: float) -> None:
    bits = room_for(largest)
    assert floor(largest * 2.0**bits + 0.5) <= LIMIT < floor(largest * 2.0 ** (bits + 1) + 0.5)


def test_room_for_the_ends() -> None:
    assert [room_for(one) for one in (LIMIT, LIMIT + 1, 1, 0.5)] == [0, -1, 14, 15]


def test_there_is_no_room_for_nothing() -> None:
    with pytest.raises(InputError, match="largest must be positive, not 0"):
        room_for(0)


@pytest.mark.parametrize(
    ("alone", "both", "lucky", "expected"),
    [
        ((5, 2), 0, (), (5, 2)),
        ((5, 2), 9, (), (6, 3)),
        ((14, 12), 0, (), (14, 12)),
        ((-3, 7), 8, (), (-1, 9)),
        ((5, 2), 0, ((3, None), (None, 0), (4, 1)), (5, 2)),
        ((-40, -40), 0, (), (1, 1)),
        ((2, 9), 0, (), (2, 9)),
    ],
)
def test_the_profile_is_the_fewest_bits_of_which_all_finer_are_enough(
    monkeypatch: pytest.MonkeyPatch,
    alone: tuple[int, int],
    both: int,
    lucky: tuple[tuple[int | None, int | None], ...],
    expected: tuple[int, int],
) -> None:
    """A network that needs so many bits of each operand, and in sum; and some lucky roundings."""

    def answers(_name: str, bits: tuple[int | None, int | None], _goal: str) -> bool:
        assert all(have is None or have <= most for have, most in zip(bits, (14, 12), strict=True))
        known = [(have, need) for have, need in zip(bits, alone, strict=True) if have is not None]
        enough = sum(have for have, _ in known) >= both or len(known) < 2
        return bits in lucky or (enough and all(have >= need for have, need in known))

    monkeypatch.setattr(boveda_schemes, "reaches", answers)
    monkeypatch.setattr(boveda_schemes, "room", lambda _name: (14, 12))
    monkeypatch.setattr(boveda_schemes, "FEWEST", 0 if alone[0] < -20 else -16)
    assert profile.__wrapped__("words", "kept") == expected


def test_few_bits_change_the_answers_of_words() -> None:
    assert room("words") == (14, 12)
    for goal in ("right", "kept"):
        assert reaches("words", (None, None), goal)
        assert reaches("words", (14, 12), goal)
        assert not reaches("words", (3, None), goal)
    assert reaches("words", (7, None), "right") and not reaches("words", (7, None), "kept")


@pytest.mark.usefixtures("quick")
def test_schemes() -> None:
    known = schemes("photographs")
    assert list(known) == ["tensor-8", "tensor-16", "fixed", "dnnsim", "profiled", "strict"]
    assert [one.bits for one in known.values()] == [8, 16, 16, 16, 16, 16]
    assert known["dnnsim"].fractions == DNNSIM == (15, 2)
    assert known["fixed"].fractions == (14, 4)
    for one in real_tensors("photographs")[:4]:
        for scheme in known.values():
            values = scheme.integers(one)
            assert values.shape == one.values.shape
            assert np.abs(values.astype(int)).max() < 1 << (scheme.bits - 1)
    weights, plane = real_tensors("photographs")[2:4]
    finer = known["fixed"].integers(weights).max() / known["profiled"].integers(weights).max()
    assert finer == pytest.approx(2**8, rel=0.02)
    assert np.abs(known["fixed"].integers(plane)).max() > 2**12


# Footprints


def test_footprints_are_those_of_archsim_compress() -> None:
    model, feeds = packaged(NETWORK).model(), packaged(NETWORK).input(0)
    operands = from_onnx(model, feeds, bits=8)
    scheme = Scheme(name="tensor-8", title="", bits=8)
    ours = {(one.layer, one.kind): one for one in counted(
        "photographs", scheme, pruned=False, folded=False)}  # fmt: skip
    form = BovedaFormat(group=GROUP, container_bits=8)
    layers = {layer.name: layer for layer in import_onnx(model).matrix_layers}
    for name in ("conv1", "fire4/expand3x3"):
        layer = layers[name]
        assert isinstance(layer, Conv2d)
        for tensor in tensors_of(layer, operands[name], "real"):
            theirs, one = measure(tensor, form), ours[name, tensor.kind]
            assert one.boveda == theirs.boveda and one.raw_bits == theirs.bits["raw"]
            assert one.others == {codec: theirs.bits[codec] for codec in OTHERS}


@pytest.mark.usefixtures("quick")
def test_what_holds_of_footprints() -> None:
    known = schemes("photographs")

    def both(form: str, first: str = "folded", *, pruned: bool = False):
        return chosen("photographs", known[form], pruned=pruned, first=first)  # type: ignore[arg-type]

    whole = {form: both(form) for form in known}
    for one in whole.values():
        assert one.padding < one.bare < one.boveda < one.others["per-layer"]
        assert one.others["entropy"] < one.others["shapeshifter"] < one.bare
    assert 100 > whole["tensor-16"].boveda > whole["fixed"].boveda > whole["strict"].boveda
    assert whole["strict"].boveda > 53 > whole["profiled"].boveda  # the published one between
    assert whole["profiled"].boveda == pytest.approx(41.1, abs=0.1)
    assert both("fixed", "as it is").boveda > 100 > both("fixed").boveda
    assert both("fixed").boveda > both("fixed", "without").boveda
    pruned = both("fixed", pruned=True)
    assert pruned.others["zero-run"] < 0.7 * whole["fixed"].others["zero-run"]
    assert pruned.boveda > 0.97 * whole["fixed"].boveda  # zeros among others save nothing


@pytest.mark.usefixtures("quick")
def test_a_brick_of_one_group_is_a_whole_row() -> None:
    """Note 3: whatever its width."""
    tensors = counted("photographs", schemes("photographs")["profiled"], pruned=False, folded=False)
    planes = {one.layer: one for one in tensors if one.kind == "activations"}
    plane = planes["fire2/expand3x3"]  # 16 channels
    own = plane.boveda
    assert own.payload_bits + own.padding_bits == plane.raw_bits and own.tail_bits == 0
    assert share([plane]).bare == 100 and own.padding_bits > 0.3 * plane.raw_bits
    assert [one.layer for one in tensors if one.first] == ["conv1", "conv1"]
    folded = counted("photographs", schemes("photographs")["profiled"], pruned=False, folded=True)
    assert [one.raw_bits for one in folded] == [one.raw_bits for one in tensors]
    assert folded[2:] == tensors[2:] and folded[1].boveda.values > tensors[1].boveda.values


@pytest.mark.usefixtures("quick")
def test_rows_of_every_format() -> None:
    rows = [*boveda_rows.footprint_rows("words", pruned=True)]
    assert len(rows) == 6 * 3
    assert {row.published.figure for row in rows} == {"weights", "activations", "both"}
    assert len({row.published.group for row in rows}) == 6
    assert all(row.within is None and "ShapeShifter" in row.reason for row in rows)
    weights, activations, both = (row.ours for row in rows[:3])
    assert min(weights, activations) < both < max(weights, activations)


# SCNN


def _reference(lists: np.ndarray, signed: bool) -> Words:
    words = widths = 0
    for line in lists.tolist():
        kept = [abs(value) for value in line if value]
        for at in range(0, len(kept), 4):
            words += 1
            widths += max(value.bit_length() for value in kept[at : at + 4]) + signed
    return Words(words=words, widths=widths)


@given(
    lists=arrays.arrays(
        np.int16,
        st.tuples(st.integers(1, 4), st.integers(1, 20)),
        elements=st.one_of(st.just(0), st.integers(0, 32767)),
    ),
    signed=st.booleans(),
)
def test_words_are_fours_of_values_that_are_not_zero(lists: np.ndarray, signed: bool) -> None:
    given_lists = -lists if signed else lists
    assert words_of(given_lists, signed=signed) == _reference(given_lists, signed)


@given(st.integers(1, 50), st.integers(1, 15))
def test_reductions_are_those_of_the_two_accounts(words: int, width: int) -> None:
    one = Words(words=words, widths=words * width)
    value = 1 - (16 + 4 + 4 * width) / (4 * (16 + 4))
    word = 1 - (4 + 4 + 4 * width) / (4 * 16 + 4)
    assert one.reduction("value") == pytest.approx(100 * value)
    assert one.reduction("word") == pytest.approx(100 * word)
    assert one.mean_width == width
    assert total([one, one]) == Words(words=2 * words, widths=2 * words * width)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 3))
def test_lists_of_activations_are_channels_of_tiles(height: int, width: int, channels: int) -> None:
    plane = np.arange(1, height * width * channels + 1, dtype=np.int16)
    plane = plane.reshape(height, width, channels)
    rows, columns = -(-height // 8), -(-width // 8)
    found = [line[line != 0].tolist() for line in activation_lists(plane)]
    assert len(found) == channels * 64
    for channel in range(channels):
        for pe in range(64):
            y, x = pe // 8 * rows, pe % 8 * columns
            tile = plane[y : y + rows, x : x + columns, channel]
            assert found[channel * 64 + pe] == tile.ravel().tolist()


@given(st.integers(1, 20), st.integers(1, 3), st.integers(1, 3))
def test_lists_of_weights_are_channels_of_8_filters(filters: int, kernel: int, depth: int) -> None:
    weight = np.arange(1, filters * kernel**2 * depth + 1, dtype=np.int16)
    weight = weight.reshape(filters, kernel, kernel, depth)
    found = [line[line != 0].tolist() for line in weight_lists(weight)]
    groups = -(-filters // 8)
    assert len(found) == groups * depth
    for group in range(groups):
        for channel in range(depth):
            part = weight[8 * group : 8 * group + 8, :, :, channel]
            assert found[group * depth + channel] == part.ravel().tolist()


@pytest.mark.usefixtures("quick")
def test_what_holds_on_top_of_zero_compression() -> None:
    known = schemes("photographs")
    saved = [
        total(photograph_words(known[form]).values()).reduction("value")
        for form in ("tensor-16", "fixed", "dnnsim", "strict", "profiled")
    ]
    assert saved == sorted(saved) and saved[0] > 5
    assert boveda_rows.limits("profiled") == (127, 127)
    assert boveda_rows.limits("tensor-16") == (LIMIT, LIMIT)
    wide, narrow = (
        total(drawn_words("AlexNet", largest).values()) for largest in ((LIMIT, LIMIT), (255, 1023))
    )
    assert wide.reduction("value") < 0 < 25 < narrow.reduction("value") < 40
    assert narrow.reduction("word") > narrow.reduction("value")
    again = total(drawn_words("AlexNet", (255, 1023)).values())
    assert again == narrow


# Machines


def _points(values: list[float]) -> list[tuple[float, float]]:
    return [(2.0**at, value) for at, value in enumerate(values, 5)]


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=8), st.floats(16, 10000))
def test_curves_never_rise(values: list[float], size: float) -> None:
    found = curve(reversed(_points(values)))
    assert [value for _, value in found] == [min(values[: at + 1]) for at in range(len(values))]
    value = value_at(found, size)
    assert min(values) <= value * (1 + 1e-9) and value <= values[0] * (1 + 1e-9)
    enough = size_for(found, value)
    if enough is not None:
        assert enough <= max(size, found[0][0]) * (1 + 1e-6)
        assert value_at(found, enough) == pytest.approx(value, rel=1e-6)


def test_sizes_are_interpolated_over_their_logarithm() -> None:
    line = curve([(32, 10), (128, 2)])
    assert value_at(line, 64) == pytest.approx(6)
    assert size_for(line, 6) == pytest.approx(64)
    assert size_for(line, 2) == pytest.approx(128)
    assert size_for(line, 10) is None and size_for(line, 1) is None
    assert value_at(line, 8) == 10 and value_at(line, 1024) == 2


def test_gains_compare_equal_bytes() -> None:
    """Compressed memories as good as plain ones of twice the size, and a directory of an eighth."""

    def point(size: float, moved: float) -> Point:
        return Point(size_bytes=size, off_chip_bytes=moved, cycles=2 * moved)

    moved = [800.0, 400.0, 200.0, 200.0]
    steps = [
        Step(
            kibibytes=at,
            plain=point(2.0**at, moved[at]),
            compressed=point(1.125 * 2.0**at, moved[min(at + 1, 3)]),
        )
        for at in range(4)
    ]
    found = gains(steps)
    assert [one.size is None for one in found] == [True, True, False, True]
    assert found[2].size == pytest.approx(100 * (1.125 * 2 / 4 - 1))
    between = value_at([(1.125, 400), (2.25, 200)], 2)
    assert found[1].off_chip == found[1].cycles == pytest.approx(100 * (between / 400 - 1))
    assert found[0].off_chip == pytest.approx(-50) and found[3].off_chip == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_memories_of_a_size_are_counted_with_their_directories(machine: str) -> None:
    design = MACHINES[machine][0]
    plain, small = (with_memories(design, 64, compressed=one) for one in (False, True))
    for operand in ("ifmap", "weight"):
        assert memory_bytes(plain, operand) == 64 * 1024
        memory = small.memory(operand)
        assert isinstance(memory, Boveda)
        port = next(one for one in small.data_ports if one.name == operand)
        assert memory.group == min(GROUP, port.lanes)
        units = 2 * memory.units(port.bits) * port.lanes // memory.group
        extra = units * memory.entry_bits(port.bits, port.lane_bits[0])
        assert memory_bytes(small, operand) == 64 * 1024 + extra / 8 < 1.12 * 64 * 1024


def test_energy_is_left_out_where_memories_are_flip_flops() -> None:
    design = next(iter(MACHINES.values()))[0]
    for compressed, least in ((False, 32), (True, 128)):
        for capacity in (16, 32, 64, 128, 1024):
            built = with_memories(design, capacity, compressed=compressed)
            assert has_flip_flops(built) == (capacity < least)
    known = Point(size_bytes=4, off_chip_bytes=1, cycles=1, memories_pj=20, total_pj=100)
    better = replace(known, memories_pj=30, total_pj=90)
    unknown = replace(known, memories_pj=None, total_pj=None)
    steps = [Step(kibibytes=1, plain=known, compressed=one) for one in (better, unknown)]
    first, second = (gains([step])[0] for step in steps)
    assert first.memories == pytest.approx(50) and first.total == pytest.approx(-10)
    assert second.memories is None and second.total is None
    rows = [*boveda_rows.machine_rows("machine", steps[:1])]
    assert rows[0].reason.endswith("energy of memories +50 %, of all -10.0 %")


def test_a_sweep_is_what_the_simulator_says(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = next(iter(MACHINES))
    network, operands = boveda_machines._workload("tensor-8")
    few = replace(network, layers=network.matrix_layers[-7:-3])
    monkeypatch.setattr(boveda_machines, "_workload", lambda _form: (few, operands))
    told: list[str] = []
    steps = sweep(machine, (32, 16), told.append)
    assert [step.kibibytes for step in steps] == [16, 32]
    assert told == [f"{machine}: 16 KiB", f"{machine}: 32 KiB"]
    for step in steps:
        assert step.compressed.off_chip_bytes <= step.plain.off_chip_bytes
        design = with_memories(MACHINES[machine][0], step.kibibytes, compressed=True)
        result = simulate(design, few, operands=operands)
        assert step.compressed.cycles == result.cycles
        assert step.compressed.off_chip_bytes == sum(result.bytes_moved.values())
    assert steps[0].compressed.off_chip_bytes < steps[0].plain.off_chip_bytes
    rows = [*boveda_rows.machine_rows(machine, steps)]
    assert [row.published.figure for row in rows] == ["16 KiB each", "32 KiB each"]
    assert 50 < rows[0].ours == 100 + gains(steps)[0].off_chip < 100
    assert "MB plainly; cycles " in rows[0].reason


# The whole


@pytest.fixture(scope="module")
def table() -> boveda.LayerComparison:
    told: list[str] = []
    comparison = boveda.compare(told.append)
    assert "g2p-en: pruned" in told
    return comparison


@pytest.mark.slow
def test_profiles_found() -> None:
    for asked, expected in PROFILED.items():
        assert profile(*asked) == expected  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_figure_is_compared_and_every_row_is_there(table: boveda.LayerComparison) -> None:
    keys = [row.published.key for row in table.rows]
    assert len(set(keys)) == len(keys)
    assert set(load_figures("boveda")) <= set(keys)
    judged: Callable[[Row], bool] = lambda row: row.within is not None  # noqa: E731
    assert len([row for row in table.rows if judged(row)]) == 14
    assert len(keys) == 14 + 2 * 6 * (6 + 3) + 5 + 3 * 3 + 7 * len(MACHINES) + 6 * 3
    record = table.record()
    assert len(record["layers"]) == 2 * 6 * (52 + 10)
    assert all(one["percent"]["boveda"] > 0 for one in record["layers"])


@pytest.mark.slow
def test_the_figures_that_are_near(table: boveda.LayerComparison) -> None:
    near = {row.published.key for row in table.rows if row.within}
    assert near == {
        "g2p-en.dense",
        "AlexNet.value",
        "VGG-16.value",
        "GoogLeNet.value",
        "g2p-en.shapeshifter16",
    }
    assert set(boveda.REASONS) == set(load_figures("boveda")) - near
