"""Number formats and footprints in `archsim paper boveda`: of real tensors, profiled."""

from __future__ import annotations

from math import floor

import numpy as np
import pytest
from boveda_profiles import PROFILED
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from archsim.codecs.boveda import BovedaFormat
from archsim.compression import measure, tensors_of
from archsim.errors import InputError
from archsim.papers import boveda_rows, boveda_schemes
from archsim.papers.boveda_footprint import GROUP, OTHERS, chosen, counted, share
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
from archsim.papers.boveda_tensors import RealTensor, densities, fold_stride, real_tensors
from workloads.layers import Conv2d
from workloads.onnx_import import import_onnx
from workloads.operands import from_onnx
from workloads.packaged import packaged
from workloads.sparse import NETWORK

small = st.integers(1, 6)


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


@pytest.mark.usefixtures("known_profiles")
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


@pytest.mark.usefixtures("known_profiles")
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


@pytest.mark.usefixtures("known_profiles")
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


@pytest.mark.usefixtures("known_profiles")
def test_rows_of_every_format() -> None:
    rows = [*boveda_rows.footprint_rows("words", pruned=True)]
    assert len(rows) == 6 * 3
    assert {row.published.figure for row in rows} == {"weights", "activations", "both"}
    assert len({row.published.group for row in rows}) == 6
    assert all(row.within is None and "ShapeShifter" in row.reason for row in rows)
    weights, activations, both = (row.ours for row in rows[:3])
    assert min(weights, activations) < both < max(weights, activations)


@pytest.mark.slow
def test_profiles_found() -> None:
    for asked, expected in PROFILED.items():
        assert profile(*asked) == expected  # type: ignore[arg-type]
