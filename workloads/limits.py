"""How large an input may be: every limit in one place, checked before anything is allocated.

`archsim --limit tiles=20000000 run …` raises one for a run, the environment variable
ARCHSIM_LIMITS="tiles=20000000,lanes=131072" for all; Python users call `set_limits`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace

from workloads.digits import whole
from workloads.errors import WorkloadError, unknown_name

ENVIRONMENT = "ARCHSIM_LIMITS"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The largest of each that is taken.

    lanes: of a port's word, PEs along a side of an array or grid; multipliers: of a machine;
    size: of one dimension of a tensor, a kernel, a stride, a pad; elements: of one tensor with
    values; macs: of a network that is computed with values; tiles: of a layer; steps: of a
    recurrent layer where cycles depend on values; layers: of a network; nodes: of an imported
    graph, functions and sub-graphs unrolled; rtl_multipliers: of a
    design that is made as hardware; rtl_words: of one of its memories; cases: of `verify`;
    file_mib: MiB of a file of results or arrays, unpacked.
    """

    lanes: int = 1 << 16
    multipliers: int = 1 << 24
    size: int = 1 << 40
    elements: int = 1 << 30
    macs: int = 1 << 40
    tiles: int = 1 << 20
    steps: int = 1 << 12
    layers: int = 1 << 17
    nodes: int = 1 << 18
    rtl_multipliers: int = 1 << 17
    rtl_words: int = 1 << 26
    cases: int = 1_000_000
    file_mib: int = 4096


HIGHEST = 1 << 62
"""No limit can be raised above it: counts are of 64 bits."""

_limits: Limits | None = None


def limits() -> Limits:
    """The limits in force.  Raises WorkloadError where the environment names none of them."""
    global _limits
    if _limits is None:
        _limits = changed(Limits(), os.environ.get(ENVIRONMENT, "").split(","), ENVIRONMENT)
    return _limits


def set_limits(settings: list[str], where: str = "--limit") -> None:
    """Raise (or lower) limits for this process: ["tiles=20000000"].  Raises WorkloadError."""
    global _limits
    _limits = changed(limits(), settings, where)


def changed(start: Limits, settings: list[str], where: str) -> Limits:
    """Limits with NAME=NUMBER settings; empty ones are passed over.  Raises WorkloadError."""
    names = [entry.name for entry in fields(Limits)]
    for setting in filter(None, (one.strip() for one in settings)):
        name, _, text = setting.partition("=")
        if name not in names:
            raise unknown_name(f"limit of {where}", name[:60], names)
        number = whole(text)
        if number is None or not 0 < number <= HIGHEST:
            raise WorkloadError(
                f"{where} takes NAME=NUMBER with a whole number from 1 to {HIGHEST}, "
                f"not {setting[:60]!r}"
            )
        start = replace(start, **{name: number})
    return start


def check_limit(kind: str, value: int, what: str) -> None:
    """Raise WorkloadError if `value` is above the limit; `what` opens the message."""
    most: int = getattr(limits(), kind)
    if value > most:
        shown = f"{value:,}" if value < HIGHEST else "more"
        raise WorkloadError(
            f"{what} must be at most {most:,}, not {shown} "
            f"(--limit {kind}=NUMBER before the command raises it)"
        )
