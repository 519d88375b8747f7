"""nextpnr, from the wheels of YoWASP: place, route, and what it reports."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fpga import gowin
from fpga.devices import Target
from fpga.wrapper import UNIT
from rtl.child_process import python_command
from rtl.toolchain import ToolchainError, watch_tool

__all__ = [
    "Placement",
    "SlowestPath",
    "nextpnr_version",
    "pack_bitstream",
    "place_and_route",
    "read_report",
    "require_packer",
    "run_nextpnr",
    "slowest_clock",
    "tools_of",
]

_SCRIPT = """
import importlib, sys
sys.exit(getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(sys.argv[3:]))
"""
"""The wheel's tool, WebAssembly, in a process of its own: it cannot be interrupted in this one."""

_GOWIN_PACK = """
import sys
from apycula.gowin_pack import main
sys.exit(main())
"""
_NEXTPNR = {"ecp5": "nextpnr-ecp5", "ice40": "nextpnr-ice40", "gowin": "nextpnr-himbaechel-gowin"}
_PACKERS = {"ecp5": "run_ecppack", "ice40": "run_icepack"}
"""Functions of nextpnr's wheels; that for Gowin has none, but wants apycula."""

_PHASES = {
    "Info: Packing": "packing",
    "Info: Creating initial": "placing",
    "Info: Routing": "routing",
}
_LOGIC = {"ecp5": "TRELLIS_COMB", "ice40": "ICESTORM_LC"}
"""The place of a look-up table, as nextpnr calls it; on Gowin `fpga.gowin.places` says."""
_WIRES = ("routing", "clk-skew")
"""Steps of a path that are wires, of data or, where it comes at other times, of the clock."""


@dataclass(frozen=True, kw_only=True)
class SlowestPath:
    """From register to register, by the names of nextpnr's cells.

    logic_ns, routing_ns: delays of cells (clock to output and set-up among them) and of wires.
    levels: cells on the way.
    """

    start: str
    end: str
    logic_ns: float
    routing_ns: float
    levels: int

    @property
    def in_unit(self) -> bool:
        """Whether either end is the unit's and not the wrapper's."""
        return any(name.startswith(f"{UNIT}.") for name in (self.start, self.end))

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The clock, and how many places of look-up tables all of it takes, of how many."""

    fmax_hz: float
    path: SlowestPath
    places: int
    places_on_chip: int


def _wheel(family: str) -> str:
    """The wheel of a family; raises `ToolchainError` if it is not installed."""
    wheel = f"yowasp-{_NEXTPNR[family]}"
    if importlib.util.find_spec(wheel.replace("-", "_")) is None:
        raise ToolchainError(f"{wheel} is missing; install it with: pip install 'archsim[fpga]'")
    return wheel


def nextpnr_version(family: str) -> str:
    """Version of the family's wheel. Raises `ToolchainError` if it is not installed."""
    return importlib.metadata.version(_wheel(family))


def tools_of(family: str) -> dict[str, str]:
    """Versions of the wheel and of a packer that is a package of its own, by name.

    Raises `ToolchainError` if the wheel is not installed.
    """
    packer = {"apycula": importlib.util.find_spec("apycula")} if family == "gowin" else {}
    names = [_wheel(family), *(name for name, found in packer.items() if found is not None)]
    return {name: importlib.metadata.version(name) for name in names}


def require_packer(family: str) -> None:
    """Raises `ToolchainError` if what packs a family's bitstreams is not installed."""
    if family == "gowin" and importlib.util.find_spec("apycula") is None:
        raise ToolchainError("apycula is missing; install it with: pip install 'archsim[fpga]'")


def place_and_route(
    target: Target, folder: Path, watch: Callable[[str], object] = lambda phase: None
) -> Placement:
    """Place and route top.json in `folder`, where nextpnr.log and report.json are left.

    watch: called with each phase that begins.  A clock that is missed is no error.
    Raises `ToolchainError`, with nextpnr's reason, if the netlist does not fit or is refused.
    """
    command = [*target.chip.placement, "--json", "top.json", "--report", "report.json"]
    command += ["--freq", f"{target.clock_hz / 1e6:g}", "--seed", str(target.seed)]
    command += ["--timing-allow-fail"]
    if target.family == "ecp5":
        command += ["--lpf-allow-unconstrained"]
    if target.chip.pins:
        command += ["--vopt", "cst=top.cst"]
    run_nextpnr(target.family, command, folder, watch)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return read_report(report, target.family)


def run_nextpnr(
    family: str,
    words: Sequence[str],
    folder: Path,
    watch: Callable[[str], object] = lambda phase: None,
) -> None:
    """Run the family's nextpnr in `folder`, its output in the file nextpnr.log.

    watch: called with each phase that begins.  Raises `ToolchainError`, with nextpnr's reason, if
    it fails.
    """
    function = f"run_{_NEXTPNR[family]}".replace("-", "_")
    _run("nextpnr", _of_wheel(family, function, words), folder, "nextpnr.log", watch)


def pack_bitstream(family: str, words: Sequence[str], folder: Path) -> None:
    """Run the family's packer in `folder`, its output in the file pack.log.

    Raises `ToolchainError`, with the packer's reason, if it is missing or fails.
    """
    require_packer(family)
    if family == "gowin":
        name, command = "gowin_pack", python_command(_GOWIN_PACK, *words)
    else:
        function = _PACKERS[family]
        name, command = function.removeprefix("run_"), _of_wheel(family, function, words)
    _run(name, command, folder, "pack.log", lambda phase: None)


def _of_wheel(family: str, function: str, words: Sequence[str]) -> list[str]:
    module = _wheel(family).replace("-", "_")
    return python_command(_SCRIPT, module, function, *words)


def _run(
    tool: str, command: Sequence[str], folder: Path, log: str, watch: Callable[[str], object]
) -> None:
    with (folder / log).open("w", buffering=1, encoding="utf-8") as file:

        def follow(line: str) -> None:
            print(line, file=file)
            for begins, phase in _PHASES.items():
                if line.startswith(begins):
                    watch(phase)

        code = watch_tool(command, folder, follow)
    if code != 0:
        lines = (folder / log).read_text(encoding="utf-8").splitlines()
        reasons = [line for line in lines if line.startswith("ERROR: ")] or lines[-5:]
        raise ToolchainError(f"{tool} failed ({code}): {' '.join(reasons[:1])}")


def read_report(report: dict[str, Any], family: str) -> Placement:
    """The figures of nextpnr's own report of a design with one clock.

    Raises `ToolchainError` if there is not exactly one clock, or no path between its registers.
    """
    if len(report["fmax"]) != 1:
        paths = len(report["critical_paths"])
        raise ToolchainError(
            f"nextpnr reports {len(report['fmax'])} clocks and {paths} paths, not 1"
        )
    return slowest_clock(report, family)


def slowest_clock(report: dict[str, Any], family: str) -> Placement:
    """The figures of nextpnr's report of a design, of the slowest of its clocks.

    Raises `ToolchainError` if there is no clock, or no path between its registers.
    """
    clocks: dict[str, Any] = report["fmax"]
    clock = min(clocks, key=lambda name: clocks[name]["achieved"], default="")
    edge = f"posedge {clock}"
    inner = [one["path"] for one in report["critical_paths"] if one["from"] == one["to"] == edge]
    if len(inner) != 1:
        raise ToolchainError(f"nextpnr reports {len(inner)} paths of the clock {clock!r}, not 1")
    (path,) = inner
    used, available = _places(report["utilization"], family)
    routing = sum(step["delay"] for step in path if step["type"] in _WIRES)
    slowest = SlowestPath(
        start=path[0]["from"]["cell"],
        end=path[-1]["to"]["cell"],
        logic_ns=round(sum(step["delay"] for step in path) - routing, 3),
        routing_ns=round(routing, 3),
        levels=sum(step["type"] == "logic" for step in path),
    )
    return Placement(
        fmax_hz=round(clocks[clock]["achieved"] * 1e6),
        path=slowest,
        places=used,
        places_on_chip=available,
    )


def _places(utilization: dict[str, Any], family: str) -> tuple[int, int]:
    if family == "gowin":
        return gowin.places(utilization)
    logic = utilization[_LOGIC[family]]
    return logic["used"], logic["available"]
