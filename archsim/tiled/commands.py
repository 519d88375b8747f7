"""The tile command: what the core's tile walker tells its units, once for every tile of a layer.

`COMMAND_FIELDS` are the fields of the walker's stream, first field in the lowest bits, and the
columns of a command matrix [tiles, fields].  `TileCommand` names them; the constants are for
kernels.  Units: elements for
steps along the ifmap, words for counts named so, pixels are output pixels.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from archsim.errors import InputError
from archsim.numbers import IntArray
from archsim.ports import CommandField

T = TypeVar("T")

COMMAND_FIELDS = (
    CommandField("load_ifmap", 1),  # this tile begins with a new ifmap tile
    CommandField("free_ifmap", 1),  # the ifmap tile is not needed after this tile
    CommandField("load_weight", 1),
    CommandField("free_weight", 1),
    CommandField("first_k", 1),  # overwrite the accumulators
    CommandField("last_k", 1),  # the output stage takes the accumulators afterwards
    CommandField("has_bias", 1),
    CommandField("relu", 1),
    CommandField("ifmap_words", 24),
    CommandField("weight_words", 24),
    CommandField("bias_words", 24),
    CommandField("output_rows", 24),  # rows of sums that the output stage reads
    CommandField("pixels", 24),  # images × rows × columns of output pixels in the tile
    CommandField("pixel_rows", 24),  # of one image
    CommandField("pixel_columns", 24),
    CommandField("column_step", 24),  # elements from one pixel to the next: stride · channels
    CommandField("row_step", 26),  # elements from one row of pixels to the next
    CommandField("row_stride", 8),  # ifmap rows from one row of pixels to the next
    CommandField("pitch", 24),  # elements in a row of the ifmap tile
    CommandField("height", 16),  # rows of the ifmap tile, of one image
    CommandField("image_step", 26),  # elements from one image to the next: height · pitch
    CommandField("element_start", 26, True),  # of the first pixel's window, negative in padding
    CommandField("row_start", 17, True),
    CommandField("address_start", 28, True),  # row_start · pitch
    CommandField("taps", 8),  # kernel rows
    CommandField("tap_rows", 8),  # ifmap rows from tap to tap: dilation
    CommandField("tap_step", 26),  # elements from tap to tap
    CommandField("runs", 8),  # runs of contiguous elements in a kernel row: 1, or S if dilated
    CommandField("run_step", 24),
    CommandField("run_length", 24),  # elements of a run: S · channels, or channels
    CommandField("filter_steps", 24),  # blocks of `columns` filters; filters if input-stationary
    CommandField("step_lanes", 16),  # filters of the last block; 1 if input-stationary
    CommandField("ends_layer", 1),  # the layer's last tile: what is begun of a word leaves
    CommandField("multiplier", 16),
    CommandField("shift", 6),
)

(
    LOAD_IFMAP,
    FREE_IFMAP,
    LOAD_WEIGHT,
    FREE_WEIGHT,
    FIRST_K,
    LAST_K,
    HAS_BIAS,
    RELU,
    IFMAP_WORDS,
    WEIGHT_WORDS,
    BIAS_WORDS,
    OUTPUT_ROWS,
    PIXELS,
    PIXEL_ROWS,
    PIXEL_COLUMNS,
    COLUMN_STEP,
    ROW_STEP,
    ROW_STRIDE,
    PITCH,
    HEIGHT,
    IMAGE_STEP,
    ELEMENT_START,
    ROW_START,
    ADDRESS_START,
    TAPS,
    TAP_ROWS,
    TAP_STEP,
    RUNS,
    RUN_STEP,
    RUN_LENGTH,
    FILTER_STEPS,
    STEP_LANES,
    ENDS_LAYER,
    MULTIPLIER,
    SHIFT,
) = range(len(COMMAND_FIELDS))

(
    TILE_GROUP,
    TILE_IMAGE,
    TILE_ROW,
    TILE_COLUMN,
    TILE_FILTER,
    TILE_CHANNEL,
    TILE_IMAGES,
    TILE_FILTERS,
    TILE_CHANNELS,
    IFMAP_ROW,
    IFMAP_COLUMN,
    BEGUN_UNITS,
    OUTPUT_WORDS,
    ROW_WORDS,
    WALK_COLUMNS,
) = range(len(COMMAND_FIELDS), len(COMMAND_FIELDS) + 15)
"""Columns beside the command that say which part of the layer a tile is: its first group, image,
pixel row and column, filter, channel; its numbers of images, filters and channels; the first row
and column of its ifmap regions; the units of an ofmap word that tiles before have begun, and the
words that leave with its outputs (`archsim.tiled.packing`).  The memory side packs operands by
them; they cross no port.  The last one, words of a row that the gather unit takes (0: none), is a
field of the layer's command where a core has that unit."""


class TileCommand(NamedTuple, Generic[T]):
    """The columns of a command matrix [tiles, WALK_COLUMNS], by name and in order.

    T: `int` of one tile, an array [tiles] of all tiles of a layer.
    """

    load_ifmap: T
    free_ifmap: T
    load_weight: T
    free_weight: T
    first_k: T
    last_k: T
    has_bias: T
    relu: T
    ifmap_words: T
    weight_words: T
    bias_words: T
    output_rows: T
    pixels: T
    pixel_rows: T
    pixel_columns: T
    column_step: T
    row_step: T
    row_stride: T
    pitch: T
    height: T
    image_step: T
    element_start: T
    row_start: T
    address_start: T
    taps: T
    tap_rows: T
    tap_step: T
    runs: T
    run_step: T
    run_length: T
    filter_steps: T
    step_lanes: T
    ends_layer: T
    multiplier: T
    shift: T
    tile_group: T
    tile_image: T
    tile_row: T
    tile_column: T
    tile_filter: T
    tile_channel: T
    tile_images: T
    tile_filters: T
    tile_channels: T
    ifmap_row: T
    ifmap_column: T
    begun_units: T
    output_words: T
    row_words: T

    @property
    def loads(self) -> tuple[T, T, T]:
        """Whether the tile loads ifmap, weights and biases."""
        return self.load_ifmap, self.load_weight, self.has_bias

    @property
    def words(self) -> tuple[T, T, T]:
        """Words of ifmap, weights and biases that are loaded, if they are."""
        return self.ifmap_words, self.weight_words, self.bias_words


def columns_of(tiles: IntArray) -> TileCommand[IntArray]:
    """The columns of a command matrix, which they share: [tiles] each."""
    return TileCommand(*tiles.T)


def commands_of(tiles: IntArray) -> list[TileCommand[int]]:
    """The rows of a command matrix."""
    return [TileCommand(*row) for row in tiles.tolist()]


def check_commands(name: str, tiles: IntArray) -> None:
    """Raise `InputError` if a tile's figures do not fit the fields of a command."""
    fields = len(COMMAND_FIELDS)  # which come first
    columns = tiles[:, :fields]
    least, most = columns.min(axis=0).tolist(), columns.max(axis=0).tolist()
    for field, low, high in zip(COMMAND_FIELDS, least, most, strict=True):
        if low < field.low or high > field.high:
            raise InputError(
                f"{name}: {field.name} must be from {field.low} to {field.high} "
                f"in a tile's command, "
                f"not {low} to {high}; take smaller tiles"
            )
