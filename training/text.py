"""Text that comes with Python itself, as words: the reference that `help()` shows.

Every tenth topic is kept for measuring, the others are learned from.  The text differs between
versions of Python; its checksum is kept with every result.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]

HELD_OUT = 10
"""Of so many topics one is kept for measuring."""

UNKNOWN, END = 0, 1
"""A word that is none of the vocabulary; the end of a topic."""


@dataclass(frozen=True)
class Text:
    """Words as numbers below `vocabulary`: those learned from, and those kept for measuring."""

    learned: Words
    measured: Words
    vocabulary: int
    source: str

    def __len__(self) -> int:
        return len(self.learned)


@cache
def python_reference(vocabulary: int) -> Text:
    """The most frequent words of those learned from, and one for all others."""
    from pydoc_data import topics as reference

    topics: dict[str, str] = reference.topics
    whole = "\n".join(f"{name}\n{topics[name]}" for name in sorted(topics))
    split = [re.findall(r"\w+|[^\w\s]", topics[name].lower()) for name in sorted(topics)]
    learned = [one for number, one in enumerate(split) if number % HELD_OUT]
    measured = split[::HELD_OUT]
    counts = Counter(word for topic in learned for word in topic)
    known = sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - 2]
    numbers = {word: number + 2 for number, word in enumerate(known)}
    version = ".".join(map(str, sys.version_info[:3]))
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return Text(
        _numbered(learned, numbers), _numbered(measured, numbers), vocabulary,
        f"the reference of Python {version} (pydoc_data.topics), sha256 {digest[:16]}",
    )  # fmt: skip


def _numbered(topics: list[list[str]], numbers: dict[str, int]) -> Words:
    found = (word for topic in topics for word in (*(numbers.get(w, UNKNOWN) for w in topic), END))
    return np.fromiter(found, np.int64)


__all__ = ["HELD_OUT", "Text", "Words", "python_reference"]
