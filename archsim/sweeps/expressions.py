"""Predicates over fields: `rows * columns <= 4096 and dataflow != "input_stationary"`.

Python's own grammar, read by `ast`, of which only what follows is taken; nothing is ever executed:
names (dots reach into records), numbers, texts, `true` and `false`, `and or not`, comparisons,
`in (…)`, `+ - * / // %`, `min`, `max`, `abs`.  Numbers are 64-bit floats, exact for whole numbers
to 2^53; dividing by zero gives what IEEE 754 says.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, nearest, require, shorten

LONGEST = 1000
"""Characters of a predicate."""

DEEPEST = 50
"""Brackets and signs within one another."""

Column = npt.NDArray[Any]

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mult": np.multiply,
    "Div": np.divide,
    "FloorDiv": np.floor_divide,
    "Mod": np.mod,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": np.equal,
    "NotEq": np.not_equal,
    "Lt": np.less,
    "LtE": np.less_equal,
    "Gt": np.greater,
    "GtE": np.greater_equal,
}
_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "abs": (1, np.abs),
}
_WORDS: dict[str, bool] = {"true": True, "false": False, "True": True, "False": False}


@dataclass(frozen=True)
class Predicate:
    """A condition, checked when it is made.  Raises `InputError` for what is no predicate.

    short: names that stand for others.
    """

    text: str
    short: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    def __post_init__(self) -> None:
        given: Any = self.text
        require(
            isinstance(given, str) and len(given) <= LONGEST,
            f"a constraint is a text of at most {LONGEST} characters, not {shorten(self.text)!r}",
        )
        _check(self._tree, self)

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            found = ast.parse(self.text.strip(), mode="eval").body
            return _Renamed(self.short).visit(found) if self.short else found
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self.refusal("it cannot be read") from error

    def refusal(self, why: str) -> InputError:
        """What is raised where something is wrong with it."""
        return InputError(f"the constraint {self.text[:200]!r}: {why}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields that it names, each once."""
        return tuple(dict.fromkeys(_named(self._tree)))

    def check_names(self, known: Iterable[str]) -> None:
        """Raise `InputError` for a field that is not known."""
        listed = list(known)
        for name in self.names:
            if name not in listed:
                raise self.refusal(f"there is no field {name!r}; {nearest(name, listed)}")

    def holds(self, columns: Mapping[str, Any], length: int) -> npt.NDArray[np.bool_]:
        """Where it is true [length], of columns [length] or values by name.

        Raises `InputError` where texts are compared with numbers, or a name has no column.
        """
        self.check_names(columns)
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(_value(self._tree, columns))
        except (TypeError, np.exceptions.DTypePromotionError) as error:
            raise self.refusal("it takes a text for a number, or a number for a text") from error
        if found.dtype != np.bool_:
            raise self.refusal("it must be true or false, not a number")
        return np.broadcast_to(found, (length,))


class _Renamed(ast.NodeTransformer):
    """With the names that short ones stand for; parts of dotted names stay."""

    def __init__(self, short: Mapping[str, str]) -> None:
        self._short = short

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._short.get(node.id, node.id), ctx=node.ctx)


def _dotted(node: ast.expr) -> str | None:
    """The name of a field; None for what is none."""
    if isinstance(node, ast.Name):
        return None if node.id in _WORDS else node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def _parts(node: ast.expr) -> list[ast.expr]:
    """The operands of a node, those of a list that is searched among them."""
    match node:
        case ast.BoolOp(values=values):
            return values
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Compare(left=left, comparators=others):
            return [left, *(part for one in others for part in _listed(one))]
        case ast.Call(args=arguments):
            return arguments
        case _:
            return []


def _listed(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _named(node: ast.expr) -> list[str]:
    name = _dotted(node)
    if name is not None:
        return [name]
    return [found for part in _parts(node) for found in _named(part)]


def _check(node: ast.expr, whole: Predicate, depth: int = 0) -> None:
    """Raise `InputError` for what is not taken."""
    if depth > DEEPEST:
        raise whole.refusal(f"it is more than {DEEPEST} deep")
    match node:
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.USub() | ast.UAdd()):
            pass
        case ast.BinOp(op=operator):
            if type(operator).__name__ not in _ARITHMETIC:
                raise whole.refusal("of arithmetic it takes + - * / // %")
        case ast.Compare(ops=operators, comparators=others):
            _check_comparison(operators, others, whole)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            wanted = _FUNCTIONS[name][0]
            if len(arguments) < wanted or (wanted == 1 and len(arguments) > 1):
                raise whole.refusal(f"{name} takes {wanted}, not {len(arguments)}")
        case ast.Constant(value=value) if isinstance(value, (bool, int, float, str)):
            pass
        case ast.Name(id=name) if name in _WORDS:
            pass
        case _ if _dotted(node) is not None:
            pass
        case _:
            raise whole.refusal(f"it takes no {ast.unparse(node)[:60]!r}")
    for part in _parts(node):
        _check(part, whole, depth + 1)


def _check_comparison(operators: list[ast.cmpop], others: list[ast.expr], whole: Predicate) -> None:
    for operator, other in zip(operators, others, strict=True):
        searched = isinstance(operator, (ast.In, ast.NotIn))
        if searched != isinstance(other, (ast.Tuple, ast.List)):
            raise whole.refusal("a list stands behind `in`, and nowhere else")
        if not searched and type(operator).__name__ not in _COMPARISONS:
            raise whole.refusal("of comparisons it takes == != < <= > >= in")


def _value(node: ast.expr, columns: Mapping[str, Any]) -> Any:
    """What a node that was checked stands for."""
    match node:
        case ast.BoolOp(op=operator, values=values):
            join = np.logical_and if isinstance(operator, ast.And) else np.logical_or
            return reduce(join, [_truth(_value(one, columns)) for one in values])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.logical_not(_truth(_value(operand, columns)))
        case ast.UnaryOp(op=operator, operand=operand):
            value = _number(_value(operand, columns))
            return np.negative(value) if isinstance(operator, ast.USub) else np.positive(value)
        case ast.BinOp(left=left, op=operator, right=right):
            compute = _ARITHMETIC[type(operator).__name__]
            return compute(_number(_value(left, columns)), _number(_value(right, columns)))
        case ast.Compare():
            return _compared(node, columns)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [_number(_value(one, columns)) for one in arguments]
            return reduce(_FUNCTIONS[name][1], values) if len(values) > 1 else np.abs(values[0])
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=int() | float() as number):
            return _float(number)
        case ast.Name(id=name) if name in _WORDS:
            return _WORDS[name]
        case _:
            return columns[str(_dotted(node))]


def _float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _number(value: Any) -> Any:
    """Raises `TypeError` for what is no number."""
    if np.asarray(value).dtype.kind not in "fiu":
        raise TypeError
    return value


def _truth(value: Any) -> Any:
    """Raises `TypeError` for what is neither true nor false."""
    if np.asarray(value).dtype != np.bool_:
        raise TypeError
    return value


def _compared(node: ast.Compare, columns: Mapping[str, Any]) -> Any:
    """A chain of comparisons."""
    left: Any = _value(node.left, columns)
    found: list[Any] = []
    for operator, other in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, (ast.In, ast.NotIn)):
            same = [_same(left, _value(one, columns)) for one in _listed(other)]
            inside = reduce(np.logical_or, same, np.False_)
            found.append(inside if isinstance(operator, ast.In) else np.logical_not(inside))
            continue
        right = _value(other, columns)
        _alike(left, right)
        found.append(_COMPARISONS[type(operator).__name__](left, right))
        left = right
    return reduce(np.logical_and, found)


def _same(left: Any, right: Any) -> Any:
    _alike(left, right)
    return np.equal(left, right)


def _alike(left: Any, right: Any) -> None:
    """Raises `TypeError` where one is a text and the other is not."""
    texts = {np.asarray(one).dtype.kind in "UO" for one in (left, right)}
    if len(texts) > 1:
        raise TypeError


__all__ = ["Column", "Predicate"]
