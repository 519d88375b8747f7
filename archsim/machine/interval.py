"""What a unit of a machine did, from when to when: of what every run over time is made.

A machine names its units and says what each of them does (`Track`).  Units of the same name are
the same thing in every machine: `LAYERS` has one interval a layer, loaders and `OFMAP_PORT` carry
the bytes that cross a port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LAYERS = "layers"
LOADERS = ("ifmap loader", "weight loader", "bias loader")
ARRAY, OUTPUT_STAGE, OFMAP_PORT = "array", "output stage", "ofmap port"
ARRAY_WAITS, WRITES = "array waits", "off-chip writes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """Which part of its layer a tile computes, and with how many MACs (padding included).

    Pixels are rows and columns of the ofmap; of a matrix product M × N × K the pixel columns are
    M, the filters N, the channels K.  Filters and channels are counted within the group.
    """

    number: int
    groups: range
    images: range
    pixel_rows: range
    pixel_columns: range
    filters: range
    channels: range
    macs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """One unit doing one thing from `start_cycle` to before `end_cycle`, in cycles of the run.

    bytes_moved: what crosses the unit's port; bubble_cycles: those of a stream in which no moving
    word enters the array, because the next stationary load is the longer.
    """

    unit: str
    what: str
    layer: str
    start_cycle: int
    end_cycle: int
    tile: Tile | None = None
    bytes_moved: int = 0
    bubble_cycles: int = 0

    @property
    def cycles(self) -> int:
        """How long it takes."""
        return self.end_cycle - self.start_cycle


@dataclass(frozen=True, kw_only=True)
class Track:
    """A unit of a machine: a line of the picture, and of a summary.

    does: what a summary counts of it; nothing for units that are only drawn.  An interval counts
    under the first word of its `what`; called: under another name, by that word.  Cycles of bubbles
    count as "bubble".
    """

    unit: str
    does: tuple[str, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict[str, str])


__all__ = [
    "ARRAY",
    "ARRAY_WAITS",
    "LAYERS",
    "LOADERS",
    "OFMAP_PORT",
    "OUTPUT_STAGE",
    "WRITES",
    "Interval",
    "Tile",
    "Track",
]
