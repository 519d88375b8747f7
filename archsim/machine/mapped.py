"""How a layer is mapped, for those who read it: loops, what is held where, what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A loop over tiles.  over: of what; sizes of a tile, and of the last one, in `over`."""

    over: str
    tiles: int
    size: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Held:
    """What of a tile is in a memory, at most, in bytes; and how many are there for a tile."""

    memory: str
    what: str
    taken_bytes: int
    tile_bytes: int


@dataclass(frozen=True, kw_only=True)
class MappedLayer:
    """A layer's mapping.  table: as it is given back by hand; loops: the outermost first."""

    layer: str
    table: Mapping[str, Any]
    loops: tuple[Loop, ...]
    held: tuple[Held, ...]
    cycles: int
    bytes_moved: Mapping[str, int]

    def record(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


__all__ = ["Held", "Loop", "MappedLayer"]
