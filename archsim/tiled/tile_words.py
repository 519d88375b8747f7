"""Operands and results of a tile as words: what the memory side sends for each tile, and gets back.

Tensors are channels-last and split by groups, as `archsim.layer.layout` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from archsim.layer.layout import blocks_of
from archsim.tiled.commands import TileCommand

Integer = TypeVar("Integer", bound=np.integer[Any])


def ifmap_part(tile: TileCommand[int], ifmap: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """A tile's ifmap regions: [images, rows, columns, channels, …]."""
    return ifmap[
        _from(tile.tile_image, tile.tile_images),
        tile.tile_group,
        _from(tile.ifmap_row, tile.height),
        _from(tile.ifmap_column, tile.pitch // tile.tile_channels),
        _from(tile.tile_channel, tile.tile_channels),
    ]


def weight_part(tile: TileCommand[int], weight: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The weights of a tile: [filters, R, S, channels, …]."""
    filters = _from(tile.tile_filter, tile.tile_filters)
    return weight[tile.tile_group, filters, :, :, _from(tile.tile_channel, tile.tile_channels)]


def bias_part(tile: TileCommand[int], bias: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The biases of a tile: [filters, …]."""
    return bias[tile.tile_group, _from(tile.tile_filter, tile.tile_filters)]


def pixels_of(tile: TileCommand[int]) -> tuple[slice | int, ...]:
    """Where a tile's pixels are in an ofmap: indices of images, group, rows and columns."""
    return (
        _from(tile.tile_image, tile.tile_images),
        tile.tile_group,
        _from(tile.tile_row, tile.pixel_rows),
        _from(tile.tile_column, tile.pixel_columns),
    )


def ofmap_part(tile: TileCommand[int], ofmap: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The outputs of a tile: [pixels, filters]."""
    place = (*pixels_of(tile), _from(tile.tile_filter, tile.tile_filters))
    return ofmap[place].reshape(tile.pixels, -1)


def _from(start: int, count: int) -> slice:
    return slice(start, start + count)


@dataclass(frozen=True, kw_only=True)
class WordLanes:
    """How words are cut: elements (channels, filters) in a word of ifmap, weight and bias.

    moving: weights enter the rows of the array, as in an input-stationary one.
    all_count: lanes of words behind a tile's last filter have a say in what others become.
    """

    ifmap: int
    weight: int
    bias: int
    moving: bool = False
    all_count: bool = False


def ifmap_words(part: npt.NDArray[Integer], lanes: int) -> npt.NDArray[Integer]:
    """The words [words, lanes · E] of a tile's ifmap [images, rows, columns, channels, E], densely.

    E: lanes of a word that an element takes.
    """
    each = part.shape[-1]
    return blocks_of(part.reshape(-1, each), lanes, 0).reshape(-1, lanes * each)


def weight_words(
    part: npt.NDArray[Integer], lanes: int, run: int | None = None
) -> npt.NDArray[Integer]:
    """The words of a tile's weights [filters, R, S, channels, E], in the order of the walk.

    [words, lanes · E].  Stationary in the array or moving down it: blocks of `lanes` filters, each
    kernel row, column, channel.  run: the elements of a run where weights move into the rows of the
    array: runs in chunks of `lanes` elements, each filter.
    """
    filters, each = len(part), part.shape[-1]
    if run is None:
        blocks = blocks_of(part.reshape(filters, -1, each), lanes, 0)
        return blocks.transpose(0, 2, 1, 3).reshape(-1, lanes * each)
    chunks = blocks_of(part.reshape(filters, -1, run, each), lanes, 2)
    return chunks.transpose(1, 2, 0, 3, 4).reshape(-1, lanes * each)


def bias_words(part: npt.NDArray[Integer], lanes: int) -> npt.NDArray[Integer]:
    """The words of an output tile's biases [filters, E]: [words, E · lanes]."""
    blocks = blocks_of(part, lanes, 0)
    return blocks.transpose(0, 2, 1).reshape(len(blocks), -1)


def tile_words(
    name: str, tile: TileCommand[int], part: npt.NDArray[Integer], lanes: WordLanes
) -> npt.NDArray[Integer]:
    """The words of a tile's "ifmap", "weight" or "bias"."""
    if name == "ifmap":
        return ifmap_words(part, lanes.ifmap)
    if name == "weight":
        return weight_words(part, lanes.weight, tile.run_length if lanes.moving else None)
    return bias_words(part, lanes.bias)


PARTS = {"ifmap": ifmap_part, "weight": weight_part, "bias": bias_part}
"""What a tile loads of each operand."""


def loads(name: str, tile: TileCommand[int]) -> bool:
    """Whether a tile loads "ifmap", "weight" or "bias"."""
    return bool(dict(zip(PARTS, tile.loads, strict=True))[name])


def as_rows(part: npt.NDArray[Integer], columns: int) -> npt.NDArray[Integer]:
    """A tile's outputs [along, across], 1-D, as they are read: `columns` across, then all along."""
    whole = part.shape[1] // columns * columns
    blocks = part[:, :whole].reshape(len(part), -1, columns).transpose(1, 0, 2)
    return np.concatenate([blocks.reshape(-1), part[:, whole:].reshape(-1)])


def packed(tiles: Sequence[npt.NDArray[Integer]], lanes: int) -> npt.NDArray[Integer]:
    """The outputs of all tiles of a layer, one behind the other, as words: [words, lanes]."""
    return blocks_of(np.concatenate(tiles), lanes, 0)
