"""The one exception which bad input to this package raises."""

from __future__ import annotations

from collections.abc import Sequence


class WorkloadError(ValueError):
    """A network, layer, file or argument cannot be used.

    The message says what was wrong, where, and what would be right; it is fit to be shown to a
    user as it stands, without a traceback.
    """


def unknown_name(what: str, name: str, known: Sequence[str]) -> WorkloadError:
    """The error for a name which is not `known`: it lists the nearest, or all if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=3, cutoff=0.4)
    hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(known)}"
    return WorkloadError(f"no {what} is named {name!r}; {hint}")
