"""Designs of one base whose fields vary: by kinds of memory, each of which has its own fields."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, nearest, require, require_flag
from archsim.machine.design import Design
from archsim.machine.registry import complete_record, with_settings
from archsim.numbers import IntArray
from archsim.sweeps.values import Value

Column = npt.NDArray[Any]

MOST_VARIANTS = 1000
"""Of a space: machines, each with every combination of the kinds of its memories."""

AXES = ("technology", "voltage_v")
"""Fields of a machine that its design has not: what prices it (`archsim.sweeps.prices`)."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A base and the values of fields that all its designs have.

    machine: name of the machine; base: with the kinds of memory that this is of; kinds: fields
    that name those kinds; fields: by name, their values as the design's fields have them, those
    of `AXES` first.
    """

    machine: str
    base: Design
    kinds: Mapping[str, str]
    fields: Mapping[str, tuple[Value, ...]]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each field has."""
        return tuple(len(values) for values in self.fields.values())

    @cached_property
    def size(self) -> int:
        """Designs, before constraints."""
        size = 1
        for count in self.shape:
            size *= count
        return size

    @cached_property
    def known(self) -> dict[str, Value]:
        """Every field of the base, flat."""
        return flat(complete_record(self.base))

    @property
    def columns(self) -> dict[str, tuple[Value, ...]]:
        """Values of fields that are told of its points: those that vary, and kinds of memory."""
        return {**{name: (kind,) for name, kind in self.kinds.items()}, **self.fields}

    def digits(self, numbers: IntArray) -> IntArray:
        """[designs, fields]: which value of each field; the last field varies first."""
        found = np.empty((len(numbers), len(self.shape)), np.int64)
        rest = np.asarray(numbers, np.int64)
        for place in range(len(self.shape) - 1, -1, -1):
            rest, found[:, place] = np.divmod(rest, self.shape[place])
        return found

    def table(self, digits: IntArray) -> dict[str, Any]:
        """Columns of all fields [designs]; of those that do not vary the value itself."""
        found: dict[str, Any] = {
            name: float(value) if _is_number(value) else value for name, value in self.known.items()
        }
        for place, (name, values) in enumerate(self.fields.items()):
            found[name] = _array(values)[digits[:, place]]
        return found

    def designs(self, digits: IntArray) -> Iterator[Design | InputError]:
        """Each design, or why it is none."""
        names = [name.split(".") for name in self.fields]
        values = list(self.fields.values())
        parts: dict[tuple[Any, ...], Any] = {}
        tops = _grouped(names)
        base: Any = self.base
        for row in digits.tolist():
            try:
                yield replace(base, **self._changes(row, tops, names, values, parts))
            except InputError as error:
                yield error

    def _changes(
        self,
        row: list[int],
        tops: Mapping[str, list[int]],
        names: Sequence[list[str]],
        values: Sequence[tuple[Value, ...]],
        parts: dict[tuple[Any, ...], Any],
    ) -> dict[str, Any]:
        """The fields of one design; records are made once for all that have them."""
        found: dict[str, Any] = {}
        for top, places in tops.items():
            if len(names[places[0]]) == 1:
                found[top] = values[places[0]][row[places[0]]]
                continue
            key = (top, *(row[place] for place in places))
            if key not in parts:
                part = getattr(self.base, top)
                for place in places:
                    part = _changed(part, names[place][1:], values[place][row[place]])
                parts[key] = part
            found[top] = parts[key]
        return found


def _grouped(names: Sequence[list[str]]) -> dict[str, list[int]]:
    """Places of fields by the design's own field that they lie in; not those of `AXES`."""
    found: dict[str, list[int]] = {}
    for place, path in enumerate(names):
        if path[0] not in AXES:
            found.setdefault(path[0], []).append(place)
    return found


def _changed(part: Any, path: Sequence[str], value: Value) -> Any:
    """A record with one field changed, however deep."""
    if len(path) > 1:
        value = _changed(getattr(part, path[0]), path[1:], value)
    return replace(part, **{path[0]: value})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _array(values: Sequence[Value]) -> Column:
    """A column of values: floats, texts or truths."""
    return np.array([float(one) if _is_number(one) else one for one in values])


def flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested record with dotted names."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            found[f"{prefix}{name}"] = value
    return found


def variants_of(
    machine: str, design: Design, given: Mapping[str, tuple[Value, ...]]
) -> tuple[Variant, ...]:
    """One for each combination of kinds of memory.

    A field that the memories of no variant have is refused; one that some lack is varied in the
    others.  Raises `InputError`.
    """
    kinds = {name: values for name, values in given.items() if name.endswith(".kind")}
    require("kind" not in given, f"{machine}: kind is a machine's own; say another machine")
    axes = {name: _axis(machine, name, given[name]) for name in AXES if name in given}
    rest = {name: values for name, values in given.items() if name not in {**kinds, **axes}}
    count = math.prod(map(len, kinds.values()))
    require(
        count <= MOST_VARIANTS,
        f"{machine}: at most {MOST_VARIANTS:,} combinations of kinds of memory, not {count:,}",
    )
    found: list[Variant] = []
    had: set[str] = set()
    known: set[str] = set()
    for chosen in itertools.product(*kinds.values()):
        settings = [f"{name}={kind}" for name, kind in zip(kinds, chosen, strict=True)]
        base = _based(design, settings, rest)
        types = _types(base)
        known |= set(types)
        own = {
            name: _fitting(machine, name, types[name], rest[name]) for name in rest if name in types
        }
        had |= set(own)
        own = {**axes, **own}
        named = {name: str(kind) for name, kind in zip(kinds, chosen, strict=True)}
        found.append(Variant(machine=machine, base=base, kinds=named, fields=own))
    for name in rest:
        if name not in had:
            raise InputError(f"{machine} has no field {name!r}; {nearest(name, sorted(known))}")
    return tuple(found)


def _based(
    design: Design, settings: Sequence[str], rest: Mapping[str, tuple[Value, ...]]
) -> Design:
    """The design with memories of these kinds.

    A kind may want what has no default, as a faulty one its rate: then the first value that the
    space gives is the base's.  Raises `InputError`.
    """
    try:
        return with_settings(design, list(settings))
    except InputError as error:
        refused = error
    stems = tuple(one.partition("=")[0].removesuffix("kind") for one in settings)
    more = [f"{k}={json.dumps(v[0])}" for k, v in rest.items() if k.startswith(stems)]
    for some in (*([one] for one in more), more):
        with suppress(InputError):
            return with_settings(design, [*settings, *some])
    raise refused


def _axis(machine: str, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values of one of `AXES`."""
    wanted = "str" if name == "technology" else "float"
    return tuple(_fit(f"{machine}: {name}", wanted, one) for one in values)


def _types(part: Any, prefix: str = "") -> dict[str, str]:
    """The annotated types of all fields that are no records, by dotted name."""
    found: dict[str, str] = {}
    for entry in fields(part):
        value = getattr(part, entry.name)
        if is_dataclass(value):
            found |= _types(value, f"{prefix}{entry.name}.")
        else:
            found[f"{prefix}{entry.name}"] = str(entry.type)
    return found


def _fitting(machine: str, name: str, wanted: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values as the field has them: a whole number where a float is wanted becomes one."""
    return tuple(_fit(f"{machine}: {name}", wanted, one) for one in values)


def _fit(where: str, wanted: str, value: Value) -> Value:
    number = _is_number(value)
    if wanted == "bool":
        require_flag(**{where: value})
    elif wanted.startswith("int"):
        require(
            number and float(value) == int(value),
            f"{where} must be a whole number, not {value!r}",
        )
        return int(value)
    elif wanted.startswith("float"):
        require(number, f"{where} must be a number, not {value!r}")
        return float(value)
    else:
        require(isinstance(value, str), f"{where} must be a text, not {value!r}")
    return value


__all__ = ["AXES", "MOST_VARIANTS", "Variant", "flat", "variants_of"]
