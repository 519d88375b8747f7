"""The RTL of every kind of design, found through the entry-point group `archsim.rtl`.

An entry is the component, made from a design.  Its `verification()` is what draws its cases
(`rtl.verification`); `settings`, which may be there, are those of its memories
(`rtl.core.settings`).
"""

from collections.abc import Mapping
from typing import Any

from amaranth.lib import wiring

from archsim.errors import InputError, require_within
from archsim.machine.design import Design
from archsim.plugins import needed, no_call, package_of, plugins
from rtl.core.memory import Settings
from rtl.verification import Verification


def _kind(design: Design) -> Any:
    cores = plugins("archsim.rtl")
    if design.kind not in cores:
        raise InputError(f"no RTL for designs of kind {design.kind!r}; known: {', '.join(cores)}")
    return needed(cores[design.kind], no_call)


def core_kind(design: Design) -> Any:
    """The class of a design's component; `InputError` as of `core_of`."""
    require_within("rtl_multipliers", multipliers=design.macs_per_cycle)
    return _kind(design)


def core_of(design: Design) -> wiring.Component:
    """The component of a design; `InputError` where its kind has no RTL, or it is too large."""
    core = core_kind(design)(design)
    if not isinstance(core, wiring.Component):
        what = type(core).__name__
        raise InputError(f"{_entry_of(design)} must make a component of a design, not {what}")
    return core


def settings_in(design: Design) -> Mapping[str, Settings]:
    """What a core's memories take from registers, by memory: `settings` of its component, if it
    has any."""
    core: Any = core_of(design)
    core._MustUse__silence = True  # only its settings are looked at
    return getattr(core, "settings", {})


def verification_of(design: Design) -> Verification:
    """How a design is proved; `InputError` where its kind has no RTL or brings no cases."""
    found = getattr(_kind(design), "verification", None)
    if found is None:
        raise InputError(f"{_entry_of(design)} brings no cases to verify designs with")
    return found()


def _entry_of(design: Design) -> str:
    entry = plugins("archsim.rtl")[design.kind]
    return f"{entry.name} ({entry.group}) of package {package_of(entry)}"
