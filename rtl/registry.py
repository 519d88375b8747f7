"""The RTL of every kind of design, found through the entry-point group `archsim.rtl`."""

from functools import cache
from importlib.metadata import entry_points

from amaranth.lib import wiring

from archsim.core.design import Design
from archsim.errors import InputError


@cache
def _cores() -> dict[str, type[wiring.Component]]:
    return {entry.name: entry.load() for entry in entry_points(group="archsim.rtl")}


def core_of(design: Design) -> wiring.Component:
    """The component of a design; `InputError` where its kind has no RTL."""
    if design.kind not in _cores():
        raise InputError(
            f"no RTL for designs of kind {design.kind!r}; known: {', '.join(_cores())}"
        )
    return _cores()[design.kind](design)
