"""What a library's cells compute: Liberty expressions, as Python functions and as Verilog.

Liberty writes not as ! or a trailing ', and as *, & or a blank, or as + or |, exclusive or as ^;
not binds closest, then ^, then and, then or. The models have no delays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from energy_models.errors import EnergyError, require
from rtl.synthesis.liberty import Cell, Storage

__all__ = ["bitwise", "names_in", "plain_expression", "verilog_models"]

_TOKEN = re.compile(r"\s*(?:([A-Za-z_][\w\[\]]*)|([01])|(.))")


def plain_expression(text: str) -> str:
    """A Liberty expression with `~ & ^ |`, every operation in parentheses.

    Verilog (on one bit) and Python (on packed bits) read it alike. Constants become `1'b0` and
    `1'b1`. Raises `EnergyError` if the text is no such expression.
    """
    tokens = [match.group().strip() for match in _TOKEN.finditer(text.strip())]
    parser = _Parser(tokens, text)
    found = parser.either()
    require(not parser.rest, f"Liberty function {text!r}: unexpected {''.join(parser.rest)!r}")
    return found


class _Parser:
    """Recursive descent over the tokens of one expression; `rest` is what is not yet read."""

    def __init__(self, tokens: list[str], text: str) -> None:
        self.rest = tokens
        self.text = text

    def either(self) -> str:
        parts = [self.both()]
        while self.rest and self.rest[0] in "+|":
            self.rest = self.rest[1:]
            parts.append(self.both())
        return _joined("|", parts)

    def both(self) -> str:
        parts = [self.differing()]
        while self.rest and self.rest[0] not in "+|)^'":
            if self.rest[0] in "*&":
                self.rest = self.rest[1:]
            parts.append(self.differing())
        return _joined("&", parts)

    def differing(self) -> str:
        parts = [self.factor()]
        while self.rest and self.rest[0] == "^":
            self.rest = self.rest[1:]
            parts.append(self.factor())
        return _joined("^", parts)

    def factor(self) -> str:
        if not self.rest:
            raise EnergyError(f"Liberty function {self.text!r} ends too early")
        token, self.rest = self.rest[0], self.rest[1:]
        if token == "!":
            found = f"(~{self.factor()})"
        elif token == "(":
            found = self.either()
            if not self.rest or self.rest[0] != ")":
                raise EnergyError(f"Liberty function {self.text!r}: a parenthesis is not closed")
            self.rest = self.rest[1:]
        elif token in ("0", "1"):
            found = f"1'b{token}"
        elif re.fullmatch(r"[A-Za-z_][\w\[\]]*", token):
            found = token
        else:
            raise EnergyError(f"Liberty function {self.text!r}: unexpected {token!r}")
        while self.rest and self.rest[0] == "'":
            found, self.rest = f"(~{found})", self.rest[1:]
        return found


def _joined(operator: str, parts: list[str]) -> str:
    return f"({f' {operator} '.join(parts)})" if len(parts) > 1 else parts[0]


def names_in(text: str) -> tuple[str, ...]:
    """The pins and state variables of a Liberty expression, in order of appearance."""
    return tuple(dict.fromkeys(re.findall(r"[A-Za-z_][\w\[\]]*", text)))


@cache
def bitwise(text: str) -> Callable[..., Any]:
    """A Liberty expression as a function of its `names_in`, bit by bit on unsigned arrays."""
    plain = plain_expression(text)
    names = names_in(text)
    require(
        all(name.isidentifier() for name in names),
        f"Liberty function {text!r}: a name of it is no identifier",
    )
    renamed = re.sub(r"[A-Za-z_]\w*", lambda match: f"v{names.index(match[0])}", plain)
    if "1'b" in plain:
        raise EnergyError(f"Liberty function {text!r}: constants are tie cells, not logic")
    arguments = ", ".join(f"v{number}" for number in range(len(names)))
    # What is evaluated holds only the names v0, v1, …, the four operators, and parentheses.
    return eval(f"lambda {arguments}: {renamed}", {"__builtins__": {}})


def verilog_models(cells: Iterable[Cell]) -> str:
    """One Verilog module for each cell: its function, with zero delay."""
    return "\n".join(_verilog(cell) for cell in cells)


def _verilog(cell: Cell) -> str:
    ports = (*cell.inputs, *cell.outputs)
    declared = ", ".join(f"{pin.direction} {pin.name}" for pin in ports)
    body = [] if cell.storage is None else _storage_lines(cell.storage)
    for pin in cell.outputs:
        require(
            pin.function is not None and pin.three_state is None,
            f"cell {cell.name} has no plain function at {pin.name}: it cannot be simulated",
        )
        assert pin.function is not None
        body.append(f"assign {pin.name} = {plain_expression(pin.function)};")
    lines = "\n".join(f"  {line}" for line in body)
    return f"module {cell.name}({declared});\n{lines}\nendmodule\n"


def _storage_lines(storage: Storage) -> list[str]:
    state, inverse = storage.variables
    clock, data = plain_expression(storage.clock), plain_expression(storage.data)
    asynchronous = [
        (plain_expression(when), value)
        for when, value in ((storage.clear, 0), (storage.preset, 1))
        if when is not None
    ]
    lines = [f"reg {state};", f"wire {inverse} = ~{state};", f"wire clock_ = {clock};"]
    edges = []
    for number, (when, _) in enumerate(asynchronous):
        lines.append(f"wire force_{number}_ = {when};")
        edges.append(f" or posedge force_{number}_")
    steps = "".join(
        f"if (force_{number}_) {state} <= 1'b{value}; else "
        for number, (_, value) in enumerate(asynchronous)
    )
    if storage.kind == "ff":
        lines.append(f"always @(posedge clock_{''.join(edges)}) {steps}{state} <= {data};")
    else:
        lines.append(f"always @* {steps}if (clock_) {state} = {data};".replace("<=", "="))
    return lines
