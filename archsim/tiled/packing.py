"""Outputs packed into whole words: which rows of a tile complete a word of the ofmap port.

The outputs of a layer leave as one stream of *units*, row by row as the output stage reads them;
every `OUTPUT_WORD_UNITS` of them are a word, whatever tile they are of, and the layer's last word
is filled up with zeros.  A unit is a value; where values have scales, the largest part of which
both are multiples.  A row brings the units of its outputs alone: of the filters of its step, or
input-stationary of the pixels of its block.  The rows of a tile are two blocks, of full vectors
and of short ones; a vector is what shares a scale, and one row where it is not longer.
"""

from __future__ import annotations

from archsim.kernels import inlined, kernel
from archsim.layer import problem as pb
from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc

Block = tuple[int, int, int, int, int]
"""(vectors, rows of each, units of its first row, of each row behind it, of all its rows); the
last of several rows brings what is left."""


@inlined
def _units(values: int, machine: IntArray) -> int:
    """Units of so many values side by side, and of their scales."""
    scales = -(-values // machine[mc.OUTPUT_VECTOR])
    return values * machine[mc.OUTPUT_VALUE_UNITS] + scales * machine[mc.OUTPUT_SCALE_UNITS]


@inlined
def _block(vectors: int, values: int, machine: IntArray) -> Block:
    """So many vectors of so many values."""
    columns = machine[mc.COLUMNS]
    rows = -(-values // columns)
    later = columns * machine[mc.OUTPUT_VALUE_UNITS]
    return vectors, rows, _units(min(values, columns), machine), later, _units(values, machine)


@kernel
def output_blocks(row: IntArray, machine: IntArray) -> tuple[Block, Block]:
    """The full vectors of a tile, which may be none, and the short ones behind them."""
    across, repeats = row[cmd.TILE_FILTERS], row[cmd.PIXELS]
    if machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        across, repeats = repeats, across
    whole = max(machine[mc.COLUMNS], machine[mc.OUTPUT_VECTOR])
    full = -(-across // whole) - 1
    return (
        _block(full * repeats, whole, machine),
        _block(repeats, across - full * whole, machine),
    )


@kernel
def output_units(row: IntArray, machine: IntArray) -> int:
    """Units of a tile."""
    full, short = output_blocks(row, machine)
    return full[0] * full[4] + short[0] * short[4]


@inlined
def _row_in(block: Block, unit: int) -> int:
    """The row of a block that brings its unit of that number."""
    vector, offset = divmod(unit, block[4])
    inside = 0 if offset < block[2] else 1 + (offset - block[2]) // block[3]
    return vector * block[1] + inside


@kernel
def row_of_word(row: IntArray, word: int, machine: IntArray) -> int:
    """The row of a tile that completes its word of that number, both from 0; the row behind the
    last for the word that ends the layer with fewer units."""
    full, short = output_blocks(row, machine)
    unit = (word + 1) * machine[mc.OUTPUT_WORD_UNITS] - row[cmd.BEGUN_UNITS] - 1
    first_short = full[0] * full[4]
    if unit < first_short:
        return _row_in(full, unit)
    if unit < first_short + short[0] * short[4]:
        return full[0] * full[1] + _row_in(short, unit - first_short)
    return full[0] * full[1] + short[0] * short[1]


@kernel
def layer_words(problem: IntArray, machine: IntArray) -> int:
    """Ofmap words of a layer, in whatever tiling."""
    pixels = problem[pb.IMAGES] * problem[pb.OUT_HEIGHT] * problem[pb.OUT_WIDTH]
    units = problem[pb.GROUPS] * pixels * _units(problem[pb.FILTERS], machine)
    return -(-units // machine[mc.OUTPUT_WORD_UNITS])


@kernel
def mark_words(tiles: IntArray, machine: IntArray) -> None:
    """Fill in the words that leave with every tile, and what is begun of a word before it."""
    begun, size = 0, machine[mc.OUTPUT_WORD_UNITS]
    for at in range(len(tiles)):
        row = tiles[at]
        row[cmd.BEGUN_UNITS] = begun
        if row[cmd.LAST_K] == 1:
            row[cmd.OUTPUT_WORDS], begun = divmod(begun + output_units(row, machine), size)
    last = len(tiles) - 1
    tiles[last, cmd.ENDS_LAYER] = 1
    if begun > 0:
        tiles[last, cmd.OUTPUT_WORDS] += 1
