"""The row actions of a layer in plain Python: every address of every tile, in the RTL's order."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from compressed_counts import Banks, Tile

from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.design import CoreDesign
from archsim.tiled.layer_values import layer_words
from archsim.tiled.numerics import TiledLayer
from archsim.tiled.walk import walk_layer


def plain_row_actions(design: CoreDesign, layer: Any, tiling: Any, operands: Any) -> dict[str, int]:
    """By action, as `archsim.tiled.operand_fit.value_actions`."""
    numerics = design.numerics
    problem, taken = numerics.problem(layer), numerics.take(layer, operands)
    tiles = walk_layer(problem, tiling, design.machine)
    tiled = TiledLayer(layer=layer, problem=problem, tiling=tiling, tiles=tiles)
    words = layer_words(design, tiled, taken)
    found: dict[str, int] = {}
    for name in design.stores:
        port = next(one for one in design.data_ports if one.name == name)
        memory: Any = design.memory(name)
        fails = not memory.exact
        store = SimpleNamespace(
            memory=memory.inner if fails else memory,
            faulty=memory if fails else None,
            use=design.use(name),
            lanes=port.lanes,
            bits=port.lane_bits[0],
            signed=port.lane_signed[0],
            straddles=name == "ifmap",
        )
        found |= _replayed(design, name, store, tiles, words[name].tolist())
    return found


def _replayed(
    design: CoreDesign, name: str, store: Any, tiles: IntArray, words: list[list[int]]
) -> dict[str, int]:
    load, size = {
        "ifmap": (cmd.LOAD_IFMAP, cmd.IFMAP_WORDS),
        "weight": (cmd.LOAD_WEIGHT, cmd.WEIGHT_WORDS),
    }[name]
    banks, written, entries, at, half = Banks(store), 0, 0, 0, 1
    tile: Any = None
    for row in tiles:
        if row[load]:
            half ^= 1
            tile = Tile(words[at : at + row[size]], store, half)
            at += row[size]
            written += tile.rows * (store.memory.group if name == "ifmap" else 1)
            entries += tile.entries
        if name == "ifmap":
            for vector in _vectors(design, row, store.lanes):
                banks.read(tile, vector)
        else:
            for word in _words(design, row):
                banks.read(tile, [(lane, word) for lane in range(store.lanes)])
    assert at == len(words)
    return {
        f"{name}_row_read": banks.counts["row_reads"],
        f"{name}_row_write": written,
        f"{name}_entry_read": banks.counts["entry_reads"],
        f"{name}_entry_write": entries,
    }


def _vectors(design: CoreDesign, row: IntArray, lanes: int) -> Iterator[list[tuple[int, int]]]:
    """(lane, word) of the elements of every vector; those in the padding left out."""
    machine, pixels = design.machine, int(row[cmd.PIXELS])
    kind = machine[mc.DATAFLOW]
    block = {mc.WEIGHT_STATIONARY: pixels, mc.OUTPUT_STATIONARY: int(machine[mc.ROWS])}
    step = block.get(int(kind), int(machine[mc.COLUMNS]))
    for _ in range(1 if kind == mc.INPUT_STATIONARY else row[cmd.FILTER_STEPS]):
        for begin in range(0, pixels, step):
            for tap in range(row[cmd.TAPS]):
                for run in range(row[cmd.RUNS]):
                    for chunk in range(0, row[cmd.RUN_LENGTH], machine[mc.CHUNK]):
                        end = min(chunk + machine[mc.CHUNK], row[cmd.RUN_LENGTH])
                        for pixel in range(begin, min(begin + step, pixels)):
                            part = [run * row[cmd.RUN_STEP] + at for at in range(chunk, end)]
                            yield [
                                (int(a % lanes), int(a // lanes))
                                for a in _addresses(row, pixel, tap, part)
                            ]


def _addresses(row: IntArray, pixel: int, tap: int, part: list[int]) -> Iterator[int]:
    line, across = divmod(pixel, int(row[cmd.PIXEL_COLUMNS]))
    image, down = divmod(line, int(row[cmd.PIXEL_ROWS]))
    start = image * row[cmd.HEIGHT] * row[cmd.PITCH]
    at_row = row[cmd.ROW_START] + down * row[cmd.ROW_STRIDE] + tap * row[cmd.TAP_ROWS]
    for offset in part:
        element = row[cmd.ELEMENT_START] + across * row[cmd.COLUMN_STEP] + offset
        if 0 <= at_row < row[cmd.HEIGHT] and 0 <= element < row[cmd.PITCH]:
            yield start + at_row * row[cmd.PITCH] + element


def _words(design: CoreDesign, row: IntArray) -> Iterator[int]:
    """Words of a weight tile in the order in which they are read."""
    machine, pixels = design.machine, int(row[cmd.PIXELS])
    words, steps = int(row[cmd.WEIGHT_WORDS]), int(row[cmd.FILTER_STEPS])
    if machine[mc.DATAFLOW] == mc.WEIGHT_STATIONARY:
        yield from range(words)
    elif machine[mc.DATAFLOW] == mc.INPUT_STATIONARY:
        for _ in range(0, pixels, machine[mc.COLUMNS]):
            yield from range(words)
    else:
        for step in range(steps):
            for _ in range(0, pixels, machine[mc.ROWS]):
                yield from range(step * words // steps, (step + 1) * words // steps)


__all__ = ["plain_row_actions"]
