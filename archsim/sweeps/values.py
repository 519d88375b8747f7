"""The values that a field takes in a space: a list, a range, powers of two, or one value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from archsim.errors import InputError, nearest, require

Value = bool | int | float | str

MOST_VALUES = 100_000
"""Of one field."""

RANGE_KEYS = frozenset(("from", "to", "step", "times", "powers_of_two"))


def is_range(table: Mapping[str, Any]) -> bool:
    """Whether a table of a file is a range, not a record of fields."""
    return not table or bool(RANGE_KEYS & set(table))


def values_of(name: str, given: Any) -> tuple[Value, ...]:
    """The values of a field, in order.

    given: a value, a list of them, or a table: `{from, to}` with `step` (1 by default) or `times`
    (from, from · times, …), or `{powers_of_two = [first, last]}`; ends are included.
    Raises `InputError` for what is none of these, for a value twice, for more than `MOST_VALUES`.
    """
    if isinstance(given, Mapping):
        found = _range(name, cast("Mapping[str, Any]", given))
    elif isinstance(given, (list, tuple)):
        found = list(cast("list[Any]", given))
    else:
        found = [given]
    require(bool(found), f"{name}: a field must have a value at least, and its list is empty")
    require(len(found) <= MOST_VALUES, f"{name}: a field has at most {MOST_VALUES:,} values")
    for one in found:
        finite = not isinstance(one, float) or math.isfinite(one)
        require(
            isinstance(one, (bool, int, float, str)) and finite,
            f"{name}: a value is a number, a text, true or false, not {one!r}",
        )
    keys = [(isinstance(one, bool), one) for one in found]
    if len(set(keys)) < len(keys):
        twice = next(one for at, one in enumerate(found) if keys[at] in keys[:at])
        raise InputError(f"{name}: {twice!r} is there twice")
    return tuple(found)


def _range(name: str, table: Mapping[str, Any]) -> list[Any]:
    unknown = sorted(set(table) - RANGE_KEYS)
    if unknown:
        raise InputError(
            f"{name}: a range has no {unknown[0]!r}; {nearest(str(unknown[0]), sorted(RANGE_KEYS))}"
        )
    if "powers_of_two" in table:
        require(len(table) == 1, f"{name}: powers_of_two = [first, last] stands alone")
        return _powers(name, table["powers_of_two"])
    require({"from", "to"} <= set(table), f"{name}: a range has from and to")
    require(not {"step", "times"} <= set(table), f"{name}: a range has step or times, not both")
    first, last = _number(name, table["from"]), _number(name, table["to"])
    require(first <= last, f"{name}: from must be at most to, not {first:g} to {last:g}")
    if "times" in table:
        return _multiples(name, first, last, _number(name, table["times"]))
    step = _number(name, table.get("step", 1))
    require(step > 0, f"{name}: step must be positive, not {step:g}")
    count = int((last - first) / step * (1 + 1e-12)) + 1
    require(count <= MOST_VALUES, f"{name}: a field has at most {MOST_VALUES:,} values")
    return [first + number * step for number in range(count)]


def _multiples(name: str, first: float, last: float, times: float) -> list[Any]:
    require(first > 0, f"{name}: from must be positive where it is multiplied, not {first:g}")
    require(times > 1, f"{name}: times must be above 1, not {times:g}")
    found = [first]
    while found[-1] * times <= last * (1 + 1e-12):
        found.append(found[-1] * times)
        require(len(found) <= MOST_VALUES, f"{name}: a field has at most {MOST_VALUES:,} values")
    return found


def _powers(name: str, ends: Any) -> list[Any]:
    pair = cast("list[Any]", ends) if isinstance(ends, list) else []
    require(len(pair) == 2, f"{name}: powers_of_two takes [first, last]")
    for end in pair:
        whole = isinstance(end, int) and not isinstance(end, bool)
        require(
            whole and 0 < end < 1 << 62 and end & (end - 1) == 0,
            f"{name}: powers_of_two takes two powers of two, not {end!r}",
        )
    require(pair[0] <= pair[1], f"{name}: the first power must be at most the last")
    return [1 << bit for bit in range(pair[0].bit_length() - 1, pair[1].bit_length())]


def _number(name: str, value: Any) -> Any:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    require(good and abs(value) < 1e300, f"{name}: a range is of numbers, not {value!r}")
    return value


__all__ = ["MOST_VALUES", "Value", "is_range", "values_of"]
