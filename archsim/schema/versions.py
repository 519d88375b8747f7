"""Saved results of every version, brought into the present schema.

Version 0 is what was written before results said a version: it has what that archsim knew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from archsim.errors import InputError
from archsim.schema.result import SCHEMA_VERSION, VERSION_FIELD

Record = dict[str, Any]

NO_CAUSE = {"conflict": 0, "barrier": 0}
"""Causes that machines without sparsity do not have; older results do not name them."""

ALONE = {"images": 1, "groups": 1}
"""What a tiling says in results older than tiles of several images, and groups side by side."""


def in_present_version(record: Record) -> Record:
    """The record, or a copy of one of an earlier version, which is left as it is.

    Nothing is checked but the version; what has not the expected shape is passed on for
    `archsim.schema.check`.  Raises `InputError` for a version later than this archsim's.
    """
    version: object = record.get(VERSION_FIELD, 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        return record
    if version > SCHEMA_VERSION:
        raise InputError(
            f"its {VERSION_FIELD} is {str(version)[:20]}, later than {SCHEMA_VERSION}; "
            "a later archsim reads it"
        )
    for step in range(version, SCHEMA_VERSION):
        record = STEPS[step](record)
    return record


def _from_unversioned(record: Record) -> Record:
    """Version 0 as version 1."""
    lacking: dict[str, Record] = {
        "where": NO_CAUSE,
        "technology": {"sram_relative_voltage": 1.0},
        "area": {"by_group": {}},
    }
    found = record | {
        name: values | cast("Record", record[name])
        for name, values in lacking.items()
        if isinstance(record.get(name), Mapping)
    }
    if isinstance(record.get("layers"), list):
        found["layers"] = [_layer(one) for one in record["layers"]]
    return found | {VERSION_FIELD: 1}


def _layer(layer: Any) -> Any:
    """A layer of version 0; not all of it was timed with values, so origins are unknown."""
    if not isinstance(layer, dict):
        return layer
    given = cast("Record", layer)
    origins = dict.fromkeys(("weight_origin", "ifmap_origin"), "unknown")
    products = {"products": given["macs"]} if "macs" in given else {}
    found = NO_CAUSE | origins | products | given
    if isinstance(given.get("tiling"), dict):
        found["tiling"] = ALONE | cast("Record", given["tiling"])
    return found


STEPS: tuple[Callable[[Record], Record], ...] = (_from_unversioned,)
"""From each version to the next."""
