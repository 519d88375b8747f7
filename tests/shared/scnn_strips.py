"""What a strip of a pooled layer's plane has, by the pooling alone."""

from __future__ import annotations

from scnn_lists import Window

from archsim.machines.scnn.strips import Strip
from workloads.pooling import MaxPool


def first_outputs(pool: MaxPool | None, strip: Strip) -> tuple[int, int]:
    """The first row and column of the layer's plane, before pooling, that a strip has."""
    if pool is None:
        return strip.rows[0], strip.columns[0]
    rows, columns = (
        max(windows[0] * pool.stride[axis] - pool.pad[axis], 0)
        for axis, windows in enumerate((strip.rows, strip.columns))
    )
    return rows, columns


def windows_in(pool: MaxPool | None, strip: Strip) -> tuple[Window, Window] | None:
    """The windows of a strip, along both axes."""
    if pool is None:
        return None
    first = first_outputs(pool, strip)
    rows, columns = (
        (pool.window[axis], pool.stride[axis],
         first[axis] - (windows[0] * pool.stride[axis] - pool.pad[axis]), len(windows))
        for axis, windows in enumerate((strip.rows, strip.columns))
    )  # fmt: skip
    return rows, columns


__all__ = ["first_outputs", "windows_in"]
