"""How the systolic array is proved."""

from typing import Any

from rtl.tile_verification import TileVerification


class SystolicVerification(TileVerification):
    """A core that is walked by tiles, and computes with integers."""

    def decoupled(self, design: Any) -> bool:
        return design.dataflow != "output_stationary"


__all__ = ["SystolicVerification"]
