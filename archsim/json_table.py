"""JSON objects read with checks, so that a wrong file is refused with the key that is wrong."""

from __future__ import annotations

import json
from typing import Any, cast

from archsim.errors import InputError

LARGEST_COUNT = (1 << 63) - 1
"""Counts are of 64 bits with a sign."""

FLOAT_LIMIT = 1e100
"""No figure of a result is larger: products of two stay finite."""


class JsonTable:
    """A JSON object read with checks; messages name a key with where it is ("layers[3].macs")."""

    def __init__(self, data: Any, where: str = "") -> None:
        if not isinstance(data, dict):
            raise InputError(f"{where or 'it'} must be an object, not {_kind(data)}")
        self.data = cast("dict[str, Any]", data)
        self._prefix = f"{where}." if where else ""

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def _get(self, key: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        if key not in self.data:
            raise InputError(f"{self._prefix}{key} is missing")
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InputError(f"{self._prefix}{key} must be {wanted}, not {_kind(value)}")
        return value

    def text(self, key: str) -> str:
        return self._get(key, str, "text")

    def count(self, key: str) -> int:
        """A whole number from 0."""
        value: int = self._get(key, int, "a whole number")
        if not 0 <= value <= LARGEST_COUNT:
            raise InputError(f"{self._prefix}{key} must be from 0 to {LARGEST_COUNT}")
        return value

    def number(self, key: str) -> float:
        """A finite number from 0."""
        value: float = self._get(key, (int, float), "a number")
        if not 0 <= value <= FLOAT_LIMIT:
            raise InputError(f"{self._prefix}{key} must be from 0 to {FLOAT_LIMIT:g}")
        return float(value)

    def array(self, key: str) -> list[Any]:
        return self._get(key, list, "a list")

    def table(self, key: str) -> JsonTable:
        return JsonTable(self._get(key, dict, "an object"), f"{self._prefix}{key}")

    def tables(self, key: str) -> list[JsonTable]:
        """A list of objects."""
        items = enumerate(self.array(key))
        return [JsonTable(item, f"{self._prefix}{key}[{at}]") for at, item in items]

    def counts(self, key: str) -> dict[str, int]:
        """Whole numbers by name."""
        inner = self.table(key)
        return {name: inner.count(name) for name in inner.data}

    def numbers(self, key: str) -> dict[str, float]:
        """Numbers by name."""
        inner = self.table(key)
        return {name: inner.number(name) for name in inner.data}


def _kind(value: Any) -> str:
    """What a JSON value is, for messages."""
    for kind, name in ((dict, "an object"), (list, "a list"), (str, "text")):
        if isinstance(value, kind):
            return name
    return json.dumps(value)
