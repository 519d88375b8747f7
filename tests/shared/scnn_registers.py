"""The operand stage of a PE with registers, one register after the other (docs/contracts/scnn.md,
*Registers*)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scnn_lists import Pe

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

FETCHED = 5
"""Cycles from a group's start until the first vector of activations is decoded."""

DECODED = 3
"""From the cycle in which a vector of weights crosses to that in which it is written."""

PLACES, STAGES = 2, 2
"""Pairs that wait behind the issue, and registers between them and the products that are sent."""

BARRIER = 1
"""From the cycle in which all PEs have ended to the one in which that is known."""

LOADED = 1
"""More cycles from the last ifmap vector to the first group."""

WRITTEN_LATER = 12
"""More cycles from the end of the last drain to the one in which the last list can be read."""


class Registers:
    """Of an `Oracle`."""

    design: Scnn
    cycle: int
    group: int
    started: list[int]
    blocks: list[Any]
    groups: list[Any]

    if TYPE_CHECKING:

        def start_pair(self, pe: Pe) -> str: ...

        def finish_pair(self, pe: Pe) -> bool: ...

        def finish_block(self, pe: Pe) -> bool: ...

        def take_products(self, pe: Pe) -> None: ...

    def step_registers(self, pe: Pe) -> bool:
        """A cycle: whether the PE's part of the group is over with it."""
        over = self._send(pe)
        if pe.sending is None and pe.stages[-1] is not None:
            pe.sending, pe.stages[-1] = pe.stages[-1], None
            pe.waiting = pe.sending[1]
        for behind in range(STAGES - 1, 0, -1):
            if pe.stages[behind] is None:
                pe.stages[behind], pe.stages[behind - 1] = pe.stages[behind - 1], None
        room = len(pe.issued) < PLACES
        if pe.stages[0] is None and pe.issued:
            pe.stages[0] = pe.issued.pop(0)
        if room and self.cycle >= self.started[self.group] + FETCHED:
            self._issue(pe)
        return over

    def _send(self, pe: Pe) -> bool:
        """What the last register does: whether the group ends with it."""
        if pe.sending is None:
            pe.figures["wait"] += 1
            return False
        what, _, last = pe.sending
        pe.figures[what] += 1
        if what == "busy":
            self.take_products(pe)
            if pe.waiting:
                return False
        pe.sending = pe.waiting = None
        return last

    def _issue(self, pe: Pe) -> None:
        """The next pair, or block that is passed over, if its vectors are there: its products, and
        whether it is the group's last."""
        if pe.block * len(self.groups) >= (self.group + 1) * len(self.blocks):
            return
        sent, pe.waiting = pe.waiting, None
        why, products = self.start_pair(pe), pe.waiting
        pe.waiting = sent
        if why == "skip":
            pe.issued.append(("skip", None, self.finish_block(pe)))
        elif not why:
            pe.issued.append(("busy", products, self.finish_pair(pe)))
