"""Widths of the groups in the words of tiles, measured in the operands as they lie.

The words themselves are those of `archsim.layer.layout`; only their widths are wanted here, so
weights, of which a word takes lanes from as many filters, need not be transposed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda_format import Bytes, Values
from archsim.codecs.boveda_kernels import Form, group_width, measure, wide
from archsim.kernels import kernel
from archsim.memories.boveda.store import Store
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled.commands import columns_of
from archsim.tiled.numerics import IntegerArray

Tiles = tuple[IntArray, IntArray]
"""A command row of each tile; the first word of each, and one more."""

Operand = tuple[Values, tuple[int, int, int, int, int]]
"""An operand split as in `archsim.layer.layout`, flat, and its shape."""

Word = tuple[int, Form]
"""Lanes of a word, and how they are stored."""

Packed = npt.NDArray[np.uint64]

Scratch = tuple[Values, Packed, tuple[np.uint64, int]]
"""Words of a tile, densely: as values, and the same bytes 64 bits at a time, with `_lane`."""

_ONES = {1: np.uint64(0x0101010101010101), 2: np.uint64(0x0001000100010001)}


def _lane(values: npt.DTypeLike) -> tuple[np.uint64, int]:
    """The lowest bit of each value in 64 bits, and the bits of a value."""
    size = np.dtype(values).itemsize
    return _ONES[size], 8 * size


def scratch_of(values: Values) -> Scratch:
    """Words, one value behind the other, and as many of their bytes as 64 bits hold whole."""
    whole = values.nbytes // 8 * 8 // values.itemsize
    return values, values[:whole].view(np.uint64), _lane(values.dtype)


@kernel
def _measure_whole(packed: Packed, form: Form, lane: tuple[np.uint64, int], widths: Bytes) -> None:
    """Widths of groups that fill 64 bits, some values at a time; as `boveda_kernels.measure`.

    packed [groups · words of a group].
    """
    ones, bits = lane
    top, mask = np.uint64(bits - 1), np.uint64((1 << bits) - 1)
    size = len(packed) // len(widths)
    for group in range(len(widths)):
        union = np.uint64(0)
        for at in range(group * size, (group + 1) * size):
            values = packed[at]
            if form[2]:
                negative = (values >> top) & ones
                values = (values ^ (negative * mask)) + negative
            union |= values
        union |= union >> np.uint64(32)
        union |= union >> np.uint64(16)
        if bits == 8:
            union |= union >> np.uint64(8)
        widths[group] = group_width(wide(union & mask), form)


@kernel
def measure_words(scratch: Scratch, word: Word, widths: Bytes) -> None:
    """Widths [words · columns] of the first words of the scratch."""
    (values, packed, lane), (lanes, form) = scratch, word
    size = form[0] * (lane[1] // 8)
    if size % 8 == 0:
        _measure_whole(packed[: len(widths) * size // 8], form, lane, widths)
    else:
        measure(values, (lanes, lanes // form[0]), form, (0, len(widths)), widths)


@kernel
def _copy(source: Values, target: Values) -> None:
    """Slices, of which compilers know that no index is negative, make vectors."""
    for at in range(len(source)):
        target[at] = source[at]


@kernel
def _gather_ifmap(row: IntArray, operand: Operand, words: Values) -> None:
    """The words of a tile's regions of an ifmap, densely: images, rows, columns, channels."""
    values, shape = operand
    channels, at = row[cmd.TILE_CHANNELS], 0
    pixels, run = row[cmd.PITCH] // channels, channels
    if channels == shape[4]:
        pixels, run = 1, row[cmd.PITCH]
    for line_number in range(row[cmd.TILE_IMAGES] * row[cmd.HEIGHT]):
        image, down = divmod(line_number, row[cmd.HEIGHT])
        plane = (row[cmd.TILE_IMAGE] + image) * shape[1] + row[cmd.TILE_GROUP]
        line = (plane * shape[2] + row[cmd.IFMAP_ROW] + down) * shape[3]
        for across in range(pixels):
            pixel = line + row[cmd.IFMAP_COLUMN] + across
            source = pixel * shape[4] + row[cmd.TILE_CHANNEL]
            _copy(values[source : source + run], words[at : at + run])
            at += run
    words[at:] = 0


@kernel
def _gather_runs(row: IntArray, operand: Operand, lanes: int, words: Values) -> None:
    """The words of a tile of weights that enter the rows: chunks of runs, of each filter."""
    values, shape = operand
    channels, filters, length = row[cmd.TILE_CHANNELS], row[cmd.TILE_FILTERS], row[cmd.RUN_LENGTH]
    chunks = (length + lanes - 1) // lanes
    words[:] = 0
    for line in range(filters):
        source = row[cmd.TILE_GROUP] * shape[1] + row[cmd.TILE_FILTER] + line
        source = source * shape[2] * shape[3] * shape[4] + row[cmd.TILE_CHANNEL]
        for element in range(shape[2] * shape[3] * channels):
            run, place = divmod(element, length)
            at = (run * chunks + place // lanes) * filters + line
            tap, channel = divmod(element, channels)
            words[at * lanes + place % lanes] = values[source + tap * shape[4] + channel]


@kernel(
    "(i8.2, i8.1), ((??.1, (int, int, int, int, int)), bool), (int, (int, int, int, int)), "
    "(??.1, u8.1, (u8, int)), u1.1"
)
def _measure_tiles(
    tiles: Tiles, operand: tuple[Operand, bool], word: Word, scratch: Scratch, widths: Bytes
) -> None:
    """Widths [words · columns] of tiles brought into words; operand: and whether it is weights."""
    (rows, starts), (lanes, form) = tiles, word
    columns = lanes // form[0]
    for tile in range(len(rows)):
        begin, end = starts[tile], starts[tile + 1]
        words = scratch[0][: (end - begin) * lanes]
        if operand[1]:
            _gather_runs(rows[tile], operand[0], lanes, words)
        else:
            _gather_ifmap(rows[tile], operand[0], words)
        measure_words(scratch, word, widths[begin * columns : end * columns])


@kernel
def _gather_union(
    values: Values, lines: tuple[int, int, int], elements: tuple[int, int], union: Values
) -> None:
    """The bitwise or of the magnitudes of some lines, element by element.

    lines: the first one, the one behind the last, and their length.  elements: first, and how many.
    """
    first, last, length = lines
    begin, count = elements
    found = union[:count]
    found[:] = 0
    for line in range(first, last):
        run = values[line * length + begin : line * length + begin + count]
        for element in range(count):
            found[element] |= abs(run[element])


@kernel("(i8.2, i8.1), (??.1, (int, int, int, int, int)), (int, (int, int, int, int)), u?.1, u1.1")
def _measure_filters(
    tiles: Tiles, operand: Operand, word: Word, union: Values, widths: Bytes
) -> None:
    """Widths [words · columns] of weights of which a word takes one of each filter.

    union: unsigned, as long as a filter.
    """
    (rows, starts), (values, shape), (lanes, form) = tiles, operand, word
    width_of = np.empty(256, np.uint8)  # of the unions of values of 8 bits
    bytes_only = union.itemsize == 1
    for magnitude in range(256):
        width_of[magnitude] = group_width(magnitude, form)
    columns, taps = lanes // form[0], shape[2] * shape[3]
    length = taps * shape[4]
    for tile in range(len(rows)):
        row = rows[tile]
        channels, end = row[cmd.TILE_CHANNELS], row[cmd.TILE_FILTER] + row[cmd.TILE_FILTERS]
        runs, count = taps, channels
        if channels == shape[4]:
            runs, count = 1, length
        at, line = starts[tile], row[cmd.TILE_GROUP] * shape[1]
        for block in range(row[cmd.TILE_FILTER], end, lanes):
            for column in range(columns):
                low = min(block + column * form[0], end)
                lines = (line + low, line + min(low + form[0], end), length)
                for run in range(runs):
                    _gather_union(
                        values, lines, (run * shape[4] + row[cmd.TILE_CHANNEL], count), union
                    )
                    place = (at + run * count) * columns + column
                    for element in range(count):
                        value = union[element]
                        width = width_of[value] if bytes_only else group_width(wide(value), form)
                        widths[place + element * columns] = width
            at += runs * count


def tile_widths(
    store: Store, tiles: IntArray, operand: IntegerArray, *, moving: bool = False
) -> tuple[IntArray, Bytes]:
    """First word of each tile, and one more; widths [words, columns] of all their words.

    tiles: a command row of each.  operand: the store's ifmap or weight, split as in
    `archsim.layer.layout`.  moving: weights enter the rows of the array
    (`archsim.tiled.tile_words`).
    """
    is_weight, lanes, form = store.name == "weight", store.lanes, store.form
    columns = columns_of(tiles)
    words = columns.weight_words if is_weight else columns.ifmap_words
    starts = np.zeros(len(tiles) + 1, np.int64)
    np.cumsum(words, out=starts[1:])
    widths = np.empty(int(starts[-1]) * store.columns, np.uint8)
    values = np.ascontiguousarray(operand, form.value_type)
    outer, middle, height, width, channels = values.shape
    held = (values.reshape(-1), (outer, middle, height, width, channels))
    placed, word = (tiles, starts), (lanes, form.numbers)
    if is_weight and not moving:
        union = np.empty(height * width * channels, f"uint{8 * values.itemsize}")
        _measure_filters(placed, held, word, union, widths)
    else:
        packed = np.empty(-(-int(words.max()) * lanes * values.itemsize // 8), np.uint64)
        scratch = scratch_of(packed.view(values.dtype))
        _measure_tiles(placed, (held, is_weight), word, scratch, widths)
    return starts, widths.reshape(-1, store.columns)


__all__ = ["Scratch", "measure_words", "scratch_of", "tile_widths"]
