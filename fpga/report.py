"""What was found about a unit on an FPGA, as a value that can be saved and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fpga.cells import Cells
from fpga.devices import Target
from fpga.nextpnr import SlowestPath

__all__ = ["FpgaReport"]


@dataclass(frozen=True, kw_only=True)
class FpgaReport:
    """A unit, placed and routed.

    cells: of the unit alone, as it is mapped. wrapper: of the registers around it
    (`fpga.wrapper`). places: of look-up tables, which both take as placed, of places_on_chip; a
    place whose look-up table is only passed through, or lies empty before a flip-flop of iCE40,
    counts. fmax_hz: of the slowest path between registers, at the slow corner. uses_dsps: whether
    multipliers were allowed to be the chip's. tools: versions.
    """

    name: str
    target: Target
    cells: Cells
    wrapper: Cells
    places: int
    places_on_chip: int
    fmax_hz: float
    path: SlowestPath
    uses_dsps: bool
    tools: Mapping[str, str]

    @property
    def meets_clock(self) -> bool:
        """Whether the clock aimed at is reached."""
        return self.fmax_hz >= self.target.clock_hz

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "device": self.target.chip.name, "tools": dict(self.tools)}

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.record(), indent=2)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> FpgaReport:
        """The inverse of `record`."""
        plain = {key: value for key, value in record.items() if key != "device"}
        return cls(
            **{
                **plain,
                "target": Target(**plain["target"]),
                "cells": Cells(**plain["cells"]),
                "wrapper": Cells(**plain["wrapper"]),
                "path": SlowestPath(**plain["path"]),
            }
        )
