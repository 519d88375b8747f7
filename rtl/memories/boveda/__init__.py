"""Hardware of values in as many bits as they need (docs/contracts/compressed-memory.md).

scratchpad   directories, places, rows; `column`: of one group of lanes; `seen_banks`: behind
             layers, as failing cells have them
proofs       what is proved: `pack_proof`, `round_trip_proof`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from archsim.errors import InputError
from archsim.memories.boveda.scratchpad import Boveda
from rtl.core.memory import CellLayer, Placed, Words
from rtl.memories.boveda.scratchpad import CompressedScratchpad, counts

if TYPE_CHECKING:
    from rtl.formal import Proof


class BovedaRtl:
    """`CompressedScratchpad`, which reads its words whole."""

    whole_words = True

    def __init__(self, memory: Boveda) -> None:
        self.memory = memory

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        """With `by_lane` lanes may take the word behind, over the border of two units."""
        shape = {"lanes": words.lanes, "bits": words.bits, "signed": words.signed}
        return CompressedScratchpad, {"memory": self.memory, "straddles": by_lane, **shape}

    def unit_through(self, words: Words, layers: tuple[CellLayer, ...], *, by_lane: bool) -> Placed:
        """Rows and directories behind layers; rows that a tile has not written read as zeros."""
        unit, parameters = self.unit(words, by_lane=by_lane)
        return unit, {**parameters, "layers": layers}

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        """Banks of rows and directories, read and written."""
        return counts(self.memory, words.lanes, straddles=by_lane)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """Raises `InputError`: single words are not compressed."""
        raise InputError("a bank of words that are added to where they lie must be plain")

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of what packs and unpacks its words, and of the codec that is made of the same parts."""
        from rtl.memories.boveda.proofs import both_directions, shifters

        return (*shifters(), *both_directions())


__all__ = ["BovedaRtl"]
