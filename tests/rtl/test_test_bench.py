"""The bench in plain Verilog: it passes, and finds a fault, where no archsim is."""

import re
from pathlib import Path

import pytest
from timed_verilog import bench_says

from archsim.machine.registry import load_design, with_settings
from rtl.emit import emit
from rtl.test_bench import test_bench
from rtl.toolchain import lint

SMALL = [f"{name}_memory.capacity_bytes=1024" for name in ("ifmap", "weight", "accumulator")]
KINDS = {
    "systolic": ("edge-16", ["rows=2", "columns=3", "bias_words=16", *SMALL]),
    "vsq": ("vsq-16", ["lanes=2", "vector=4", "bias_words=16"]),
    "sparsetrain": ("sparsetrain", ["pes=2", "lanes=4", "rows=4", "columns=4", "depth=16"]),
}


def _written(kind: str, folder: Path) -> Path:
    design = with_settings(load_design(KINDS[kind][0]), KINDS[kind][1])
    (folder / "core.v").write_text(emit(design, top="core").verilog)
    for name, text in test_bench(design, "core", "core").items():
        (folder / name).write_text(text)
    return folder


def _said(folder: Path, *options: str) -> str:
    return bench_says(folder, "core_tb", ["core.v", "core_tb.v"], "-Wno-style", *options)


def test_its_text(tmp_path: Path) -> None:
    """Clean Verilog with the core's own ports, and a line a word."""
    folder = _written("systolic", tmp_path)
    text = (folder / "core_tb.v").read_text()
    design = with_settings(load_design("edge-16"), KINDS["systolic"][1])
    for port in design.machine_model().ports:
        lines = (folder / f"core_{port.name}.hex").read_text().split()
        (last,) = re.findall(rf"{port.name}_words \[0:(\d+)\]", text)
        assert len(lines) == int(last) + 1
        assert {len(line) for line in lines} <= {-(-port.bits // 4), 1}
    found = lint(text + (folder / "core.v").read_text(), "core_tb", ignore=())
    assert [one for one in found if "core_tb" in one and "Error" in one] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_passes_and_finds_faults(kind: str, tmp_path: Path) -> None:
    folder = _written(kind, tmp_path)
    assert re.fullmatch(r"PASS: \d+ words in \d+ cycles", _said(folder).splitlines()[0])
    path = folder / "core_ofmap.hex"
    words = path.read_text().split()
    words[-1] = f"{int(words[-1], 16) ^ 1:x}"
    path.write_text("\n".join([*words, ""]))
    assert "FAIL: 1 errors" in _said(folder, "-GSTALL=3")
