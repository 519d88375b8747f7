"""Passes of a layer one behind the other, with the off-chip channel between memory and ports.

Two programs, which are orders of transfers, are timed; the one that takes fewer cycles is run
(docs/adr/0018-channel-of-the-sparse-core.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.served import LayerChannel, Traffic, waits
from archsim.machines.scnn.strips import Strip
from archsim.machines.scnn.timing import PassTiming, pass_timing


@dataclass(frozen=True, kw_only=True, eq=False)
class ServedPasses:
    """Passes that follow one another; behind_cycles: until the last ofmap has left the channel."""

    passes: tuple[PassTiming, ...]
    behind_cycles: int
    spread: bool

    @property
    def cycles(self) -> int:
        """From the first command on."""
        return sum(one.cycles for one in self.passes) + self.behind_cycles


def behind_the_channel(design: Scnn, strips: Sequence[Strip]) -> ServedPasses | None:
    """The passes of a layer in the better program; None if the memory keeps no port waiting.

    Of programs that take equally long the one that spreads nothing.
    """
    if not waits(design.off_chip):
        return None
    programs = (False, True) if len(strips) > 1 else (False,)
    return min((served(design, strips, spread=one) for one in programs), key=lambda one: one.cycles)


def served(design: Scnn, strips: Sequence[Strip], *, spread: bool) -> ServedPasses:
    """The passes in a program: `archsim.machines.scnn.served.LayerChannel`."""
    channel = LayerChannel(design, [_traffic(strip) for strip in strips], spread=spread)
    passes: list[PassTiming] = []
    for strip in strips:
        channel.begin()
        passes.append(pass_timing(design, strip.mapping, strip.operands, channel=channel))
        last = passes[-1]
        channel.end(last.cycles, last.ofmap_cycles, last.bias_cycles)
    behind = channel.written - passes[-1].cycles
    return ServedPasses(passes=tuple(passes), behind_cycles=behind, spread=spread)


def _traffic(strip: Strip) -> Traffic:
    mapping = strip.mapping
    return Traffic(
        ifmap=0 if mapping.ifmap_kept else strip.operands.ifmap.vectors,
        ofmap=0 if mapping.keep_ofmap else strip.operands.ofmap.vectors,
        lists=mapping.groups * mapping.lists,
        group_lists=mapping.lists,
    )


__all__ = ["ServedPasses", "behind_the_channel", "served"]
