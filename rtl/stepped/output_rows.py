"""The rows in which outputs leave, and the words that they complete, counted one by one."""

from collections.abc import Sequence

from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import TileCommand
from archsim.tiled.machine_vector import MachineRecord


def vectors_of(machine: MachineRecord, row: TileCommand[int]) -> list[list[int]]:
    """Of an output tile, vector by vector, the units that each row brings.

    machine: what of the design decides its timing; row: the tile's command.
    """
    across, along = row.tile_filters, row.pixels
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


def completed(
    machine: MachineRecord, tiles: Sequence[TileCommand[int]]
) -> list[tuple[int, list[list[int]]]]:
    """Of each output tile: its number, and the rows, vector by vector, with 1 for each that
    completes a word; a last vector of one row more where the layer's end does.

    tiles: the commands of a layer.
    """
    begun, found = 0, list[tuple[int, list[list[int]]]]()
    numbers = [at for at, row in enumerate(tiles) if row.last_k]
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
