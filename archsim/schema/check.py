"""JSON values laid beside a schema: the first thing that does not fit, in one line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, cast

from archsim.errors import InputError
from archsim.schema.words import Schema
from workloads.names import printable

KINDS = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def check(value: Any, schema: Schema, *, strict: bool = False) -> None:
    """Raise `InputError` with the first place that does not fit ("layers[2].macs is missing").

    Fields that an object's schema does not name are passed over unless `strict`: a later version
    may have added them.  Whole numbers are written without a point, and numbers are finite, which
    JSON Schema alone does not ask for.
    """
    error: Any = next(_validator(strict)(schema).iter_errors(value), None)
    if error is not None:
        raise InputError(_said(error))


@cache
def _validator(strict: bool) -> Any:
    """A class of validators, which `jsonschema` makes; imported here since few commands need it."""
    from jsonschema import Draft202012Validator, validators

    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": _is_whole, "number": _is_number}
    )
    others = Draft202012Validator.VALIDATORS["additionalProperties"]

    def additional(validator: Any, wanted: Any, value: Any, schema: Schema) -> Iterator[Any]:
        if wanted is not False or strict:
            yield from others(validator, wanted, value, schema)

    return cast("Any", validators).extend(
        Draft202012Validator, {"additionalProperties": additional}, type_checker=types
    )


def _is_whole(_checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(checker: Any, value: Any) -> bool:
    return _is_whole(checker, value) or (isinstance(value, float) and math.isfinite(value))


def _said(error: Any) -> str:
    """The first error (`jsonschema.ValidationError`) in the grammar of all bad input."""
    place, wanted, value = _place(error), error.validator_value, error.instance
    schema: Schema = error.schema
    where = place or "it"
    match error.validator:
        case "required":
            return f"{_inside(place, next(one for one in wanted if one not in value))} is missing"
        case "additionalProperties":
            return f"{_inside(place, _unknown(value, schema))} is unknown"
        case "type":
            kinds = cast("list[str]", [wanted] if isinstance(wanted, str) else wanted)
            named = " or ".join(KINDS[kind] for kind in kinds)
            return f"{where} must be {named}, not {kind_of(value)}"
        case "minimum" | "maximum":
            return f"{where} must be from {schema['minimum']} to {schema['maximum']}"
        case "enum":
            return f"{where} must be {' or '.join(wanted)}, not {kind_of(value)}"
        case keyword:
            return f"{where} does not fit the schema's {keyword}"


def _unknown(value: Iterable[str], schema: Schema) -> str:
    known, patterns = schema["properties"], schema.get("patternProperties", {})
    others = (one for one in value if one not in known)
    return next(one for one in others if not any(re.search(each, one) for each in patterns))


def _place(error: Any) -> str:
    """Where: "layers[3].macs"; "" at the top."""
    found = ""
    for step in error.absolute_path:
        found = f"{found}[{step}]" if isinstance(step, int) else _inside(found, step)
    return found


def _inside(place: str, key: str) -> str:
    return f"{place}.{printable(key)}" if place else printable(key)


def kind_of(value: Any) -> str:
    """What a JSON value is, for messages; small ones themselves."""
    for kind, name in ((dict, "an object"), (list, "a list"), (str, "text")):
        if isinstance(value, kind):
            return name
    try:
        return printable(json.dumps(value))
    except ValueError:  # more digits than Python writes
        return "a number of thousands of digits"
