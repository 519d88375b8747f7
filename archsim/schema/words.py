"""The words in which a JSON Schema is said here: every field has a description, figures a unit.

Units stand in brackets behind the description; "1" is the unit of what has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]
"""A JSON Schema, 2020-12."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"

LARGEST_COUNT = (1 << 63) - 1
"""Counts are of 64 bits with a sign."""

LARGEST_NUMBER = 1e100
"""No figure is larger: products of two stay finite."""


def text(what: str, choices: Iterable[str] = ()) -> Schema:
    """Text; one of `choices` where there are any."""
    chosen = list(choices)
    return {"description": what, "type": "string", **({"enum": chosen} if chosen else {})}


def count(unit: str, what: str) -> Schema:
    """A whole number from 0."""
    limits = {"minimum": 0, "maximum": LARGEST_COUNT}
    return {"description": f"{what} [{unit}]", "type": "integer", **limits}


def number(unit: str, what: str) -> Schema:
    """A finite number from 0."""
    limits = {"minimum": 0, "maximum": LARGEST_NUMBER}
    return {"description": f"{what} [{unit}]", "type": "number", **limits}


def any_number(unit: str, what: str) -> Schema:
    """A finite number, negative ones too."""
    return {**number(unit, what), "minimum": -LARGEST_NUMBER}


def yes_or_no(what: str) -> Schema:
    """true or false."""
    return {"description": what, "type": "boolean"}


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def array(what: str, items: Schema) -> Schema:
    """A list of any length."""
    return {"description": what, "type": "array", "items": items}


def by_name(what: str, values: Schema) -> Schema:
    """An object whose keys are names: components, actions, layers."""
    return {"description": what, "type": "object", "additionalProperties": values}


def anything(what: str) -> Schema:
    """An object that is described elsewhere."""
    return {"description": what, "type": "object"}


def record(
    what: str,
    fields: Mapping[str, Schema],
    optional: Mapping[str, Schema] | None = None,
    *,
    patterns: Mapping[str, Schema] | None = None,
) -> Schema:
    """An object of these fields and no others; patterns: optional fields by regular expression."""
    return {
        "description": what,
        "type": "object",
        "properties": {**fields, **(optional or {})},
        **({"patternProperties": dict(patterns)} if patterns else {}),
        "required": list(fields),
        "additionalProperties": False,
    }


def document(title: str, schema: Schema) -> Schema:
    """A schema that is a file of its own."""
    return {"$schema": DIALECT, "title": title, **schema}
