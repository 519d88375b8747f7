"""Schemas as tables of a page: one row a field, objects inside as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from archsim.schema.words import Schema

TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
}


def tables(schema: Schema, heading: str = "At the top", place: str = "") -> Iterator[str]:
    """Lines of Markdown: the table of an object's fields, then those of the records inside it."""
    yield f"## {heading}"
    yield ""
    yield "| field | type | what |"
    yield "|---|---|---|"
    inner: list[tuple[str, Schema]] = []
    for name, field, needed in _fields(schema):
        yield f"| `{name}` | {_type(field, needed=needed)} | {_cell(field)} |"
        path, found = _record_in(f"{place}{name}", field)
        if found is not None:
            inner.append((path, found))
    yield ""
    for path, found in inner:
        yield from tables(found, f"`{path}`", f"{path}.")


def _fields(schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Name, schema and whether it is always there."""
    for name, field in schema["properties"].items():
        yield name, field, name in schema["required"]
    for pattern, field in schema.get("patternProperties", {}).items():
        yield pattern.strip("^$").replace("[a-z]+", "<operand>"), field, False


def _record_in(path: str, field: Schema) -> tuple[str, Schema | None]:
    """The object with named fields that a field holds, and where; None where it holds none."""
    if "properties" in field:
        return path, field
    if isinstance(field.get("items"), dict):
        return _record_in(f"{path}[]", field["items"])
    if isinstance(field.get("additionalProperties"), dict):
        return _record_in(f"{path}.<name>", field["additionalProperties"])
    return path, None


def _type(field: Schema, *, needed: bool) -> str:
    kind = field["type"]
    kinds = cast("list[str]", kind if isinstance(kind, list) else [kind])
    named = " or ".join(TYPES.get(one, one) for one in kinds)
    return named if needed else f"{named}, optional"


def _cell(field: Schema) -> str:
    """A description, with that of what it holds where that has no table of its own."""
    said: list[str] = [field["description"]]
    while "properties" not in field:
        inner: Any = field.get("items", field.get("additionalProperties"))
        if not isinstance(inner, dict) or "properties" in inner:
            break
        field = cast("Schema", inner)
        said.append(field["description"])
    if "enum" in field:
        said.append(" or ".join(field["enum"]))
    return ": ".join(said).replace("|", "\\|")
