"""Whole numbers as they are written, and the options and settings that take them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.cli.choose import WorkloadOptions
from archsim.errors import InputError
from archsim.machine.option import read_whole
from energy_models.errors import EnergyError
from energy_models.sources import open_source
from workloads.digits import whole
from workloads.errors import WorkloadError
from workloads.limits import Limits, changed

LONG = "9" * 5000
NO_NUMBERS = [
    "",
    "-1",
    "+1",
    " 1",
    "1 ",
    "1_0",
    "1.0",
    "0x1",
    "1e3",
    "٣",
    "²",
    LONG,
    "0" * 20,
    "9" * 20,
]


@given(st.integers(0, 10**19 - 1))
def test_what_is_written_is_read(number: int) -> None:
    assert whole(str(number)) == number


@given(st.text())
def test_nothing_else_is_a_number(text: str) -> None:
    number = whole(text)
    assert number is None or text.lstrip("0") in (str(number), "")


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_none_is_refused_everywhere(text: str) -> None:
    assert whole(text) is None
    with pytest.raises(InputError, match=r"^--dim takes NAME=SIZE with a positive size, not 'n="):
        _ = WorkloadOptions(dims=(f"n={text}",)).dim_values
    with pytest.raises(InputError, match=r"^--segments must be a whole number from 1 to 9, not"):
        read_whole("--segments", 1, 9)(text)
    if text == text.rstrip():  # spaces stand around settings
        with pytest.raises(WorkloadError, match="with a whole number from 1 to"):
            changed(Limits(), [f"tiles={text}"], "ARCHSIM_LIMITS")
    with pytest.raises(EnergyError, match=r"^source 'cacti"):
        open_source(f"cacti:{text}", Path())


def test_dims_are_said_once_and_are_positive() -> None:
    assert WorkloadOptions(dims=("n=1", "sequence=128")).dim_values == {"n": 1, "sequence": 128}
    with pytest.raises(InputError, match="--dim n is said twice"):
        _ = WorkloadOptions(dims=("n=1", "n=2")).dim_values
    for text in ("n", "n=0", "=1"):
        with pytest.raises(InputError, match="positive size"):
            _ = WorkloadOptions(dims=(text,)).dim_values
