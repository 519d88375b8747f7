"""The window of a PE: which operands a lane may take ahead of their turn."""

from __future__ import annotations

from typing import NamedTuple

from archsim.errors import require_whole

ASIDE = ((1, 1), (1, -1), (2, 2), (2, -2), (1, 3))
"""(rows ahead, lanes aside) of TensorDash's look-aside, in order."""

MOST_AHEAD, MOST_ASIDE = 3, len(ASIDE)


class Place(NamedTuple):
    """A place in the window from a lane's point of view: rows ahead, lanes aside."""

    ahead: int
    aside: int


def places(look_ahead: int, look_aside: int) -> tuple[Place, ...]:
    """What a lane chooses from, the first choice first: its own operands, those of its own lane in
    later rows, those of its neighbours in later rows.

    With 2 and 5 the inputs of TensorDash's multiplexers (8).  A neighbour further ahead than the
    window goes is left out.  Raises `InputError` for depths that there are none of.
    """
    require_whole(0, "not be negative", look_ahead=look_ahead, look_aside=look_aside)
    own = [Place(ahead, 0) for ahead in range(look_ahead + 1)]
    others = [Place(*one) for one in ASIDE[:look_aside] if one[0] <= look_ahead]
    return (*own, *others)


__all__ = ["MOST_AHEAD", "MOST_ASIDE", "Place", "places"]
