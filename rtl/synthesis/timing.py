"""The slowest path of a netlist, by OpenSTA: gates and their loads, no wires.

The clock is ideal. Ports have no delay outside, the reset is left out, and memories have no access
time: what is timed is the logic between flip-flops, memories and ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rtl.toolchain import ToolchainError, require, run_tool

__all__ = ["CriticalPath", "Segment", "critical_path"]

_PERIOD_NS = 100.0
"""Of the clock under which paths are looked for. OpenSTA counts in single precision: a long period
would hide the differences between paths. A path that is longer is found as well."""

_SCRIPT = """\
read_liberty library.lib
read_liberty memories.lib
read_verilog timed.v
link_design {top}
set_cmd_units -time ns
create_clock -name clk -period {period} [get_ports clk]
set_input_delay 0 -clock clk [all_inputs]
set_output_delay 0 -clock clk [all_outputs]
set_false_path -from [get_ports rst]
report_checks -path_delay max -format full_clock -digits 6 -no_line_splits
"""

_MEMORY = re.compile(r"^  (held_)?sram #\((.*?)\) (\S+) \(", re.MULTILINE | re.DOTALL)
_Size = tuple[int, int, int, str]
_SIZE = re.compile(r"\.(\w+)\(32'd(\d+)\)")
_POINT = re.compile(r"^ *(-?[\d.]+) +-?[\d.]+ [v^] (\S+) \((\S+)\)$", re.MULTILINE)
_ARRIVAL = re.compile(r"^ *(-?[\d.]+) +data arrival time$", re.MULTILINE)
_SETUP = re.compile(r"^ *(-?[\d.]+) +-?[\d.]+ +library setup time$", re.MULTILINE)

_LIBRARY = """\
library (memories) {
  delay_model : table_lookup;
  time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1uA"; leakage_power_unit : "1nW";
  pulling_resistance_unit : "1kohm"; capacitive_load_unit (1,pf);
  nom_process : 1; nom_voltage : 1; nom_temperature : 25;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  slew_lower_threshold_pct_rise : 20; slew_lower_threshold_pct_fall : 20;
  slew_upper_threshold_pct_rise : 80; slew_upper_threshold_pct_fall : 80;
"""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Part of a path in one instance: its place, how many cells, and their delay."""

    instance: str
    cells: int
    delay_ns: float


@dataclass(frozen=True, kw_only=True)
class CriticalPath:
    """The slowest path. period_ns: the shortest clock period at which it holds.

    start, end: a pin of a cell or a port, slashes between levels. setup_ns: at its end.
    """

    period_ns: float
    setup_ns: float
    start: str
    end: str
    segments: tuple[Segment, ...]

    @property
    def clock_hz(self) -> float:
        """The fastest clock, if nothing but gates took time."""
        return 1e9 / self.period_ns

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **{name: getattr(self, name) for name in ("period_ns", "setup_ns", "start", "end")},
            "segments": [vars(segment) for segment in self.segments],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> CriticalPath:
        """The inverse of `record`."""
        segments = tuple(Segment(**segment) for segment in record["segments"])
        return cls(**{**record, "segments": segments})


def critical_path(netlist: str, folder: Path, *, top: str = "top") -> CriticalPath | None:
    """The slowest path of structural Verilog, whose Liberty file is `library.lib` in `folder`.

    None if no path ends at a flip-flop, memory or port. Raises `ToolchainError` if OpenSTA is
    missing or fails.
    """
    require("sta")
    timed, memories = _without_parameters(netlist)
    (folder / "timed.v").write_text(timed, encoding="utf-8")
    (folder / "memories.lib").write_text(_memory_library(memories), encoding="utf-8")
    script = _SCRIPT.format(top=top, period=_PERIOD_NS)
    (folder / "timing.tcl").write_text(script, encoding="utf-8")
    report = run_tool(["sta", "-no_splash", "-exit", "timing.tcl"], cwd=folder)
    errors = [line for line in report.splitlines() if line.startswith("Error: ")]
    if errors:
        raise ToolchainError(f"OpenSTA does not read the netlist: {errors[0]}")
    if "No paths found" in report:
        return None
    return _parsed(report)


def _without_parameters(netlist: str) -> tuple[str, set[_Size]]:
    """The netlist with one module name a memory size, as OpenSTA reads no parameters.

    Also returns the sizes: bits, words, bits of an address, and "held_" where the read port has an
    enable.
    """
    sizes: set[_Size] = set()

    def renamed(match: re.Match[str]) -> str:
        parameters = {name: int(value) for name, value in _SIZE.findall(match[2])}
        bits, depth, held = parameters["BITS"], parameters["DEPTH"], match[1] or ""
        sizes.add((bits, depth, parameters["ADDRESS_BITS"], held))
        return f"  {_memory_name(bits, depth, held)} {match[3]} ("

    return _MEMORY.sub(renamed, netlist), sizes


def _memory_name(bits: int, depth: int, held: str) -> str:
    return f"{held}sram_{bits}x{depth}"


def _memory_library(sizes: Iterable[_Size]) -> str:
    """Liberty of memories that take no time."""
    cells = [_memory_cell(*size) for size in sorted(sizes)]
    return "".join([_LIBRARY, *cells, "}\n"])


def _memory_cell(bits: int, depth: int, address: int, held: str) -> str:
    name = _memory_name(bits, depth, held)
    zero = '(scalar) { values ("0"); }'
    setup = (
        'timing () { related_pin : "clk"; timing_type : setup_rising; '
        f"rise_constraint {zero} fall_constraint {zero} }}"
    )
    access = (
        'timing () { related_pin : "clk"; timing_type : rising_edge; '
        f"cell_rise {zero} cell_fall {zero} rise_transition {zero} fall_transition {zero} }}"
    )
    types = "".join(
        f"  type ({name}_{width}) {{ base_type : array; data_type : bit; bit_width : {width}; "
        f"bit_from : {width - 1}; bit_to : 0; }}\n"
        for width in sorted({bits, address})
    )
    pins = [
        "    pin (clk) { direction : input; clock : true; capacitance : 0; }",
        f"    pin (write) {{ direction : input; capacitance : 0; {setup} }}",
        *([f"    pin (read) {{ direction : input; capacitance : 0; {setup} }}"] if held else []),
        f"    bus (read_data) {{ bus_type : {name}_{bits}; direction : output; {access} }}",
    ]
    for pin, width in (("write_data", bits), ("write_address", address), ("read_address", address)):
        pins.append(
            f"    bus ({pin}) {{ bus_type : {name}_{width}; direction : input; capacitance : 0; "
            f"{setup} }}"
        )
    body = "\n".join(pins)
    return f"{types}  cell ({name}) {{ area : 0;\n{body}\n  }}\n"


def _parsed(report: str) -> CriticalPath:
    """OpenSTA's report of one path."""
    pins = [
        (float(delay), pin.replace("\\", ""), kind) for delay, pin, kind in _POINT.findall(report)
    ]
    arrival, setup = _ARRIVAL.search(report), _SETUP.search(report)
    if len(pins) < 2 or arrival is None:
        raise ToolchainError(f"OpenSTA's report is not understood: {report[-500:]}")
    setup_ns = -float(setup[1]) if setup is not None else 0.0
    inner = [(delay, pin.rpartition("/")[0]) for delay, pin, kind in pins[:-1] if kind != "in"]
    if pins[0][2] != "in":
        inner = inner[1:]  # the clock pin, where a path out of a flip-flop starts
    segments: list[Segment] = []
    for instance, group in groupby(inner, key=lambda one: one[1].rpartition("/")[0]):
        delays = [delay for delay, _ in group]
        segments.append(Segment(instance=instance, cells=len(delays), delay_ns=sum(delays)))
    return CriticalPath(
        period_ns=float(arrival[1]) + setup_ns,
        setup_ns=setup_ns,
        start=pins[0][1],
        end=pins[-1][1],
        segments=tuple(segments),
    )
