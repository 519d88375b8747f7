"""What is read of words, without a way over the cells where a memory knows a shorter one."""

from __future__ import annotations

from archsim.memory.seam import Bank, Use
from archsim.numbers import IntArray


def seen(memory: Bank, use: Use, words: IntArray) -> IntArray:
    """The words [words, lanes] that are read of words written from address 0 on."""
    masks = memory.masks(use, len(words))
    if masks is None:
        return memory.read_back(use, memory.stored(use, words), len(words))
    return masks.read(words)


__all__ = ["seen"]
