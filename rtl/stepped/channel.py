"""The off-chip memory beside a stepped core: transfers in the order of the program."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from archsim.memory import OffChip
from archsim.tiled import machine_vector as mc
from archsim.tiled.commands import TileCommand
from archsim.tiled.machine_vector import MachineRecord
from rtl.stepped.array import folds_of

TICKS = 65_536
"""In a cycle."""

OPERANDS: tuple[str, ...] = ("ifmap", "weight", "bias")


def loaded_words(row: TileCommand[int], port: str) -> int | None:
    """Words of a tile's load by an operand's port; None if it uses the load before."""
    if port == "ifmap":
        return row.ifmap_words if row.load_ifmap else None
    if port == "weight":
        return row.weight_words if row.load_weight else None
    return row.bias_words if row.has_bias else None


@dataclass
class Transfer:
    """Words of a port's load (or output) of a tile, which the channel moves in one go.

    first: they are the first of the load.
    """

    port: str
    tile: int
    words: int
    first: bool = True


@dataclass
class Channel:
    """A way to the off-chip memory: what it has to move yet, and the ticks at which it is free."""

    queue: deque[Transfer] = field(default_factory=deque[Transfer])
    free: int = 0


def channels(memory: OffChip, transfers: list[Transfer]) -> dict[str, Channel]:
    """By port, with what they have to move; ports that share one have the same."""
    one = Channel()
    shared = memory.shared and memory.bytes_per_cycle
    ways = {port: one if shared else Channel() for port in (*OPERANDS, "ofmap")}
    if memory.weight_bytes_per_cycle is not None:
        ways["weight"] = Channel()
    for transfer in transfers:
        ways[transfer.port].queue.append(transfer)
    return ways


def word_ticks(memory: OffChip, port: str, bits: int) -> int:
    """Ticks that a word of so many bits takes of its channel, rounded up; 0: none."""
    rate = memory.bytes_per_cycle
    if port == "weight" and memory.weight_bytes_per_cycle is not None:
        rate = memory.weight_bytes_per_cycle
    if rate == 0:
        return 0
    return ceil(-(-bits // 8) * TICKS / Fraction(round(rate * 1024), 1024))


def program(machine: MachineRecord, tiles: list[TileCommand[int]]) -> list[Transfer]:
    """The order of the transfers: the program that host and memory side know."""
    slots = _loads(tiles)
    found: list[Transfer] = []
    for slot, row in enumerate(slots):
        if slot < len(tiles):
            ports = ["ifmap", "weight"]
            if machine.dataflow != mc.INPUT_STATIONARY:
                ports.reverse()  # the stationary one first, of equals
            tile = tiles[slot]
            lag = {"ifmap": tile.ifmap_words, "weight": tile.weight_words}
            lag[ports[0]] += folds_of(machine, tile)[0][0]  # filling the array
            ports.sort(key=lambda port: -lag[port])
            found += [row[port] for port in ports if port in row]
        if 0 <= slot - 1 < len(tiles) and tiles[slot - 1].has_bias:
            found.append(Transfer("bias", slot - 1, tiles[slot - 1].bias_words))
        if slot >= 3 and tiles[slot - 3].last_k:
            found.append(Transfer("ofmap", slot - 3, tiles[slot - 3].output_words))
    return [one for one in found if one.words]


def _loads(tiles: list[TileCommand[int]]) -> list[dict[str, Transfer]]:
    """Of every slot, by port, its part of the load that is under way."""
    slots: list[dict[str, Transfer]] = [{} for _ in range(len(tiles) + 3)]
    for port in ("ifmap", "weight"):
        used = -1
        for tile, row in enumerate(tiles):
            words = loaded_words(row, port)
            if words is None:
                continue
            spread, sent = range(used + 1, tile + 1), 0
            for number, slot in enumerate(spread):
                until = words * (number + 1) // len(spread)
                slots[slot][port] = Transfer(port, tile, until - sent, first=sent == 0)
                sent = until
            used = tile
    return slots


__all__ = [
    "OPERANDS", "TICKS", "Channel", "Transfer", "channels", "loaded_words", "program",
    "word_ticks",
]  # fmt: skip
