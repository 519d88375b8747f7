"""Where the cycles of an array went, as hardware counters would attribute them.

`LayerResult.where` asks where cycles would have gone with ports that never wait, and gives the
rest to the memory.  A counter in a machine sees the schedule as it is: while the weights of a
fold are not on the chip the array waits for weights; once they are, and are being shifted in
with nothing streaming, it waits for the shift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from archsim.layer.problem import Tiling
from archsim.tiled.design import CoreDesign
from archsim.tiled.gaps import NO_GAPS
from archsim.tiled.plan import PlanRecord, plan_row
from archsim.tiled.schedule import schedule
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.tiled.traffic import services_of
from archsim.tiled.walk import walk_layer
from workloads.layers import Conv2d, MatMul, Network


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """Cycles of the array by what it did or waited for; all but `macs` and the counts are cycles.

    active: moving words enter.  weight_stall: the next weights are not in the scratchpad.
    weight_shift: they are, and are shifted in with nothing else to do.  ifmap_stall: the moving
    words are not there.  drain: after a layer's last moving word, until its last output.
    other: accumulators not yet free, commands.
    """

    active: int = 0
    weight_stall: int = 0
    weight_shift: int = 0
    ifmap_stall: int = 0
    drain: int = 0
    other: int = 0
    macs: int = 0
    folds: int = 0
    weight_bytes: int = 0

    def __add__(self, more: Attribution) -> Attribution:
        return Attribution(
            **{name: value + getattr(more, name) for name, value in vars(self).items()}
        )

    def __mul__(self, times: int) -> Attribution:
        return Attribution(**{name: value * times for name, value in vars(self).items()})

    @property
    def cycles(self) -> int:
        """All cycles, from the first command to the last output."""
        stalls = self.weight_stall + self.weight_shift + self.ifmap_stall
        return self.active + stalls + self.drain + self.other


def attribute_layer(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling | None = None
) -> Attribution:
    """The attribution of one layer, with the design's off-chip memory; tiled by hand if asked."""
    tiling = plan_tiling(design, layer, tiling)
    tiles = walk_layer(design.numerics.problem(layer), tiling, design.machine)
    plan = schedule(tiles, design.machine, services_of(design.machine), NO_GAPS)
    timed = time_layer(design, layer, tiling)
    waits = PlanRecord(*plan.sum(axis=0).tolist())
    return Attribution(
        active=timed.where["computing"],
        weight_stall=waits.wait_weight,
        weight_shift=waits.wait_fill + waits.bubble,
        ifmap_stall=waits.wait_ifmap,
        drain=timed.cycles - plan_row(plan, -1).stream_end,
        other=waits.wait_control + waits.wait_output,
        macs=layer.macs,
        folds=timed.folds,
        weight_bytes=timed.bytes_moved["weight"],
    )


def attribute(
    design: CoreDesign,
    network: Network,
    by_hand: Callable[[Conv2d | MatMul], Tiling | None] = lambda _: None,
) -> Attribution:
    """The attribution of a network's matrix layers; layers of one shape are timed once.

    by_hand: a layer's tiling, or None for the automatic one.
    """
    shapes = Counter(design.numerics.problem(layer) for layer in network.matrix_layers)
    example = {design.numerics.problem(layer): layer for layer in network.matrix_layers}
    total = Attribution()
    for shape, times in shapes.items():
        total = total + attribute_layer(design, example[shape], by_hand(example[shape])) * times
    return total
