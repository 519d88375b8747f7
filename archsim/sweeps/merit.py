"""Designs as those who search see them: objectives over all networks, and requirements broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray
from archsim.sweeps.front import FloatArray
from archsim.sweeps.objectives import OF_DESIGN
from archsim.sweeps.points import Grid

if TYPE_CHECKING:
    from archsim.sweeps.store import Store


def merits(store: Store, grid: Grid, designs: IntArray) -> FloatArray:
    """Objectives [designs, objectives] of designs that are kept, NaN where one was refused.

    Of several networks, one behind the other: cycles, seconds, energy, actions are summed, areas
    and footprints are the design's, the energy-delay product is that of energy and seconds if both
    are objectives, else the sum.
    """
    from archsim.sweeps.store import arrow, quoted, uuids

    names = grid.space.objectives
    per_network: list[FloatArray] = []
    listed = ", ".join(f"points.{quoted(name)}" for name in names)
    for network in range(len(grid.space.networks)):
        ids = uuids(grid.ids(designs, network))
        wanted = arrow().table({"id": ids, "place": np.arange(len(designs), dtype=np.int64)})
        cursor = store.connection.cursor()
        cursor.register("wanted_points", wanted)
        query = f"SELECT place, {listed} FROM points JOIN wanted_points USING (id)"
        found: dict[str, Any] = cursor.execute(query).fetchnumpy()
        values = np.full((len(designs), len(names)), np.nan)
        places = np.asarray(found["place"], np.int64)
        for column, name in enumerate(names):
            one = np.ma.asarray(found[name], np.float64)  # pyright: ignore[reportUnknownMemberType]
            values[places, column] = np.ma.filled(one, np.nan)  # pyright: ignore[reportUnknownMemberType]
        per_network.append(values)
    return _joined(names, np.stack(per_network))


def _joined(names: tuple[str, ...], values: FloatArray) -> FloatArray:
    """Of [networks, designs, objectives]."""
    total = values.sum(axis=0)
    for column, name in enumerate(names):
        if name in OF_DESIGN:
            total[:, column] = values[0, :, column]
    if {"energy_pj", "seconds", "edp_pj_s"} <= set(names):
        both = total[:, names.index("energy_pj")] * total[:, names.index("seconds")]
        total[:, names.index("edp_pj_s")] = both
    return total


def violations(grid: Grid, designs: IntArray, values: FloatArray) -> FloatArray:
    """How many of the space's requirements each design breaks [designs]; those without values one
    more than there are.

    values: objectives [designs, objectives].
    """
    required = grid.space.required
    found = np.zeros(len(designs))
    if required:
        columns = _columns(grid, designs, values)
        for one in required:
            found += ~one.holds(columns, len(designs))
    found[np.isnan(values).any(axis=1)] = len(required) + 1.0
    return found


def required_of(grid: Grid, designs: IntArray, values: FloatArray) -> npt.NDArray[np.bool_]:
    """Which designs have values, all requirements of the space fulfilled."""
    return violations(grid, designs, values) == 0


def _columns(grid: Grid, designs: IntArray, values: FloatArray) -> dict[str, Any]:
    """What the space's requirements ask for: fields are looked up only where they are asked."""
    columns: dict[str, Any] = {name: values[:, at] for at, name in enumerate(grid.space.objectives)}
    if {name for one in grid.space.required for name in one.names} <= set(columns):
        return columns
    for name, column in grid.columns(designs).items():
        known = [one for one in column.tolist() if one is not None]
        kind = type(known[0]).__name__ if known else "float"
        numeric = kind in ("int", "float")
        columns[name] = np.array(column, np.float64) if numeric else np.array(column.astype(str))
    return columns


__all__ = ["merits", "required_of", "violations"]
