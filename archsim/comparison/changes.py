"""Parameters that are not the same in every record: of designs, of technologies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast


@dataclass(frozen=True, kw_only=True)
class Change:
    """A parameter, dots reaching into nested records ("off_chip.bytes_per_cycle").

    values: one for each record, None where a record has no such parameter.
    """

    key: str
    values: tuple[Any, ...]

    def record(self) -> dict[str, Any]:
        """The change as plain data."""
        return {"key": self.key, "values": list(self.values)}


def changes_in(records: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The parameters in which nested records differ, in the order of the records."""
    flat = [_flatten(one) for one in records]
    keys = dict.fromkeys(chain.from_iterable(flat))
    changes = [Change(key=key, values=tuple(one.get(key) for one in flat)) for key in keys]
    return tuple(one for one in changes if any(value != one.values[0] for value in one.values))


def _flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested records as one, keys joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= _flatten(cast("dict[str, Any]", value), f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
