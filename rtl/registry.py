"""The RTL of every kind of design, found through the entry-point group `archsim.rtl`.

An entry is the component, made from a design.  Its `random_case` draws cases for the conformance
suite (`rtl.conformance.RandomCase`).
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from amaranth.lib import wiring

from archsim.core.design import Design
from archsim.errors import InputError
from rtl.conformance import RandomCase


@cache
def _cores() -> dict[str, Any]:
    return {entry.name: entry.load() for entry in entry_points(group="archsim.rtl")}


def _kind(design: Design) -> Any:
    if design.kind not in _cores():
        raise InputError(
            f"no RTL for designs of kind {design.kind!r}; known: {', '.join(_cores())}"
        )
    return _cores()[design.kind]


def core_of(design: Design) -> wiring.Component:
    """The component of a design; `InputError` where its kind has no RTL."""
    return _kind(design)(design)


def random_case_of(design: Design) -> RandomCase:
    """What draws cases of a design; `InputError` where its kind has no RTL or brings no cases."""
    found = getattr(_kind(design), "random_case", None)
    if found is None:
        raise InputError(f"designs of kind {design.kind!r} bring no cases to verify them with")
    return found
