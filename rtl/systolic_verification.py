"""How the systolic array is proved."""

from archsim.machines.systolic.design import Systolic
from archsim.tiled.design import CoreDesign
from rtl.tile_verification import TileVerification


class SystolicVerification(TileVerification):
    """A core that is walked by tiles, and computes with integers."""

    def decoupled(self, design: CoreDesign) -> bool:
        assert isinstance(design, Systolic)
        return design.dataflow != "output_stationary"


__all__ = ["SystolicVerification"]
