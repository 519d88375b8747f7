"""Names of other people's files, made fit to be shown: in a terminal, a page, a file's name."""

from __future__ import annotations

import zlib

LONGEST = 120
"""Characters of a name that are kept of a file's."""

LONGEST_KEPT = 2 * LONGEST
"""Characters of a layer's name, which may have more behind that of its node."""


def printable(name: str, longest: int = LONGEST) -> str:
    """The name with control characters, bidirectional marks and lone surrogates escaped (\\x1b),
    and cut where it is longer than `longest`, with a sum of the whole name behind it.

    Names that differ stay different; printable ones of usual length stay as they are.
    """
    if not name.isprintable():
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
        name = "".join(shown)
    if len(name) > longest:
        name = f"{name[: longest - 9]}~{zlib.crc32(name.encode()):08x}"
    return name
