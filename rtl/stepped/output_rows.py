"""The rows in which outputs leave, and the words that they complete, counted one by one."""

from archsim.numbers import IntArray
from archsim.tiled import commands as cmd
from archsim.tiled import machine_vector as mc
from archsim.tiled.machine_vector import MachineRecord


def vectors_of(machine: MachineRecord, row: IntArray) -> list[list[int]]:
    """Of an output tile, vector by vector, the units that each row brings.

    machine: what of the design decides its timing; row [WALK_COLUMNS]: the tile's command.
    """
    across, along = int(row[cmd.TILE_FILTERS]), int(row[cmd.PIXELS])
    if machine.dataflow == mc.INPUT_STATIONARY:
        across, along = along, across
    columns, together = machine.columns, machine.output_vector
    whole = max(columns, together)
    found: list[list[int]] = []
    for first in range(0, across, whole):
        own = min(whole, across - first)
        for _ in range(along):
            rows: list[int] = []
            for start in range(0, own, columns):
                lanes = min(columns, own - start)
                heads = [n for n in range(start, start + lanes) if n % together == 0]
                units = lanes * machine.output_value_units
                rows.append(units + len(heads) * machine.output_scale_units)
            found.append(rows)
    return found


def completed(machine: MachineRecord, tiles: IntArray) -> list[tuple[int, list[list[int]]]]:
    """Of each output tile: its number, and the rows, vector by vector, with 1 for each that
    completes a word; a last vector of one row more where the layer's end does.

    tiles: [tiles, WALK_COLUMNS], the commands of a layer.
    """
    begun, found = 0, list[tuple[int, list[list[int]]]]()
    numbers = [at for at, row in enumerate(tiles) if row[cmd.LAST_K]]
    for at in numbers:
        done: list[list[int]] = []
        for rows in vectors_of(machine, tiles[at]):
            done.append([])
            for units in rows:
                begun += units
                done[-1].append(begun // machine.output_word_units)
                begun %= machine.output_word_units
        found.append((at, done))
    if begun:
        found[-1][1].append([1])
    return found


__all__ = ["completed", "vectors_of"]
