"""Outcomes as rows of a study's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.numbers import IntArray
from archsim.sweeps.evaluation import DONE, Outcome
from archsim.sweeps.points import Grid, Part, point_numbers
from archsim.sweeps.store import Table, arrow, uuids


def tables_of(grid: Grid, found: Outcome, batch: int) -> tuple[list[Table], list[Table]]:
    """Rows of points and of layers, of a table for each variant."""
    points: list[Table] = []
    layers: list[Table] = []
    for part, places, digits in grid.split(found.numbers):
        ids = part.ids(digits, grid.contents[found.network])
        own = found if len(places) == len(found.numbers) else found.taken(places)
        points.append(_points(grid, part, digits, own, (ids, batch)))
        if own.layers is not None:
            layers.append(_layers(grid, own, ids))
    return points, layers


def _points(
    grid: Grid, part: Part, digits: IntArray, found: Outcome, told: tuple[list[bytes], int]
) -> Table:
    pa = arrow()
    ids, batch = told
    length = len(ids)
    columns: dict[str, Any] = {
        "id": uuids(ids),
        "number": point_numbers(grid, found.numbers, found.network),
        "batch": pa.array(np.full(length, batch, np.int32)),
        "status": _alike(DONE, length),
        "error": pa.nulls(length, pa.string()),
        "machine": _alike(part.machine.name, length),
        "network": _alike(grid.space.network_names[found.network], length),
    }
    if found.errors:
        status, error = np.full(length, DONE, object), np.full(length, None, object)
        for place, (kind, why) in found.errors.items():
            status[place], error[place] = kind, why
        columns |= {"status": pa.array(status), "error": pa.array(error, pa.string())}
    for name, kind in part.variant.kinds.items():
        columns[name] = _alike(kind, length)
    for at, (name, values) in enumerate(part.variant.fields.items()):
        columns[name] = pa.array(list(values)).take(pa.array(digits[:, at]))
    for name, column in found.values.items():
        columns[name] = pa.array(column, from_pandas=True)  # NaN is none
    return pa.table(columns)


def _alike(text: str, length: int) -> Any:
    """The same text in every row."""
    pa = arrow()
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array([text]))


def _layers(grid: Grid, found: Outcome, ids: list[bytes]) -> Table:
    """Cycles of the layers of points that were computed."""
    pa = arrow()
    assert found.layers is not None
    names = [layer.name for layer in grid.networks[found.network].matrix_layers]
    done = np.array([at for at in range(len(ids)) if at not in found.errors], np.int64)
    which = np.tile(np.arange(len(names), dtype=np.int32), len(done))
    return pa.table(
        {
            "point": uuids([ids[at] for at in np.repeat(done, len(names)).tolist()]),
            "layer": pa.DictionaryArray.from_arrays(pa.array(which), pa.array(names)),
            "cycles": found.layers[done].reshape(-1),
        }
    )


__all__ = ["tables_of"]
