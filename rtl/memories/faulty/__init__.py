"""Hardware of memories whose cells fail (docs/contracts/fault-layer.md).

fault_layer   which bits of a word are read wrong
proofs        what is proved of it
scratchpad    the layer in front of a scratchpad of any kind that keeps words as they are
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from archsim.errors import require
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.scratchpad import Faulty
from rtl.core.memory import Placed, Settings, Words, rtl_of
from rtl.memories.faulty.fault_layer import Layout
from rtl.memories.faulty.scratchpad import FaultyScratchpad

if TYPE_CHECKING:
    from rtl.formal import Proof

SRAM = "words"


class FaultyRtl:
    """`FaultyScratchpad` around what the inner kind places."""

    def __init__(self, memory: Faulty) -> None:
        self.memory, self.inner = memory, rtl_of(memory.inner)
        self.whole_words = self.inner.whole_words

    def faults(self, words: Words) -> FaultMap:
        """The map of the cells of such words."""
        require(words.use is not None, "a faulty memory must be told what it is used for")
        assert words.use is not None
        stored = self.memory.inner
        require(
            stored.by_value(words.use) is None,
            f"no RTL is known for faults in the cells of a {stored.kind} memory: in hardware they "
            f"are of memories that keep words as they are",
        )
        return self.memory.fault_map(words.use, SRAM, words.whole_bits)

    def settings(self, words: Words) -> Settings:
        """Key, draw, rates."""
        return Layout(faults=self.faults(words)).settings()

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        """The inner one's, behind faults."""
        unit, parameters = self.inner.unit(words, by_lane=by_lane)
        return FaultyScratchpad, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "faults": self.faults(words),
            "place": (words.first_bit, self.memory.inner.read_latency_cycles),
        }

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        """As the inner one."""
        return self.inner.events(words, by_lane=by_lane)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The inner one's: what a machine asks a scratchpad's banks for takes no faults."""
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of the layer: faults grow with the rate, and none, all, protected ones are so."""
        from rtl.memories.faulty.proofs import layer_proofs

        return layer_proofs()


__all__ = ["FaultyRtl"]
