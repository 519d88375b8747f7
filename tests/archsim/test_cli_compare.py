"""`archsim compare` as a user meets it: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from command_line import Call, good, refused
from rich.console import Console

from archsim import EDGE_16, NetworkResult, simulate
from archsim.cli.compare import print_comparison
from archsim.comparison import compare_results
from archsim.energy_account import EnergyAccount
from archsim.exports import write_exports
from archsim.version import VERSION
from workloads.builtin import builtin


@pytest.fixture(scope="module")
def base() -> NetworkResult:
    return simulate(EDGE_16, builtin("alexnet"), seed=0)


@pytest.fixture(scope="module")
def other() -> NetworkResult:
    memory = replace(EDGE_16.off_chip, bytes_per_cycle=8.0)
    return simulate(replace(EDGE_16, rows=32, off_chip=memory), builtin("alexnet"), seed=0)


@pytest.fixture
def compare(base: NetworkResult, other: NetworkResult, archsim: Call, tmp_path: Path) -> Call:
    """Call `archsim compare` in a folder with a.json, and b, a folder."""
    (tmp_path / "a.json").write_text(base.to_json(), encoding="utf-8")
    write_exports(other, tmp_path / "b")
    return lambda *words: archsim("compare", *words)


def test_it_prints_all_that_differs(
    compare: Call, base: NetworkResult, other: NetworkResult
) -> None:
    out = good(compare("a.json", "b"))
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[:5] == [
        "A (baseline): a.json: alexnet on edge-16",
        "B: b: alexnet on systolic-32x16",
        "the designs differ in (A -> B):",
        "  rows: 16 -> 32",
        "  off_chip.bytes_per_cycle: 16 -> 8",
    ]
    rows = {" ".join(line.split()) for line in lines}
    assert f"cycles {base.cycles:,} {other.cycles:,} {other.cycles / base.cycles:.3f}" in rows
    assert f"MACs {base.macs:,} {base.macs:,} 1.000" in rows
    speedup = base.seconds / other.seconds
    assert (
        f"speedup of B over A: {speedup:.4g} "
        "(seconds of A / seconds of B; above 1, B is faster)" in rows
    )
    assert "layers whose cycles differ most (8 of 8 that differ)" in rows
    for one, two in zip(base.layers, other.layers, strict=True):
        if one.cycles:
            row = f"{one.name} {one.cycles:,} {two.cycles:,} {two.cycles / one.cycles:.3f}"
            assert row in rows
    assert "…" not in out
    assert "\x1b" not in out


def layer_rows(out: str) -> list[str]:
    lines = [line.split() for line in out.splitlines()]
    start = next(at for at, words in enumerate(lines) if words[:2] == ["layer", "(cycles)"])
    return [words[0] for words in lines[start + 2 :] if len(words) == 4]


def test_layers_are_as_many_as_asked_for(
    compare: Call, base: NetworkResult, other: NetworkResult
) -> None:
    pairs = zip(base.layers, other.layers, strict=True)
    moved = {one.name: abs(one.cycles - two.cycles) for one, two in pairs if one.cycles}
    ranked = sorted(moved, key=lambda name: -moved[name])
    assert layer_rows(good(compare("a.json", "b", "--layers", "3"))) == ranked[:3]
    assert layer_rows(good(compare("a.json", "b", "--layers", "all"))) == list(moved)
    assert "layer (cycles)" not in good(compare("a.json", "b", "--layers", "0"))


def test_a_result_with_itself(compare: Call) -> None:
    lines = [line.rstrip() for line in good(compare("a.json", "a.json")).splitlines()]
    assert "the designs are equal" in lines
    assert "no layer's cycles differ" in lines
    assert not any(line.startswith(("note:", "only in")) for line in lines)


def test_other_networks_are_said(compare: Call, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(simulate(EDGE_16, builtin("resnet18")).to_json())
    lines = good(compare("a.json", "b", "c.json")).splitlines()
    assert not any(line.startswith("speedup") for line in lines)
    assert any(line.startswith("only in A, B: conv1, norm1, ") for line in lines)
    assert any(line.startswith("only in C: conv1, pool1, res2.1/conv1, ") for line in lines)
    assert (
        "note: the results are of different layers (A alexnet, B alexnet, C resnet18): "
        "ratios of the totals compare different work, and there is no speedup" in lines
    )


def test_energies_are_printed(
    compare: Call,
    base: NetworkResult,
    tmp_path: Path,
    account_at: Callable[..., EnergyAccount],
) -> None:
    account = account_at(base, 1.0)
    write_exports(base, tmp_path / "c", ["json"], costs=account.record())
    rows = [" ".join(line.split()) for line in good(compare("c", "c")).splitlines()]
    total = f"{account.total / 1e6:.4g}"
    assert f"energy (µJ) {total} {total} 1.000" in rows
    assert f"energy-delay product (J·s) {account.edp / 1e12:.4g} " in "\n".join(rows)
    assert "area (mm²) 0.00105 0.00105 1.000" in rows
    assert "energy by component (µJ)" in rows
    assert "array.mac 724.4 724.4 1.000" in rows


def test_json(compare: Call, base: NetworkResult, other: NetworkResult) -> None:
    record = json.loads(good(compare("a.json", "b", "--json")))
    assert record == {
        **compare_results([base, other]).record(),
        "results": [
            {"label": label, "path": path, "archsim": VERSION, "design_name": name,
             "network": "alexnet", "seed": 0, "technology": ""}
            for label, path, name in (("A", "a.json", "edge-16"), ("B", "b", "systolic-32x16"))
        ],
    }  # fmt: skip


def test_csv(compare: Call, base: NetworkResult, other: NetworkResult, tmp_path: Path) -> None:
    good(compare("a.json", "b", "--csv", "deep/out.csv"))
    file = tmp_path / "deep" / "out.csv"
    read = pd.read_csv(file, keep_default_na=False, na_values={"A": [""], "B": [""], "B/A": [""]})
    frame = compare_results([base, other]).to_frame()
    pd.testing.assert_frame_equal(read, frame, check_exact=True)
    assert f",network,total,cycles,cycles,{base.cycles},{other.cycles}," in file.read_text()
    again = refused(compare("a.json", "b", "--csv", "deep/out.csv"))
    assert again == "deep/out.csv exists; give a name that does not, or say --force"


@pytest.mark.parametrize("width", [50, 60, 80, 100, 160])
def test_tables_fit_the_terminal(base: NetworkResult, other: NetworkResult, width: int) -> None:
    long = tuple(
        replace(layer, name=f"/backbone/stage.1/stage.1.0/branch/{layer.name}/Conv")
        for layer in base.layers
    )
    comparison = compare_results([replace(base, layers=long), other, base])
    console = Console(width=width, force_terminal=True, highlight=False, color_system=None)
    with console.capture() as capture:
        print_comparison(comparison, console, None)
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    assert any(f"{base.cycles:,}" in line for line in lines)
    assert any(line.startswith("no room for: ") for line in lines) == (width < 80)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a.json", "a comparison is of 2 to 26 results, not 1"),
        ("a.json none.json", "none.json cannot be read: No such file or directory"),
        ("a.json .", "result.json cannot be read: No such file or directory"),
        ("a.json b/layers.csv",
         "b/layers.csv is not a JSON file: Expecting value: line 1 column 1 (char 0)"),
        ("a.json b --layers many", "--layers must be a whole number or all, not 'many'"),
        ("a.json b --layers -1", "--layers must not be negative, not -1"),
        ("a.json b --csv a.json", "a.json exists; give a name that does not, or say --force"),
    ],
)  # fmt: skip
def test_it_refuses(compare: Call, words: str, message: str) -> None:
    assert refused(compare(*words.split())) == message


def test_what_is_no_result(compare: Call, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"archsim": "0.1.0", "cycles": 3}')
    assert refused(compare("a.json", "odd.json")) == (
        f"odd.json is not a result that archsim {VERSION} can read: design_name is missing"
    )
