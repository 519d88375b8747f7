"""The rows in which outputs leave, and the words that they complete, counted one by one."""

from typing import Any

from archsim.numbers import IntArray
from archsim.tiled import commands as cmd


def vectors_of(design: Any, row: IntArray) -> list[list[int]]:
    """Of an output tile, vector by vector, the units that each row brings."""
    filters, pixels = int(row[cmd.TILE_FILTERS]), int(row[cmd.PIXELS])
    moving = getattr(design, "dataflow", "") == "input_stationary"
    across, along = (pixels, filters) if moving else (filters, pixels)
    scaled: bool = hasattr(design, "output") and design.output.scaled
    output: Any = design.output if scaled else design
    whole = max(design.columns, output.form.vector) if scaled else design.columns
    found: list[list[int]] = []
    for first in range(0, across, whole):
        own = min(whole, across - first)
        for _ in range(along):
            rows: list[int] = []
            for start in range(0, own, design.columns):
                lanes = min(design.columns, own - start)
                units = lanes
                if scaled:
                    units = lanes * output.form.bits
                    heads = [n for n in range(start, start + lanes) if n % output.form.vector == 0]
                    units += len(heads) * output.form.scale_bits
                    units //= output.unit_bits
                rows.append(units)
            found.append(rows)
    return found


def completed(design: Any, tiles: IntArray) -> list[tuple[int, list[list[int]]]]:
    """Of each output tile: its number, and the rows, vector by vector, with 1 for each that
    completes a word; a last vector of one row more where the layer's end does."""
    port = next(port for port in design.ports if port.name == "ofmap")
    begun, found = 0, list[tuple[int, list[list[int]]]]()
    numbers = [at for at, row in enumerate(tiles) if row[cmd.LAST_K]]
    for at in numbers:
        done: list[list[int]] = []
        for rows in vectors_of(design, tiles[at]):
            done.append([])
            for units in rows:
                begun += units
                done[-1].append(begun // port.lanes)
                begun %= port.lanes
        found.append((at, done))
    if begun:
        found[-1][1].append([1])
    return found
