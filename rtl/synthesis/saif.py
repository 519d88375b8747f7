"""Toggles of every net from a SAIF file, as Verilator writes it at the end of a run.

The switching activity interchange format nests `(INSTANCE name … )`, in each a `(NET …)` of
`(name (T0 …) (T1 …) … (TC toggles))`. T0 and T1 are how long a net was 0 and 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from energy_models.errors import EnergyError, require

__all__ = ["Saif", "parse_saif", "read_saif"]

_PICOSECONDS = {"s": 1e12, "ms": 1e9, "us": 1e6, "ns": 1e3, "ps": 1.0, "fs": 1e-3}

_NAME = r"(?:\\.|[^\s()\\\"])+"
_PART = re.compile(
    rf"(?P<instance>\(\s*INSTANCE\s+(?:\"[^\"]*\"\s+)?(?P<path>{_NAME}))"
    r"|(?P<list>\(\s*(?:NET|PORT)\b)"
    r"|(?P<heading>\(\s*(?:SAIFVERSION|DIRECTION|DESIGN|DATE|VENDOR|PROGRAM_NAME|VERSION|DIVIDER"
    r"|TIMESCALE|DURATION)\b(?P<text>(?:\"[^\"]*\"|[^()\"])*)\))"
    rf"|(?P<net>\(\s*(?P<name>{_NAME})\s*(?P<counts>(?:\(\s*[A-Z][A-Z0-9]\s+\d+\s*\)\s*)+)\))"
    r"|(?P<close>\))"
    r"|(?P<blank>\s+|//[^\n]*)"
)
_COUNT = re.compile(r"\(\s*([A-Z][A-Z0-9])\s+(\d+)\s*\)")


@dataclass(frozen=True, kw_only=True)
class Saif:
    """Toggles by instance ("top.array.pe_0") and net ("psum_o[3]"), over `duration_ps`."""

    duration_ps: float
    toggles: Mapping[str, Mapping[str, int]]

    def per_cycle(self, cycles: int, *, clock: str = "clk") -> dict[str, float]:
        """Mean toggles per net and cycle of every instance's own nets, the clock left out."""
        require(cycles > 0, f"cycles must be positive, not {cycles}")
        found: dict[str, float] = {}
        for path, nets in self.toggles.items():
            counted = [count for name, count in nets.items() if name != clock]
            if counted:
                found[path] = sum(counted) / (len(counted) * cycles)
        return found


def read_saif(path: Path) -> Saif:
    """Read a file. Raises `EnergyError`, with file and line, if it cannot be or is not SAIF."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise EnergyError(f"{path} cannot be read: {reason}") from None
    return parse_saif(text, str(path))


def parse_saif(text: str, where: str = "SAIF") -> Saif:
    """The toggles in a SAIF text. Raises `EnergyError` with `where` and the line of a fault."""
    opening = re.compile(r"(?:\s|//[^\n]*)*\(\s*SAIFILE\b").match(text)
    if opening is None:
        raise EnergyError(f"{where} is not a SAIF file: it does not begin with (SAIFILE")
    scan = _Scan(text, where, opening.end())
    scan.run()
    if scan.duration is None:
        raise EnergyError(f"{where} is not a SAIF file: it states no DURATION")
    return Saif(duration_ps=scan.duration * scan.timescale_ps, toggles=scan.toggles)


class _Scan:
    """One pass over the text; `open` holds an instance's name, or None for other lists."""

    def __init__(self, text: str, where: str, start: int) -> None:
        self.text, self.where, self.position = text, where, start
        self.open: list[str | None] = [None]
        self.toggles: dict[str, dict[str, int]] = {}
        self.duration: float | None = None
        self.timescale_ps = 1.0

    def run(self) -> None:
        while self.position < len(self.text) and self.open:
            match = _PART.match(self.text, self.position)
            if match is None:
                raise self.fault("unexpected text")
            self.take(match)
            self.position = match.end()
        if self.open:
            raise self.fault("the file ends before its parentheses are closed")
        if self.text[self.position :].strip():
            raise self.fault("text behind the last parenthesis")

    def take(self, match: re.Match[str]) -> None:
        if match["instance"]:
            self.open.append(match["path"].replace("\\", ""))
            self.toggles.setdefault(self.path, {})
        elif match["list"]:
            self.open.append(None)
        elif match["close"]:
            self.open.pop()
        elif match["net"]:
            self._net(match)
        elif match["heading"]:
            self._heading(match["heading"], match["text"])

    @property
    def path(self) -> str:
        return ".".join(name for name in self.open if name is not None)

    def _net(self, match: re.Match[str]) -> None:
        counts = dict(_COUNT.findall(match["counts"]))
        if not self.path:
            raise self.fault("a net outside of every instance")
        if "TC" not in counts:
            raise self.fault(f"net {match['name']} has no toggle count TC")
        name = match["name"].replace("\\", "")
        self.toggles[self.path][name] = int(counts["TC"])

    def _heading(self, heading: str, text: str) -> None:
        if "DURATION" in heading:
            if not re.fullmatch(r"\s*\d+(\.\d+)?\s*", text):
                raise self.fault("DURATION is not a number")
            self.duration = float(text)
        elif "TIMESCALE" in heading:
            match = re.fullmatch(r"\s*(\d+)\s*([munpf]?s)\s*", text)
            if match is None:
                raise self.fault("TIMESCALE is not a time")
            self.timescale_ps = int(match[1]) * _PICOSECONDS[match[2]]

    def fault(self, reason: str) -> EnergyError:
        line = self.text.count("\n", 0, self.position) + 1
        return EnergyError(f"{self.where} is not a SAIF file: line {line}: {reason}")
