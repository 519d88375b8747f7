"""Operands and results of a tile as words: what the memory side sends for each tile, and gets back.

Tensors are channels-last and split by groups, as `archsim.layer.layout` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.layer.layout import blocks_of
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd

Integer = TypeVar("Integer", bound=np.integer[Any])


def ifmap_part(row: IntArray, ifmap: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """A tile's ifmap regions: [images, rows, columns, channels, …]."""
    width = row[cmd.PITCH] // row[cmd.TILE_CHANNELS]
    return ifmap[
        row[cmd.TILE_IMAGE] : row[cmd.TILE_IMAGE] + row[cmd.TILE_IMAGES],
        row[cmd.TILE_GROUP],
        row[cmd.IFMAP_ROW] : row[cmd.IFMAP_ROW] + row[cmd.HEIGHT],
        row[cmd.IFMAP_COLUMN] : row[cmd.IFMAP_COLUMN] + width,
        row[cmd.TILE_CHANNEL] : row[cmd.TILE_CHANNEL] + row[cmd.TILE_CHANNELS],
    ]


def ifmap_words(row: IntArray, ifmap: npt.NDArray[Integer], lanes: int) -> npt.NDArray[Integer]:
    """The words of a tile's ifmap: images, rows, columns, channels, densely: [words, lanes]."""
    return blocks_of(ifmap_part(row, ifmap).reshape(-1), lanes, 0)


def weight_part(row: IntArray, weight: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The weights of a tile: [filters, R, S, channels, …]."""
    filters = slice(row[cmd.TILE_FILTER], row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS])
    channels = slice(row[cmd.TILE_CHANNEL], row[cmd.TILE_CHANNEL] + row[cmd.TILE_CHANNELS])
    return weight[row[cmd.TILE_GROUP], filters, :, :, channels]


def weight_words(
    row: IntArray, weight: npt.NDArray[Integer], lanes: int, *, moving: bool
) -> npt.NDArray[Integer]:
    """The words of a tile's weights, in the order of the walk: [words, lanes].

    Stationary in the array or moving down it: blocks of `lanes` filters, each kernel row, column,
    channel.  `moving` into the rows: runs in chunks of `lanes` elements, each filter.
    """
    part = weight_part(row, weight)
    filters = len(part)
    if not moving:
        blocks = blocks_of(part.reshape(filters, -1), lanes, 0)
        return blocks.transpose(0, 2, 1).reshape(-1, lanes)
    runs = part.reshape(filters, -1, row[cmd.RUN_LENGTH])
    chunks = blocks_of(runs, lanes, 2)
    return chunks.transpose(1, 2, 0, 3).reshape(-1, lanes)


def bias_words(row: IntArray, bias: IntArray, lanes: int) -> IntArray:
    """The bias words of an output tile: [words, lanes]."""
    part = bias[row[cmd.TILE_GROUP]]
    part = part[row[cmd.TILE_FILTER] : row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS]]
    return blocks_of(part, lanes, 0)


def ofmap_part(row: IntArray, ofmap: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The outputs of a tile: [pixels, filters]."""
    return ofmap[
        row[cmd.TILE_IMAGE] : row[cmd.TILE_IMAGE] + row[cmd.TILE_IMAGES],
        row[cmd.TILE_GROUP],
        row[cmd.TILE_ROW] : row[cmd.TILE_ROW] + row[cmd.PIXEL_ROWS],
        row[cmd.TILE_COLUMN] : row[cmd.TILE_COLUMN] + row[cmd.PIXEL_COLUMNS],
        row[cmd.TILE_FILTER] : row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS],
    ].reshape(row[cmd.PIXELS], row[cmd.TILE_FILTERS])


def as_rows(part: npt.NDArray[Integer], columns: int) -> npt.NDArray[Integer]:
    """A tile's outputs [along, across], 1-D, as they are read: `columns` across, then all along."""
    whole = part.shape[1] // columns * columns
    blocks = part[:, :whole].reshape(len(part), -1, columns).transpose(1, 0, 2)
    return np.concatenate([blocks.reshape(-1), part[:, whole:].reshape(-1)])


def packed(tiles: Sequence[npt.NDArray[Integer]], lanes: int) -> npt.NDArray[Integer]:
    """The outputs of all tiles of a layer, one behind the other, as words: [words, lanes]."""
    return blocks_of(np.concatenate(tiles), lanes, 0)
