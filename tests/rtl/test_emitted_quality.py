"""What is emitted has no nets of no bits, no latches, loops or second drivers: for three tools.

Verilator with all its warnings, yosys, and where it is installed Icarus.
"""

import re
import shutil
from collections.abc import Collection
from typing import Any

import pytest

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of

from archsim.files import scratch_folder
from archsim.machine.registry import load_design, registered_names, with_settings
from rtl.core.delay import Skew
from rtl.emit import emit
from rtl.empty_nets import without_empty_nets
from rtl.hierarchy import place
from rtl.registry import core_of
from rtl.to_verilog import rtlil_to_verilog
from rtl.toolchain import EMITTER_WARNINGS, lint, run_tool, run_yosys

_EMPTY = re.compile(r"\[-1:0\]")
_FINDING = re.compile(r"\s*(?:\S+:\d+: )?(?:Warning|ERROR): |Latch inferred")

_PART = ["rows=40", "columns=20"]
PARTS = {
    "cloud-128": _PART,
    "tpu-v1": _PART,
    "scnn": ["grid_rows=2", "grid_columns=2"],
    "scnn-4pe": [
        *("grid_rows=1", "grid_columns=1", "weight_lanes=8", "ifmap_lanes=8", "banks=128"),
    ],
}
"""Of designs for all of which Verilator takes too long, or too much memory: of SCNN's published PEs
0.65 GB each."""

VARIANTS = [
    ("edge-16", ["rows=1", "columns=1"]),
    ("edge-16", ["rows=17", "columns=2"]),
    ("edge-16", ["rows=18", "columns=3", "dataflow=output_stationary"]),
    ("edge-16", ["rows=33", "columns=2", "dataflow=input_stationary"]),
    ("volta", ["octets=1", "rows=2", "group_columns=1", "length=1"]),
    ("volta", ["octets=1", "rows=4", "operand=int8", "accumulator=int32"]),
    ("vsq-baseline", ["lanes=1", "vector=1"]),
    ("scnn", ["grid_rows=1", "grid_columns=1", "weight_lanes=1", "ifmap_lanes=1", "banks=1"]),
    ("scnn-4pe", ["grid_rows=1", "grid_columns=2", "weight_lanes=3", "ifmap_lanes=1", "banks=2"]),
    ("sparsetrain", ["pes=1", "lanes=2", "look_ahead=1", "look_aside=0", "rows=1", "columns=1"]),
]
"""Least sizes, and arrays of several bands with a short last one."""


def findings(verilog: str, ignore: Collection[str] = ()) -> list[str]:
    """What the tools say against it."""
    found = [*yosys_findings(verilog), *lint(verilog, ignore=ignore)]
    if shutil.which("iverilog") is not None:
        with scratch_folder("archsim-icarus") as folder:
            (folder / "top.v").write_text(verilog)
            said = run_tool(["iverilog", "-g2005", "-Wall", "-o", "top", "top.v"], cwd=folder)
            found += [line for line in said.splitlines() if "timescale" not in line]
    return found


def yosys_findings(verilog: str) -> list[str]:
    """Nets of no bits, latches as `proc` infers them, and what `check` finds; module by module."""
    found = [match.group() for match in _EMPTY.finditer(verilog)]
    latch = "t:$dlatch t:$adlatch t:$dlatchsr t:$sr"
    with scratch_folder("archsim-latches") as folder:
        (folder / "top.v").write_text(verilog)
        passes = ["read_verilog top.v", "hierarchy -check -top top", "proc", "check -assert"]

        def watch(line: str) -> None:
            if _FINDING.match(line):
                found.append(line.strip())

        run_yosys([*passes, f"select -assert-none {latch}"], folder, watch)
    return found


class Thin(wiring.Component):
    """o = i + 1, beside a port and a register of no bits."""

    i: Signal
    o: Signal
    nothing: Signal
    none: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(3), "o": Out(3), "nothing": Out(range(1)), "none": In(0)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        inner = Signal(range(1), name="inner")
        m.d.sync += inner.eq(inner + self.i)
        m.d.comb += [self.o.eq(self.i + 1), self.nothing.eq(inner + self.none)]
        return m


class AroundThin(wiring.Component):
    """Thin twice, the second behind the first."""

    i: Signal
    o: Signal
    nothing: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(3), "o": Out(3), "nothing": Out(0)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        value: Any = self.i
        for number in range(2):
            thin = place(m, f"thin_{number}", Thin)
            m.d.comb += [thin.i.eq(value), thin.none.eq(self.nothing)]
            value = thin.o
        m.d.comb += [self.o.eq(value), self.nothing.eq(Cat())]
        return m


def test_nets_of_no_bits_leave() -> None:
    """Wires, ports, what drives them and the connections of instances; nothing else changes."""
    whole = rtlil.convert(AroundThin(), name="top", emit_src=False)
    assert "width 0" in whole
    assert "width 0" not in without_empty_nets(whole)
    verilog = verilog_of(AroundThin())
    assert findings(verilog, EMITTER_WARNINGS) == []
    assert not re.search(r"\b(nothing|none|inner)\b", verilog)
    assert verilog.count(".i(") == verilog.count(".o(") == 2  # instances


def test_a_design_without_them_stays() -> None:
    text = rtlil.convert(Skew(lanes=3, bits=2), name="top", emit_src=False)
    assert without_empty_nets(text) == text


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize(("lanes", "bits"), [(1, 3), (2, 1), (5, 2)])
def test_a_written_skew_is_the_converted_one(lanes: int, bits: int, falling: bool) -> None:
    """By induction, for all inputs, resets included."""
    shape: dict[str, Any] = {"lanes": lanes, "bits": bits, "falling": falling}
    written = Skew.verilog(**shape)
    text = rtlil.convert(Skew(**shape), name="converted", emit_src=False)
    text = text.replace("attribute \\top 1\n", "")
    clock = "input clk, input rst, " if "\\rst" in text else ""
    ports = f"{clock}input [{lanes * bits - 1}:0] i, output [{lanes * bits - 1}:0] o"
    given = ".clk(clk), .rst(rst), " if clock else ""
    gold = f"module gold({ports}); converted one({given}.i(i), .o(o)); endmodule\n"
    gate = f"module gate({ports}); {written.name} one({given}.i(i), .o(o)); endmodule\n"
    said: list[str] = []
    with scratch_folder("archsim-skew") as folder:
        source = rtlil_to_verilog(text) + written.source + gold + gate
        (folder / "both.v").write_text(source)
        passes = ["read_verilog both.v", "hierarchy", "proc", "flatten"]
        passes += ["miter -equiv -flatten -make_assert gold gate miter"]
        passes += [f"sat -tempinduct -maxsteps {lanes + 1} -prove-asserts -verify miter"]
        run_yosys(passes, folder, said.append)
    assert any("Induction step proven: SUCCESS!" in line for line in said)


def test_a_design_that_had_them() -> None:
    """Vectors of one row: the counter of a vector's rows has no bits."""
    small = with_settings(load_design("vsq-16"), ["lanes=4", "vector=4"])
    assert findings(emit(small).verilog) == []
    assert "width 0" in rtlil.convert(core_of(small), name="top", emit_src=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", registered_names())
def test_shipped_designs(name: str) -> None:
    """Verilator sees every PE: of the largest designs of a part, and yosys all."""
    design = load_design(name)
    if name not in PARTS:
        assert findings(emit(design).verilog) == []
        return
    assert yosys_findings(emit(design).verilog) == []
    assert findings(emit(with_settings(design, PARTS[name])).verilog) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_variants(name: str, settings: list[str]) -> None:
    verilog = emit(with_settings(load_design(name), settings)).verilog
    assert findings(verilog) == []
