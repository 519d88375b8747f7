"""The keys and values that a language model keeps of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.checks import countable


@dataclass(frozen=True, kw_only=True)
class KvCache:
    """elements: of all blocks and sequences, with those appended.  appended: that a network adds.

    readers: names of the layers whose second operand it is.
    """

    elements: int
    appended: int
    readers: tuple[str, ...]

    def __post_init__(self) -> None:
        countable("KV cache", elements=self.elements, appended=self.appended)


__all__ = ["KvCache"]
