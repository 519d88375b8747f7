"""RTLIL without nets of no bits, which Verilog cannot say: its `[-1:0]` is two bits."""

import re
from collections.abc import Iterator

__all__ = ["without_empty_nets"]

_EMPTY = re.compile(r"^\s*wire\s+width 0\s.*?(\S+)$")
_MODULE = re.compile(r"^module (\S+)$")
_CELL = re.compile(r"^\s*cell (\S+) \S+$")
_CONNECTED = re.compile(r"^\s*(?:connect|assign) (\S+) ")
_NOTHING = "{  }"


def without_empty_nets(text: str) -> str:
    """Modules in RTLIL without their wires and ports of no bits, and without what drives them.

    A port that goes is left out by every instance in `text` too.  Whatever else reads such a wire
    reads the empty concatenation.
    """
    lines = text.split("\n")
    empty = _empty_names(lines)
    return "\n".join(_kept(lines, empty)) if empty else text


def _empty_names(lines: list[str]) -> dict[str, set[str]]:
    """Names of the wires of no bits, by module."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in lines:
        if (begins := _MODULE.match(line)) is not None:
            module = begins[1]
        elif (wire := _EMPTY.match(line)) is not None:
            found.setdefault(module, set()).add(wire[1])
    return found


def _kept(lines: list[str], empty: dict[str, set[str]]) -> Iterator[str]:
    """The lines that stay; attributes go with the wire that they stand before."""
    attributes: list[str] = []
    names: set[str] = set()
    targets: set[str] = set()  # of `connect`: ports inside a cell, elsewhere wires
    for line in lines:
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if word == "attribute":
            attributes.append(line)
            continue
        if (begins := _MODULE.match(line)) is not None:
            targets = names = empty.get(begins[1], set())
        elif (cell := _CELL.match(line)) is not None:
            targets = empty.get(cell[1], set())
        elif word == "end":
            targets = names
        connected = _CONNECTED.match(line)
        gone = _EMPTY.match(line) or (connected and connected[1] in targets)
        if not gone:
            yield from attributes
            yield _emptied(line, names)
        attributes.clear()


def _emptied(line: str, names: set[str]) -> str:
    """A line whose last word, if it is such a wire, is nothing."""
    head, _, last = line.rpartition(" ")
    return f"{head} {_NOTHING}" if last in names else line
