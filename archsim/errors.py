"""The error a user sees: what was wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from workloads.errors import WorkloadError
from workloads.limits import check_limit

LARGEST = 1 << 40
"""No count of a design is larger, so that products of counts and widths stay within 64 bits."""


_SHOWN = 40


def shorten(value: object) -> str:
    """A value in a message: a number of thousands of digits by its first ones."""
    try:
        text = str(value)
    except ValueError:  # more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class UserError(Exception):
    """The command line prints it as one line and exits with 2: a user can do something about it."""


class InputError(UserError, ValueError):
    """Bad input."""


@contextmanager
def enough_memory(where: str) -> Generator[None]:
    """Memory that is not there is an `InputError`: limits allow more than some machines."""
    try:
        yield
    except MemoryError as error:
        raise InputError(f"{where}: not enough memory for this: {error}") from error


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless the condition holds."""
    if not condition:
        raise InputError(message)


def require_whole(least: int, word: str, **values: object) -> None:
    """Refuse what is not a whole number from `least` to `LARGEST`; `word` names the lower end."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{name} must be a whole number, not {value!r}")
        if not least <= value <= LARGEST:
            asked = word if value < least else f"be at most {LARGEST}"
            raise InputError(f"{name} must {asked}, not {shorten(value)}")


def require_positive(**values: int) -> None:
    """Refuse values below one, with the grammar "rows must be positive, not 0"."""
    require_whole(1, "be positive", **values)


def require_flag(**values: object) -> None:
    """Refuse what is neither true nor false."""
    for name, value in values.items():
        require(isinstance(value, bool), f"{name} must be true or false, not {value!r}")


def require_within(kind: str, **values: int) -> None:
    """Refuse values above the limit of their kind (`workloads.limits`), naming how to raise it."""
    for name, value in values.items():
        try:
            check_limit(kind, value, name)
        except WorkloadError as error:
            raise InputError(str(error)) from error


HIGHEST_SEED = (1 << 63) - 1
"""What a saved result keeps of a seed."""


def require_seed(seed: int) -> None:
    """Refuse seeds that a saved result could not keep."""
    require(seed >= 0, f"--seed must not be negative, not {shorten(seed)}")
    require(seed <= HIGHEST_SEED, f"--seed must be at most {HIGHEST_SEED}, not {shorten(seed)}")


LOWEST_CLOCK_HZ, HIGHEST_CLOCK_HZ = 1.0, 1e15
"""Beyond any clock; between them every figure of time stays finite."""


def require_clock(clock_hz: float) -> None:
    """Refuse what is no clock, by the grammar of `require_rate`."""
    require_rate(clock_hz=clock_hz)
    require(
        LOWEST_CLOCK_HZ <= clock_hz <= HIGHEST_CLOCK_HZ,
        f"clock_hz must be from {LOWEST_CLOCK_HZ:g} to {HIGHEST_CLOCK_HZ:g}, not {clock_hz:g}",
    )


def require_rate(**values: object) -> None:
    """Refuse what is not a finite number above zero."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} must be a number, not {value!r}")
        require(0 < value < float("inf"), f"{name} must be positive, not {value}")


def nearest(name: str, known: Iterable[str]) -> str:
    """The hint behind an unknown name: "did you mean rows?", or all there are."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"
