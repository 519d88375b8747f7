# amaranth: UnusedElaboratable=no
"""Boveda's compressor and decompressor: bit for bit the format, cycle for cycle the model."""

from collections.abc import Callable

import numpy as np
import pytest
from boveda_bench import (
    Form,
    Tensor,
    codec_differences,
    compiled,
    compressor_differences,
    decompressor_differences,
    round_trip_differences,
    tensor,
)
from boveda_faults import COMPRESSOR, DECOMPRESSOR
from faults import Patch
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs.boveda import BovedaFormat, encode
from archsim.codecs.boveda_timing import (
    Pace,
    compressor_cycles,
    decompressor_cycles,
    row_use,
)
from archsim.errors import InputError
from rtl.benches.bench import ProtocolError
from rtl.boveda import BovedaCodec, Compressor, Decompressor, Pack

SIGNED, UNSIGNED = Form(), Form(signed=False)
FREE: dict[str, int] = {}
INTO = {"i": 2, "row": 3, "widths": 2}
BACK = {"row": 3, "widths": 2, "o": 2}

forms = st.builds(
    Form,
    group=st.sampled_from([1, 2, 3, 5, 7]),
    container_bits=st.sampled_from([4, 8, 16]),
    signed=st.booleans(),
    zero_width=st.booleans(),
)
stalls = st.integers(0, 4)


@settings(max_examples=14)
@given(form=forms, seed=st.integers(0, 999), i=stalls, row=stalls, widths=stalls)
def test_compressor_with_any_stalls(form: Form, seed: int, i: int, row: int, widths: int) -> None:
    made = tensor(form, 25, seed)
    assert compressor_differences(made, {"i": i, "row": row, "widths": widths}) == []


@settings(max_examples=14)
@given(form=forms, seed=st.integers(0, 999), row=stalls, widths=stalls, o=stalls)
def test_decompressor_with_any_stalls(form: Form, seed: int, row: int, widths: int, o: int) -> None:
    made = tensor(form, 25, seed)
    assert decompressor_differences(made, {"row": row, "widths": widths, "o": o}) == []


@settings(max_examples=10)
@given(form=forms, seed=st.integers(0, 999), i=stalls, o=stalls, unit=st.integers(1, 40))
def test_what_goes_in_comes_out(form: Form, seed: int, i: int, o: int, unit: int) -> None:
    made = tensor(form, 30, seed, longest_unit=unit)
    queue = 30 if form.zero_width else None
    assert round_trip_differences(made, {"i": i, "o": o}, queue) == []


@pytest.mark.parametrize(
    "form",
    [
        Form(group=16, container_bits=8),
        Form(group=3, container_bits=16, signed=False, zero_width=True),
        pytest.param(Form(group=1, container_bits=4), marks=pytest.mark.slow),
        pytest.param(Form(group=5, container_bits=4, zero_width=True), marks=pytest.mark.slow),
        pytest.param(Form(group=16, container_bits=16), marks=pytest.mark.slow),
        pytest.param(Form(group=33, container_bits=8, signed=False), marks=pytest.mark.slow),
    ],
)
def test_emitted_verilog(form: Form) -> None:
    """Both units at once, 3,000 groups, free and with stalls on every port."""
    unit = BovedaCodec(**vars(form))
    runner, made = compiled(unit), tensor(form, 3000, seed=1)
    assert codec_differences(unit, runner, made, 0) == []
    assert codec_differences(unit, runner, made, 3) == []


def _one_unit(form: Form, *values: int) -> Tensor:
    """A unit of groups of one value each, in lane 0."""
    groups = [[value] + [0] * (form.group - 1) for value in values]
    return Tensor(form=form, groups=groups, last=[False] * (len(values) - 1) + [True])


def test_latencies() -> None:
    """Widths 5 and 8 in one unit of 8 bits a row: two rows, both made by the second group."""
    made = _one_unit(SIGNED, -9, 127)
    assert made.widths == [5, 8]
    into = compressor_cycles(made.use)
    assert [array.tolist() for array in vars(into).values()] == [[0, 1], [3, 4], [4, 5]]
    back = decompressor_cycles(made.use)
    assert [array.tolist() for array in vars(back).values()] == [[1, 2], [0, 1], [3, 4]]
    assert compressor_differences(made, FREE) == decompressor_differences(made, FREE) == []


def test_one_group_a_cycle_but_for_a_second_row() -> None:
    """Each unit of widths 5, 8 makes the compressor stall a cycle, none the decompressor."""
    groups, last = [[9, 0], [127, 0]] * 20, [False, True] * 20
    made = Tensor(form=SIGNED, groups=groups, last=last)
    into = np.diff(compressor_cycles(made.use).widths)
    assert into.tolist() == [1, 2] * 19 + [1]
    assert set(np.diff(decompressor_cycles(made.use).o).tolist()) == {1}
    assert compressor_differences(made, FREE) == decompressor_differences(made, FREE) == []


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 7, 8])
def test_long_units_never_stall(bits: int) -> None:
    """One unit of equal widths: a group in every cycle, both ways."""
    made = _one_unit(UNSIGNED, *[(1 << bits) - 1] * 40)
    assert set(np.diff(compressor_cycles(made.use).i).tolist()) == {1}
    assert set(np.diff(decompressor_cycles(made.use).o).tolist()) == {1}
    assert compressor_differences(made, FREE) == decompressor_differences(made, FREE) == []


@pytest.mark.parametrize("form", [SIGNED, UNSIGNED, Form(group=1, container_bits=4)])
def test_every_value_of_a_container(form: Form) -> None:
    low, high = form.limits(form.container_bits)
    made = _one_unit(form, *range(low, high + 1))
    assert compressor_differences(made, FREE) == decompressor_differences(made, FREE) == []


def test_units_without_bits_have_no_rows() -> None:
    form = Form(zero_width=True)
    made = Tensor(
        form=form,
        groups=[[0, 0], [0, 0], [3, 1], [0, 0], [-128, 0], [0, 0]],
        last=[True, False, False, True, False, True],
    )
    assert made.widths == [0, 0, 3, 0, 8, 0]
    assert len(made.row_words) == made.use.rows == 2
    assert compressor_differences(made, FREE) == decompressor_differences(made, FREE) == []


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("zero_width", [True, False])
def test_rows_and_widths_are_those_of_the_codec(bits: int, signed: bool, zero_width: bool) -> None:
    """Units of three groups of random widths."""
    form = Form(group=3, container_bits=bits, signed=signed, zero_width=zero_width)
    made = tensor(form, 36, seed=bits)
    made = Tensor(form=form, groups=made.groups, last=[False, False, True] * 12)
    values = np.array(made.groups).reshape(12, 9)
    stored = encode(values, BovedaFormat(**vars(form)), aligned_axes=1)
    columns = [
        sum(int(value) << (bits * lane) for lane, value in enumerate(row)) for row in stored.rows
    ]
    assert made.widths == stored.widths.tolist()
    assert [word % (1 << 3 * bits) for word in made.row_words] == columns
    assert compressor_differences(made, INTO) == decompressor_differences(made, BACK) == []


def _caught(check: Callable[[Tensor, dict[str, int]], list[str]], pauses: dict[str, int]) -> bool:
    made = tensor(SIGNED, 60, seed=4)
    try:
        return any(check(made, each) != [] for each in (FREE, pauses, {"row": 5}))
    except ProtocolError:
        return True


@pytest.mark.parametrize("name", COMPRESSOR)
def test_a_fault_in_the_compressor_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch: Patch = COMPRESSOR[name]
    patch(monkeypatch)
    assert _caught(compressor_differences, INTO)


@pytest.mark.parametrize("name", DECOMPRESSOR)
def test_a_fault_in_the_decompressor_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch: Patch = DECOMPRESSOR[name]
    patch(monkeypatch)
    assert _caught(decompressor_differences, BACK)


def test_the_untouched_units_pass() -> None:
    """The same groups show no difference without a fault, so the tests above mean something."""
    assert not _caught(compressor_differences, INTO)
    assert not _caught(decompressor_differences, BACK)


@pytest.mark.parametrize("unit", [Compressor, Decompressor, BovedaCodec, Pack])
def test_sizes_that_there_are_not(unit: type) -> None:
    with pytest.raises(InputError, match="group must be positive, not 0"):
        unit(group=0, container_bits=8, signed=True)
    with pytest.raises(InputError, match="container_bits must be 4, 8 or 16, not 12"):
        unit(group=4, container_bits=12, signed=True)


def test_what_the_model_refuses() -> None:
    widths, last = np.array([3, 9]), np.array([0, 1])
    with pytest.raises(InputError, match="widths must be 0 to 8"):
        row_use(widths, last, 8)
    with pytest.raises(InputError, match="last must be 2, not 1"):
        row_use(widths, last[1:], 8)
    use = row_use(widths, last, 16)
    with pytest.raises(InputError, match="gaps of i must be 2, not 1"):
        compressor_cycles(use, i=Pace(gaps=np.zeros(1, np.int64)))
