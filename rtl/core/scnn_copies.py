"""Which own sums a PE of an SCNN core sends to be copied, and where it keeps copies of others."""

from amaranth.hdl import Mux, Value
from amaranth.lib import data

Place = tuple[Value, Value]
"""Row and column in the PE's region."""


def sent_place(step: data.View, row: data.View, column: data.View) -> tuple[Place, Value]:
    """Where the sum of a step's first cycle is, and whether it exists.

    To the left or up go the first own columns or rows, to the right or down the last ones: so many
    as the neighbour copies.  Columns are sent across the own rows; rows across all that the PE
    holds then, which are its own columns and those that it has copied.
    """
    across, held = _along(step, row, column)
    at_column, column_exists = _sent(step.left, step.depth, column)
    at_row, row_exists = _sent(step.up, step.depth, row)
    sides = step.left | step.right
    exists = Mux(
        sides,
        column_exists & (step.along < row.own_count),
        row_exists & (step.along < column.copy_before + column.own_count + column.copy_behind),
    )
    return (Mux(sides, across, at_row), Mux(sides, at_column, held)), exists


def received_place(step: data.View, row: data.View, column: data.View) -> Place:
    """Where a sum that comes is kept: from the left or above before the own ones, else behind."""
    across, held = _along(step, row, column)
    sides = step.left | step.right
    return (
        Mux(sides, across, _received(step.up, row) + step.depth),
        Mux(sides, _received(step.left, column) + step.depth, held),
    )


def _along(step: data.View, row: data.View, column: data.View) -> Place:
    """The row of columns that are copied, the column of rows that are."""
    return row.own_first + step.along, column.own_first - column.copy_before + step.along


def _sent(before: Value, depth: Value, axis: data.View) -> tuple[Value, Value]:
    last = axis.own_first + axis.own_count - axis.sent_behind
    first = Mux(before, axis.own_first, last)
    return first + depth, depth < Mux(before, axis.sent_before, axis.sent_behind)


def _received(before: Value, axis: data.View) -> Value:
    """before: the sender's way is to the PE before, so that it is the one behind."""
    return Mux(before, axis.own_first + axis.own_count, axis.own_first - axis.copy_before)


__all__ = ["Place", "received_place", "sent_place"]
