"""The layer command: what crosses the command port, once for every layer.

It holds the numbers of the tile loop.  Along each axis all tiles are alike but the last, so a size
comes as a pair (…_full, …_last); `rtl/core/tile_walker.py` makes the tile commands from it, the
same that `archsim.tiled.walk` makes.  Units: elements, pixels, words as in
`archsim.tiled.commands`.
"""

from __future__ import annotations

from typing import Any

from archsim.errors import InputError
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray, ceil_div
from archsim.ports import CommandField
from archsim.tiled import machine_vector as mc


def _pair(name: str, bits: int) -> tuple[CommandField, CommandField]:
    return CommandField(f"{name}_full", bits), CommandField(f"{name}_last", bits)


PIXEL_SIZES = tuple(
    f"{images}_{rows}_{columns}"
    for images in ("full", "last")
    for rows in ("full", "last")
    for columns in ("full", "last")
)
"""Which of their two sizes a tile's images, pixel rows and pixel columns have."""

LAYER_FIELDS = (
    CommandField("groups", 16),
    CommandField("image_tiles", 16),
    CommandField("row_tiles", 16),
    CommandField("column_tiles", 24),
    CommandField("filter_tiles", 16),
    CommandField("channel_tiles", 16),
    CommandField("filters_outer", 1),
    CommandField("height", 16),  # of the whole ifmap
    CommandField("row_window", 17, True),  # first window's first row: −pad_top
    CommandField("row_advance", 24),  # ifmap rows from one tile's first window to the next one's
    *_pair("row_span", 24),  # rows from a tile's first window's first to its last window's last
    CommandField("width", 24),
    CommandField("column_window", 25, True),
    CommandField("column_advance", 24),
    *_pair("column_span", 24),
    *_pair("images", 16),
    *_pair("pixel_rows", 24),
    *_pair("pixel_columns", 24),
    *(CommandField(f"pixels_{sizes}", 24) for sizes in PIXEL_SIZES),
    *(CommandField(f"blocks_{sizes}", 24) for sizes in PIXEL_SIZES),  # rows of sums a filter step
    *_pair("channels", 24),
    *_pair("column_step", 24),
    *_pair("run_step", 24),
    *_pair("run_length", 24),
    *_pair("step_words", 24),  # weight words of a tile for one filter step
    *_pair("filter_steps", 24),
    *_pair("step_lanes", 16),  # filters of a tile's last filter step
    CommandField("row_stride", 8),
    CommandField("taps", 8),
    CommandField("tap_rows", 8),
    CommandField("runs", 8),
    CommandField("has_bias", 1),
    CommandField("relu", 1),
    CommandField("multiplier", 16),
    CommandField("shift", 6),
)

GATHER_FIELDS = (CommandField("row_words", 16),)  # of a row that is gathered; 0: as rows lie
"""Behind the others, where a core has a gather unit."""


def layer_fields(*, gathers: bool) -> tuple[CommandField, ...]:
    """The fields of a core's layer command, in order."""
    return (*LAYER_FIELDS, *GATHER_FIELDS) if gathers else LAYER_FIELDS


def _sizes(total: int, tile: int) -> dict[str, int]:
    """The full and the last size of the tiles along an axis."""
    tile = min(tile, total)
    return {"full": tile, "last": total - (ceil_div(total, tile) - 1) * tile}


def _paired(name: str, values: dict[str, int]) -> dict[str, int]:
    return {f"{name}_{which}": value for which, value in values.items()}


def _pixel_fields(problem: Problem, tiling: Tiling, machine: mc.MachineRecord) -> dict[str, int]:
    images = _sizes(problem.images, tiling.images)
    rows = _sizes(problem.out_height, tiling.pixel_rows)
    columns = _sizes(problem.out_width, tiling.pixel_columns)
    reach_rows = (problem.kernel_height - 1) * problem.dilation_height
    reach_columns = (problem.kernel_width - 1) * problem.dilation_width
    fields: dict[str, int] = {
        **_paired(
            "row_span",
            {k: (n - 1) * problem.stride_height + reach_rows for k, n in rows.items()},
        ),
        **_paired(
            "column_span",
            {k: (n - 1) * problem.stride_width + reach_columns for k, n in columns.items()},
        ),
        **_paired("images", images),
        **_paired("pixel_rows", rows),
        **_paired("pixel_columns", columns),
        "row_advance": rows["full"] * problem.stride_height,
        "column_advance": columns["full"] * problem.stride_width,
    }
    block = machine.columns if machine.dataflow == mc.INPUT_STATIONARY else 1
    for sizes in PIXEL_SIZES:
        image, row, column = sizes.split("_")
        pixels = images[image] * rows[row] * columns[column]
        fields[f"pixels_{sizes}"] = pixels
        fields[f"blocks_{sizes}"] = ceil_div(pixels, block)
    return fields


def _channel_fields(problem: Problem, tiling: Tiling, machine: mc.MachineRecord) -> dict[str, int]:
    channels = _sizes(problem.channels, tiling.channels)
    dilated = problem.dilation_width > 1
    runs = problem.kernel_width if dilated else 1
    lengths = {k: n if dilated else n * problem.kernel_width for k, n in channels.items()}
    folds = problem.kernel_height * runs
    moving = machine.dataflow == mc.INPUT_STATIONARY
    chunk = machine.chunk
    words = {k: folds * (ceil_div(n, chunk) if moving else n) for k, n in lengths.items()}
    return {
        **_paired("channels", channels),
        **_paired("column_step", {k: problem.stride_width * n for k, n in channels.items()}),
        **_paired("run_step", {k: problem.dilation_width * n for k, n in channels.items()}),
        **_paired("run_length", lengths),
        **_paired("step_words", words),
        "runs": runs,
    }


def describe(
    name: str, problem: Problem, tiling: Tiling, machine: IntArray, scaling: tuple[int, int]
) -> dict[str, int]:
    """The fields of a layer's command; scaling is (multiplier, shift).

    Raises `InputError` if a number does not fit its field.
    """
    record = mc.machine_record(machine)
    moving = record.dataflow == mc.INPUT_STATIONARY
    unit = 1 if moving else record.columns
    filters = _sizes(problem.filters, tiling.filters)
    fields: dict[str, Any] = {
        "groups": problem.groups,
        "image_tiles": ceil_div(problem.images, tiling.images),
        "row_tiles": ceil_div(problem.out_height, tiling.pixel_rows),
        "column_tiles": ceil_div(problem.out_width, tiling.pixel_columns),
        "filter_tiles": ceil_div(problem.filters, tiling.filters),
        "channel_tiles": ceil_div(problem.channels, tiling.channels),
        "filters_outer": int(tiling.order == "filters_outer"),
        "height": problem.height,
        "row_window": -problem.pad_top,
        "width": problem.width,
        "column_window": -problem.pad_left,
        **_pixel_fields(problem, tiling, record),
        **_channel_fields(problem, tiling, record),
        **_paired("filter_steps", {k: ceil_div(n, unit) for k, n in filters.items()}),
        **_paired("step_lanes", {k: (n - 1) % unit + 1 for k, n in filters.items()}),
        "row_stride": problem.stride_height,
        "taps": problem.kernel_height,
        "tap_rows": problem.dilation_height,
        "has_bias": problem.has_bias,
        "relu": problem.relu,
        "multiplier": scaling[0],
        "shift": scaling[1],
        "row_words": ceil_div(problem.row_units, record.ifmap_lanes),
    }
    known = layer_fields(gathers=record.gather_bits > 0)
    for field in known:
        if not field.low <= fields[field.name] <= field.high:
            raise InputError(
                f"{name}: {field.name} must be from {field.low} to {field.high} "
                f"in a layer's command, "
                f"not {fields[field.name]}"
            )
    return {field.name: int(fields[field.name]) for field in known}
