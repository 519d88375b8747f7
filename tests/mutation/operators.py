"""Small faults, made mechanically from a source text: one edit of one expression a mutant.

The text is edited where Python's own parser says an expression stands, so every other line stays as
it is, and a survivor can be shown as a line and what became of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
SIZES = frozenset(
    ("bits", "cycles", "depth", "initial", "lanes", "latency", "limit", "places", "rows", "columns")
) | {"size", "width", "words"}
"""Arguments that a unit of hardware gets by name, and that are one too many or too few."""

NOT_MUTATED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Global)
SAID_BY_NAME = frozenset({"name", "src", "label", "doc"})
CHECKS = frozenset({"require", "require_whole", "require_positive", "require_within", "cast"})


@dataclass(frozen=True, order=True, kw_only=True)
class Mutant:
    """One edit: the text from `begin` to `end` (bytes of the file) is replaced by `after`.

    module: its dotted name; line: from 1; operator: the kind of fault.
    """

    module: str
    line: int
    begin: int
    end: int
    operator: str
    before: str
    after: str

    def apply(self, text: str) -> str:
        """The file's text with the fault.  Raises `ValueError` if it is not the text it is of."""
        data = text.encode()
        if data[self.begin : self.end].decode() != self.before:
            raise ValueError(f"{self.module}: line {self.line} no longer says {self.before!r}")
        return (data[: self.begin] + self.after.encode() + data[self.end :]).decode()

    @property
    def change(self) -> str:
        """What became of what, on one line."""
        return f"{' '.join(self.before.split())} → {' '.join(self.after.split()) or '(nothing)'}"


class _Text:
    """A source text, and where its nodes stand in it."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = self.at(node.lineno, node.col_offset)
        return begin, self.at(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr | ast.stmt) -> str:
        begin, end = self.span(node)
        return self.data[begin:end].decode()


Edit = tuple[str, int, int, str]
"""Operator, begin, end, what stands there instead."""


def _between(text: _Text, left: ast.expr, right: ast.expr, operator: str, name: str) -> Edit:
    """An infix operator replaced, with the white space and parentheses around it kept."""
    begin, end = text.span(left)[1], text.span(right)[0]
    gap = text.data[begin:end].decode()
    old = gap.strip().strip("()").strip()
    return name, begin, end, gap.replace(old, operator, 1)


def _constant(text: _Text, node: ast.Constant) -> Iterator[Edit]:
    begin, end = text.span(node)
    if isinstance(node.value, bool):
        yield "boolean", begin, end, str(not node.value)
    elif isinstance(node.value, int):
        yield "constant", begin, end, str(node.value + 1)
        if node.value > 0:
            yield "constant", begin, end, str(node.value - 1)


def _unary(text: _Text, node: ast.UnaryOp) -> Iterator[Edit]:
    if isinstance(node.op, (ast.Invert, ast.USub, ast.Not)):
        yield "unary dropped", *text.span(node), f"({text.of(node.operand)})"


def _choice(text: _Text, node: ast.IfExp) -> Iterator[Edit]:
    parts = (text.of(one) for one in (node.orelse, node.test, node.body))
    yield "arms exchanged", *text.span(node), "({} if {} else {})".format(*parts)


def _name_of(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _mux(text: _Text, node: ast.Call) -> Iterator[Edit]:
    select, one, other = (text.of(each) for each in node.args)
    function = text.of(node.func)
    yield "arms exchanged", *text.span(node), f"{function}({select}, {other}, {one})"


def _condition(text: _Text, node: ast.Call) -> Iterator[Edit]:
    """Of `m.If` and `m.Elif`."""
    span, said = text.span(node.args[0]), text.of(node.args[0])
    yield "condition negated", *span, f"(({said}) == 0)"
    yield "condition dropped", *span, "1"


def _signal(text: _Text, node: ast.Call) -> Iterator[Edit]:
    """Narrower, with another value after reset, and kept over one."""
    begin, end = text.span(node)
    given = {keyword.arg for keyword in node.keywords}
    inside = text.of(node)[: -len(")")].rstrip().rstrip(",")
    comma = ", " if node.args or node.keywords else ""
    if "init" not in given:
        yield "init", begin, end, f"{inside}{comma}init=1)"
    if "reset_less" not in given:
        yield "reset_less", begin, end, f"{inside}{comma}reset_less=True)"
    plain = not node.args or isinstance(node.args[0], ast.Call)
    if not plain:
        yield "narrower", *text.span(node.args[0]), f"max(1, ({text.of(node.args[0])}) - 1)"


def _call(text: _Text, node: ast.Call) -> Iterator[Edit]:
    name = _name_of(node)
    if name == "Mux" and len(node.args) == 3:
        yield from _mux(text, node)
    elif name in ("If", "Elif") and isinstance(node.func, ast.Attribute) and node.args:
        yield from _condition(text, node)
    elif name == "Signal":
        yield from _signal(text, node)
    elif name == "signed" and len(node.args) == 1:
        width = text.of(node.args[0])
        yield "unsigned", *text.span(node), f'__import__("amaranth").unsigned({width})'
        yield "narrower", *text.span(node.args[0]), f"max(1, ({width}) - 1)"
    elif name in ("max", "min") and isinstance(node.func, ast.Name) and len(node.args) == 2:
        yield "max and min", *text.span(node.func), {"max": "min", "min": "max"}[name]
    for keyword in node.keywords:
        if keyword.arg in SIZES and not isinstance(keyword.value, ast.Constant):
            said = text.of(keyword.value)
            for change in ("+ 1", "- 1"):
                yield "size", *text.span(keyword.value), f"({said}) {change}"


def _attribute(text: _Text, node: ast.Attribute) -> Iterator[Edit]:
    """`m.d.sync` and `m.d.comb`: a register less or more."""
    inner = node.value
    domain = isinstance(inner, ast.Attribute) and inner.attr == "d"
    if domain and node.attr in ("sync", "comb"):
        _, end = text.span(node)
        other = {"sync": "comb", "comb": "sync"}[node.attr]
        operator = "register dropped" if other == "comb" else "register added"
        yield operator, end - len(node.attr), end, other


def _is_assignment(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _name_of(node) == "eq"


def _assignments(text: _Text, node: ast.AugAssign) -> Iterator[Edit]:
    """Of Amaranth's `m.d.sync += [a.eq(b), …]` one is dropped; Python's `+=` becomes `-=`."""
    listed = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
    if all(_is_assignment(one) for one in listed):
        for one in listed:
            dropped = "()" if one is node.value else "*()"
            yield "assignment dropped", *text.span(one), dropped
    elif isinstance(node.op, ast.Add):
        begin, end = text.span(node.target)[1], text.span(node.value)[0]
        gap = text.data[begin:end].decode()
        yield "arithmetic", begin, end, gap.replace("+=", "-=", 1)


def _slice(text: _Text, node: ast.Slice) -> Iterator[Edit]:
    for bound in (node.lower, node.upper):
        if bound is not None and not isinstance(bound, ast.Constant):
            yield "slice", *text.span(bound), f"({text.of(bound)}) - 1"


def _comparison(text: _Text, node: ast.Compare) -> Iterator[Edit]:
    sides = [node.left, *node.comparators]
    for at, operator in enumerate(node.ops):
        yield _between(text, sides[at], sides[at + 1], COMPARISONS[type(operator)], "comparison")


def _arithmetic(text: _Text, node: ast.BinOp) -> Iterator[Edit]:
    if type(node.op) in ARITHMETIC:
        yield _between(text, node.left, node.right, ARITHMETIC[type(node.op)], "arithmetic")


def _boolean(text: _Text, node: ast.BoolOp) -> Iterator[Edit]:
    other = "or" if isinstance(node.op, ast.And) else "and"
    yield _between(text, node.values[0], node.values[1], other, "boolean")


def _branch(text: _Text, node: ast.If) -> Iterator[Edit]:
    yield "condition negated", *text.span(node.test), f"not ({text.of(node.test)})"


_OPERATORS: dict[type[ast.AST], Callable[[_Text, ast.AST], Iterator[Edit]]] = {
    ast.Constant: _constant,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.Call: _call,
    ast.Attribute: _attribute,
    ast.AugAssign: _assignments,
    ast.Slice: _slice,
    ast.Compare: _comparison,
    ast.BinOp: _arithmetic,
    ast.BoolOp: _boolean,
    ast.If: _branch,
}  # pyright: ignore[reportAssignmentType]


def _nodes(node: ast.AST, line: int) -> Iterator[tuple[ast.AST, int]]:
    """Nodes that are worth a fault, each with the line of its statement."""
    if isinstance(node, NOT_MUTATED):
        return
    if isinstance(node, ast.Call) and _name_of(node) in CHECKS:
        return
    if isinstance(node, ast.stmt):
        line = node.lineno
    yield node, line
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            by_name = isinstance(child, ast.keyword) and child.arg in SAID_BY_NAME
            if isinstance(child, ast.AST) and not by_name:
                yield from _nodes(child, line)


def mutants(module: str, text: str, lines: frozenset[int]) -> list[Mutant]:
    """All mutants of a module's text on the given lines, in the order of the text."""
    where = _Text(text)
    found: set[Mutant] = set()
    for node, statement in _nodes(ast.parse(text), 1):
        make = _OPERATORS.get(type(node))
        if make is None or not {statement, getattr(node, "lineno", statement)} & lines:
            continue
        for operator, begin, end, after in make(where, node):
            before = where.data[begin:end].decode()
            line = where.data[:begin].count(b"\n") + 1
            if after != before:
                found.add(
                    Mutant(
                        module=module, line=line, begin=begin, end=end, operator=operator,
                        before=before, after=after,
                    )
                )  # fmt: skip
    return sorted(found, key=lambda one: (one.begin, one.end, one.operator, one.after))
