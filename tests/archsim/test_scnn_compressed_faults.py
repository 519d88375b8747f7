"""Faults in the model of compressed activations are seen by comparison with the stepped one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty_module import Fault, faulty_module
from scnn_stream_cases import POINT, chain_agrees, point_operands, with_rows

from archsim.errors import InputError
from archsim.machines.scnn import timing
from archsim.machines.scnn.layer import layer_timing
from archsim.memories.boveda_stream import lists


def test_the_untouched_model_agrees() -> None:
    assert chain_agrees()


TIMING_FAULTS: dict[str, Fault] = {
    "the first group without its latency": ("+ 1 + design.load_latency_cycles", "+ 1"),
    "the first group a cycle early": (
        "+ 1 + design.load_latency_cycles",
        "+ design.load_latency_cycles",
    ),
    "the first group a cycle late": (
        "+ 1 + design.load_latency_cycles",
        "+ 2 + design.load_latency_cycles",
    ),
    "what has stayed is waited for": (
        "return design.exchange_cycles",
        "return design.exchange_cycles + design.load_latency_cycles",
    ),
    "the ofmap a cycle early": (
        "free + design.ofmap_latency_cycles",
        "free + design.ofmap_latency_cycles - 1",
    ),
    "the ofmap a cycle late": (
        "free + design.ofmap_latency_cycles",
        "free + design.ofmap_latency_cycles + 1",
    ),
    "the ofmap as of a plain memory": ("free + design.ofmap_latency_cycles", "free + 3"),
    "what stays is written as in a plain memory": (
        "free + design.ofmap_latency_cycles",
        "free + 3 if mapping.keep_ofmap else free + 7",
    ),
}


@pytest.mark.parametrize("name", TIMING_FAULTS)
def test_a_wrong_latency_is_caught(name: str, tmp_path: Path) -> None:
    assert not chain_agrees(faulty_module(timing, tmp_path, TIMING_FAULTS[name]))


ROW_FAULTS: dict[str, Fault] = {
    "a row begun is forgotten": ("rows = -(-sums // use.value_bits)", "rows = sums // 16"),
    "a row too many": ("rows = -(-sums // use.value_bits)", "rows = sums // 16 + 1"),
    "PEs share a memory": ("starts[:-1], axis=0", "starts[:-1] * 0, axis=0"),
    "zeros take bits": (
        "form.numbers, (0, len(widths)), widths)\n    starts",
        "(*form.numbers[:3], 0), (0, len(widths)), widths)\n    starts",
    ),
    "a group is as wide as its first lane": (
        "(lists.lanes, columns), form.numbers, (0",
        "(lists.lanes, columns), (1, *form.numbers[1:]), (0",
    ),
    "no sign": ("form.numbers, (0, len(widths)), widths)\n    starts",
                "(*form.numbers[:2], 0, 1), (0, len(widths)), widths)\n    starts"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROW_FAULTS)
def test_rows_counted_wrong_are_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = faulty_module(lists, tmp_path, ROW_FAULTS[name])
    monkeypatch.setattr(lists, "stored_lists", copy.stored_lists)
    with pytest.raises(AssertionError):
        assert chain_agrees()


FIT_FAULTS: dict[str, tuple[Fault, Callable[[], Any]]] = {
    "a row more than there is": (
        ("rows <= use.rows", "rows <= use.rows + 1"),
        lambda: layer_timing(with_rows(12), POINT, point_operands([8, 7] + [4, -4] * 11)),
    ),
    "entries not counted": (
        ("and vectors <= memory.entries(use.rows)", ""),
        lambda: layer_timing(with_rows(11), POINT, point_operands([1, *[0] * 23])),
    ),
}


@pytest.mark.parametrize("name", FIT_FAULTS)
def test_a_wrong_capacity_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, refused = FIT_FAULTS[name]
    with pytest.raises(InputError):
        refused()
    monkeypatch.setattr(lists, "why_not", faulty_module(lists, tmp_path, fault).why_not)
    refused()
