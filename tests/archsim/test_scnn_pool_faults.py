"""Faults put into the model of pooling in the sparse core, or into the stepped one, are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty_module import faulty_module
from scnn_cases import Case, agrees, answers, operands_of
from scnn_copies import Copies
from scnn_outputs import Outputs

from archsim.machines.scnn import timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_values
from archsim.machines.scnn.mapping import Mapping
from workloads.layers import Conv2d
from workloads.pooling import MaxPool

CONV = Conv2d(
    name="conv", channels=2, filters=5, ifmap_height=11, ifmap_width=9, kernel_height=3,
    kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, bias=True,
)  # fmt: skip
SMALL = Scnn(grid_rows=2, grid_columns=3, filter_group=2, bank_entries=9)
THREE = MaxPool(window=(3, 3), stride=(2, 2))
PADDED = MaxPool(window=(3, 3), stride=(1, 2), pad=(1, 2), ceil=True)

FEW = [
    (SMALL, CONV, THREE),
    (replace(SMALL, bank_entries=16), CONV, PADDED),
    (
        Scnn(grid_rows=3, grid_columns=2, filter_group=3),
        CONV,
        MaxPool(window=(3, 2), stride=(2, 2)),
    ),
]


@pytest.fixture(scope="module")
def few() -> list[tuple[Case, Any]]:
    found = [
        Case(design=design, layer=layer, operands=operands_of(layer, (0.5, 0.6), seed=2), seed=2,
             gap=gap, pool=pool)
        for gap, (design, layer, pool) in enumerate(FEW)
    ]  # fmt: skip
    return [(case, answers(case)) for case in found]


def test_the_untouched_model_agrees(few: list[tuple[Case, Any]]) -> None:
    assert all(agrees(case, known) for case, known in few)


def _output(self: Any, group: int, *, less: int = 0, window: int | None = None) -> int:
    taps = self.rows.window.size * self.columns.window.size if window is None else window
    each = self.rows.give * self.output_pitch * taps + 1
    return self.group_filters(group) * each + self.clear_cycles - less


def _places(mapping: Mapping) -> int:
    """Of a window, padding included."""
    return mapping.rows.window.size * mapping.columns.window.size


MAPPING_FAULTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "copies forgotten": ("copy_cycles", lambda self, group: 0),
    "copies in a cycle each": (
        "copy_cycles",
        lambda self, group, _plain=Mapping.copy_cycles: _plain(self, group) // 2,
    ),
    "copies of rows across own columns only": (
        "copy_cycles",
        lambda self, group: (
            2
            * self.group_filters(group)
            * (
                self.rows.most_owned * sum(self.columns.most_copies)
                + sum(self.rows.most_copies) * self.columns.most_owned
            )
        ),
    ),
    "the clear forgotten": (
        "output_cycles",
        lambda self, group: _output(self, group, less=self.clear_cycles),
    ),
    "the clear a cycle short": ("output_cycles", lambda self, group: _output(self, group, less=1)),
    "windows read once": ("output_cycles", lambda self, group: _output(self, group, window=1)),
    "a row of a window missed": (
        "output_cycles",
        lambda self, group: _output(
            self,
            group,
            window=self.columns.window.size * (self.rows.window.size - 1),
        ),
    ),
    "reads of padding counted": (
        "window_reads",
        lambda self: np.array(
            [
                len(self.rows.given(row)) * len(self.columns.given(column)) * _places(self)
                for row, column in map(self.place, range(self.used_pes))
            ]
        ),
    ),
    "copies counted as they are cycled": (
        "copy_sums",
        lambda self: np.full(self.used_pes, self.copy_cycles(0) // 2 // self.group_filters(0)),
    ),
}


@pytest.mark.parametrize("name", MAPPING_FAULTS)
def test_faults_of_the_mapping_are_caught(
    name: str, few: list[tuple[Case, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    method, instead = MAPPING_FAULTS[name]
    monkeypatch.setattr(Mapping, method, instead)
    assert not all(agrees(case, known) for case, known in few)


FAULTS = {
    "copies not in the drain": ("mapping.copy_cycles(group)", "0"),
    "the output a cycle early": (
        "mapping.output_cycles(group)\n",
        "mapping.output_cycles(group) - 1\n",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_timing_are_caught(
    name: str, few: list[tuple[Case, Any]], tmp_path: Path
) -> None:
    faulty = faulty_module(timing, tmp_path, FAULTS[name])
    assert not all(agrees(case, known, faulty) for case, known in few)


def _zeroed(self: Copies, sums: Counter[Any], where: Any) -> int:
    return sums.pop(where, 0)


def _no_copy(self: Copies, group: int, down: int, right: int) -> None:
    return


def _zero_padding(self: Outputs, value: int, filter_: int) -> int:
    return max(_requantised(self, value, filter_), 0)


_requantised = Outputs.requantised

VALUE_FAULTS: dict[str, tuple[type, str, Any]] = {
    "a copy zeroes the sum": (Copies, "kept", _zeroed),
    "nothing is copied": (Copies, "copy", _no_copy),
    "padding counts as zero": (Outputs, "requantised", _zero_padding),
}


@pytest.mark.parametrize("name", VALUE_FAULTS)
def test_faults_of_the_values_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put into the stepped core, whose values the model's are compared with."""
    kind, method, instead = VALUE_FAULTS[name]
    monkeypatch.setattr(kind, method, instead)
    case = Case(design=SMALL, layer=CONV, operands=operands_of(CONV, (0.5, 0.6), seed=2), seed=2,
                gap=0, pool=PADDED)  # fmt: skip
    known = answers(case)
    assert known is not None
    values = layer_values(case.design, CONV, case.operands, PADDED)[0].transpose(1, 2, 0)
    assert not (known[1][0]["ofmap"] == values).all()
