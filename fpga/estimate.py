"""The clock of a mapped netlist before it is placed: cells' delays as published, wires guessed.

Cells: nextpnr's own figures for ECP5 of speed 6, iCE40 and Gowin GW1N of C6/I5, rounded (projects
Trellis, IceStorm, Apicula; Apicula has none of multipliers, whose delay is guessed).  A wire takes
`WIRE_NS`, more with every doubling of its ends; carries go from cell to cell.  Placed clocks lie
around the estimate, by how much says `benchmarks/fpga_quality.md`: it ranks designs and names
paths, and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Estimate", "EstimatedPath", "estimate_clock"]

WIRE_NS = {"ecp5": 0.75, "ice40": 1.0, "gowin": 1.0}
DOUBLING_NS = {"ecp5": 0.10, "ice40": 0.15, "gowin": 0.15}
"""Of each doubling of a net's ends."""


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """inputs, outputs: prefixes of the pins; delay_ns: through it, of a cell with a clock from its
    edge to the outputs; setup_ns: before it."""

    delay_ns: float
    setup_ns: float = 0.0
    clocked: bool = False


_LUT, _CARRY, _CARRY_IN, _CARRY_STEP = 0.24, 0.45, 0.44, 0.07
_CELLS: Mapping[str, _Cell] = {
    "LUT4": _Cell(delay_ns=_LUT),
    "PFUMX": _Cell(delay_ns=0.21),
    "L6MUX21": _Cell(delay_ns=0.21),
    "CCU2C": _Cell(delay_ns=_CARRY),
    "TRELLIS_FF": _Cell(delay_ns=0.52, setup_ns=0.1, clocked=True),
    "DP16KD": _Cell(delay_ns=5.73, setup_ns=0.2, clocked=True),
    "PDPW16KD": _Cell(delay_ns=5.73, setup_ns=0.2, clocked=True),
    "SB_LUT4": _Cell(delay_ns=0.45),
    "SB_CARRY": _Cell(delay_ns=0.26),
    "SB_RAM40_4K": _Cell(delay_ns=2.15, setup_ns=0.2, clocked=True),
    **{f"LUT{inputs}": _Cell(delay_ns=0.9) for inputs in (1, 2, 3)},
    **{f"MULT{bits}X{bits}": _Cell(delay_ns=4.0) for bits in (9, 18, 36)},
    **{f"MUX2_LUT{inputs}": _Cell(delay_ns=0.5) for inputs in (5, 6, 7, 8)},
    "ALU": _Cell(delay_ns=1.0),
    **dict.fromkeys(("SP", "SPX9", "SDPB", "SDPX9B", "DPB", "DPX9B"),
                    _Cell(delay_ns=3.5, setup_ns=0.1, clocked=True)),
}  # fmt: skip
_MULTIPLIER = {
    (False, False): (3.93, 0.0, False),
    (True, False): (3.86, 0.084, True),
    (False, True): (0.735, 3.49, True),
    (True, True): (0.735, 0.084, True),
}
"""By registers before and behind: delay, set-up, whether the outputs start at the clock."""


@dataclass(frozen=True, kw_only=True)
class EstimatedPath:
    """From the cell where it begins to that where it ends, by their names in the netlist."""

    start: str
    end: str
    logic_ns: float
    wire_ns: float
    levels: int

    @property
    def ns(self) -> float:
        """Of all."""
        return self.logic_ns + self.wire_ns


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """ends: the slowest path into every cell that a clock ends it at, the slowest first."""

    ends: tuple[EstimatedPath, ...]

    @property
    def path(self) -> EstimatedPath | None:
        """The slowest; None of a netlist without registers."""
        return self.ends[0] if self.ends else None

    @property
    def fmax_hz(self) -> float:
        """The clock; 0 of a netlist without registers."""
        return 1e9 / self.path.ns if self.path is not None else 0.0


@dataclass(frozen=True)
class _Arrival:
    ns: float
    wire_ns: float
    start: str
    levels: int


_GOWIN = {"LUT4": "LUT3", "RAM16SDP4": "TRELLIS_DPR16X4"}
"""What Gowin's cells are counted as: LUT4 is a cell of ECP5, too."""


def _kind(cell: Mapping[str, Any]) -> _Cell | None:
    name: str = cell["type"]
    if name == "MULT18X18D":
        own = cell["parameters"]
        registers = (_on(own, "REG_INPUTA_CLK"), _on(own, "REG_OUTPUT_CLK"))
        delay, setup, clocked = _MULTIPLIER[registers]
        return _Cell(delay_ns=delay, setup_ns=setup, clocked=clocked)
    if name == "SB_MAC16":
        return _Cell(delay_ns=6.0)
    if name.startswith("DFF"):
        return _Cell(delay_ns=0.46, setup_ns=0.4, clocked=True)
    if name.startswith("SB_DFF"):
        return _Cell(delay_ns=0.54, setup_ns=0.2, clocked=True)
    if name.startswith("SB_RAM40_4K"):
        return _CELLS["SB_RAM40_4K"]
    return _CELLS.get(name)


def _on(parameters: Mapping[str, str], name: str) -> bool:
    return parameters.get(name, "NONE") != "NONE"


def estimate_clock(module: Mapping[str, Any], family: str) -> Estimate:
    """Of a flat module as yosys writes it in JSON, `family` being ecp5, ice40 or gowin."""
    if family == "gowin":
        cells = module["cells"].items()
        named = {n: {**one, "type": _GOWIN.get(one["type"], one["type"])} for n, one in cells}
        module = {**module, "cells": named}
    return _Netlist(module, family).estimate()


class _Netlist:
    def __init__(self, module: Mapping[str, Any], family: str) -> None:
        self.family = family
        self.cells: dict[str, Any] = module["cells"]
        self.driver: dict[int, tuple[str, str]] = {}
        self.ends: dict[int, int] = defaultdict(int)
        for name, cell in self.cells.items():
            for pin, way, bits in _pins(cell):
                for bit in bits:
                    if way == "output":
                        self.driver[bit] = name, pin
                    else:
                        self.ends[bit] += 1
        self.arrivals: dict[int, _Arrival | None] = {}

    def estimate(self) -> Estimate:
        found: list[EstimatedPath] = []
        for name, cell in self.cells.items():
            kind = _kind(cell)
            write = cell["type"] == "TRELLIS_DPR16X4"
            if not write and (kind is None or not (kind.clocked or kind.setup_ns)):
                continue
            setup = 0.1 if kind is None else kind.setup_ns
            worst: EstimatedPath | None = None
            for pin, way, bits in _pins(cell):
                if way == "output" or _is_clock(pin) or (write and pin == "RAD"):
                    continue
                for bit in bits:
                    path = self._into(name, pin, bit, setup)
                    if path is not None and (worst is None or path.ns > worst.ns):
                        worst = path
            if worst is not None:
                found.append(worst)
        return Estimate(ends=tuple(sorted(found, key=lambda path: -path.ns)))

    def _into(self, name: str, pin: str, bit: int, setup: float) -> EstimatedPath | None:
        arrival = self._at(bit)
        if arrival is None:
            return None
        wire = self._wire(bit, pin)
        if pin == "DI" and self.ends[bit] == 1:  # of the look-up table beside it
            wire = 0.0
        return EstimatedPath(
            start=arrival.start,
            end=name,
            logic_ns=arrival.ns + setup - arrival.wire_ns,
            wire_ns=arrival.wire_ns + wire,
            levels=arrival.levels,
        )

    def _wire(self, bit: int, pin: str) -> float:
        if pin in ("CIN", "CI"):
            return 0.0
        more = max(self.ends[bit], 1).bit_length() - 1
        return WIRE_NS[self.family] + DOUBLING_NS[self.family] * more

    def _at(self, bit: int) -> _Arrival | None:
        """When a net has settled; None if no register is before it.  Without recursion."""
        waiting = [bit]
        while waiting:
            top = waiting[-1]
            if top in self.arrivals:
                waiting.pop()
                continue
            needs = [b for b in self._before(top) if b not in self.arrivals]
            if needs:
                waiting.extend(needs)
                continue
            self.arrivals[top] = self._settled(top)
            waiting.pop()
        return self.arrivals[bit]

    def _before(self, bit: int) -> Iterator[int]:
        """Nets that a net hangs on within a cycle."""
        if bit not in self.driver:
            return
        name, _ = self.driver[bit]
        cell = self.cells[name]
        kind = _kind(cell)
        if kind is not None and kind.clocked:
            return
        for pin, way, bits in _pins(cell):
            if way != "output" and _through(cell, pin):
                yield from bits

    def _settled(self, bit: int) -> _Arrival | None:
        if bit not in self.driver:
            return None
        name, out = self.driver[bit]
        cell = self.cells[name]
        kind = _kind(cell)
        if kind is not None and kind.clocked:
            return _Arrival(kind.delay_ns, 0.0, name, 0)
        best: _Arrival | None = None
        if cell["type"] == "TRELLIS_DPR16X4":
            best = _Arrival(0.8, 0.0, name, 0)
        for pin, way, bits in _pins(cell):
            if way == "output" or not _through(cell, pin):
                continue
            delay = _delay(cell, kind, pin, out)
            for one in bits:
                before = self.arrivals[one]
                if before is None:
                    continue
                wire = self._wire(one, pin)
                ns = before.ns + wire + delay
                if best is None or ns > best.ns:
                    step = pin not in ("CIN", "CI")
                    best = _Arrival(ns, before.wire_ns + wire, before.start, before.levels + step)
        return best


def _delay(cell: Mapping[str, Any], kind: _Cell | None, pin: str, out: str) -> float:
    if cell["type"] in ("CCU2C", "ALU") and pin == "CIN":
        return _CARRY_STEP if out == "COUT" else _CARRY_IN
    return _LUT if kind is None else kind.delay_ns


def _through(cell: Mapping[str, Any], pin: str) -> bool:
    """Whether a pin of a cell without a clock is on a way through it."""
    return pin == "RAD" if cell["type"] == "TRELLIS_DPR16X4" else not _is_clock(pin)


def _is_clock(pin: str) -> bool:
    return "CLK" in pin or pin in ("C", "WCK")


def _pins(cell: Mapping[str, Any]) -> Iterator[tuple[str, str, list[int]]]:
    """Name, direction and nets of each pin; constants are left out."""
    ways: Mapping[str, str] = cell["port_directions"]
    for pin, bits in cell["connections"].items():
        yield pin, ways[pin], [bit for bit in bits if not isinstance(bit, str)]
