"""Hardware of memories whose cells fail (docs/contracts/fault-layer.md).

fault_layer   which bits of a word are read wrong
measured_layer  which, of a measured map that is built in
proofs        what is proved of it
scratchpad    the layer in front of a memory of any kind that keeps words as they are
stream        the layer in front of both memories of a sparse machine's activations
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.lib import wiring

from archsim.errors import require
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memories.faulty.stream import FaultyStream
from archsim.memory import FLIP_FLOPS, StreamUse
from rtl.core.memory import CellLayer, Placed, Settings, Words, bank_for, rtl_of, unit_through
from rtl.core.scnn_cells import number_bits
from rtl.memories.faulty.fault_layer import FaultLayer, Layout
from rtl.memories.faulty.measured_layer import MeasuredLayer
from rtl.memories.faulty.scratchpad import FaultyMemory
from rtl.memories.faulty.stream import FaultyActivations

if TYPE_CHECKING:
    from rtl.formal import Proof

SRAM = "words"


class FaultyBankRtl:
    """`FaultyMemory` around what the inner kind places, of memories of any way of access."""

    def __init__(self, memory: Faulty | FaultyBank) -> None:
        self.memory, self.inner = memory, rtl_of(memory.inner)

    def maps(self, words: Words) -> dict[str, FaultMap]:
        """The maps of the SRAMs that hold such words, in the order of their settings."""
        require(words.use is not None, "a faulty memory must be told what it is used for")
        use = words.use
        assert use is not None
        cells = self.memory.inner.stored(use, np.zeros((1, use.lanes), np.int64))
        bits = {
            sram: bits.shape[-1] * (len(bits) if bits.ndim == 3 else 1)
            for sram, bits in cells.items()
            if sram != FLIP_FLOPS
        }
        if bits == {SRAM: use.word_bits}:
            bits = {SRAM: words.whole_bits}
        return {sram: self.memory.fault_map(use, sram, wide) for sram, wide in bits.items()}

    def settings(self, words: Words) -> Settings | None:
        """Key, draw, rates of each SRAM; none of a measured map."""
        return settings_of_maps(self.maps(words))

    def built(self) -> Any:
        """Chip, draw and rate are registers', of all but a measured map."""
        if self.memory.map is not None:
            return self.memory
        return replace(self.memory, chip=0, draw=0, rate=0.0, voltage=None)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The inner one's: a bank that is not told of which words takes no faults."""
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)

    def bank_for(self, words: Words, *, transparent: bool) -> Placed:
        """The inner one's bank of a half, behind faults; what passes by the cells fails too."""
        unit, parameters = bank_for(self.memory.inner, words, transparent=transparent)
        assert words.use is not None
        return FaultyMemory, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "faults": self.maps(words)[SRAM],
            "place": (words.first_bit, 1),
            "half": words.use.half,
            **({"number_bits": words.number_bits} if words.number_bits else {}),
        }

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of a bank behind the layer: without faults it reads back."""
        from rtl.memories.faulty.proofs import bank_proofs

        return bank_proofs()


def settings_of_maps(maps: Mapping[str, FaultMap]) -> Settings | None:
    """Registers of the faults of SRAMs, in their order; none of measured ones."""
    bits = init = 0
    if any(one.measured for one in maps.values()):
        return None
    for one in maps.values():
        own = Layout(faults=one).settings()
        bits, init = bits + own.bits, init | own.init << bits
    return Settings(bits=bits, init=init)


def layer_of(sram: str, faults: FaultMap) -> CellLayer:
    """What the cells of an SRAM that is read in a cycle are seen through."""
    return CellLayer(
        sram=sram,
        unit=MeasuredLayer if faults.measured else FaultLayer,
        parameters=(("faults", faults), ("latency", 1)),
        settings=None if faults.measured else Layout(faults=faults).settings(),
    )


class FaultyRtl(FaultyBankRtl):
    """Of scratchpads."""

    memory: Faulty

    def __init__(self, memory: Faulty) -> None:
        super().__init__(memory)
        self.whole_words = self.inner.whole_words

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        """The inner one's, behind faults; one that keeps words in another form, of cells that are
        seen through them."""
        maps = self.maps(words)
        if set(maps) != {SRAM}:
            layers = tuple(layer_of(sram, faults) for sram, faults in maps.items())
            return unit_through(self.memory.inner, words, layers, by_lane=by_lane)
        unit, parameters = self.inner.unit(words, by_lane=by_lane)
        return FaultyMemory, {
            "unit": unit,
            "parameters": tuple(sorted(parameters.items())),
            "faults": maps[SRAM],
            "place": (words.first_bit, self.memory.inner.read_latency_cycles),
        }

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        """As the inner one."""
        return self.inner.events(words, by_lane=by_lane)

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of the layer: faults grow with the rate, and none, all, protected ones are so."""
        from rtl.memories.faulty.proofs import layer_proofs

        return layer_proofs()


class FaultyStreamRtl:
    """Of the activations of a sparse machine.  Lists may grow longer than the memory that they are
    written to (`StreamRtl.overflows`)."""

    overflows = True

    def __init__(self, memory: FaultyStream) -> None:
        self.memory, self.inner = memory, rtl_of(memory.inner)

    def unit(self, design: Any, use: StreamUse | None = None) -> Placed:
        """Both memories of a PE, behind faults; compressed ones, of cells that are seen through
        them."""
        maps = self._maps(design, use)
        if self.memory.by_value:
            layers = tuple(layer_of(sram, faults) for sram, faults in maps.items())
            return self.inner.unit_through(design, layers)
        return FaultyActivations, {"design": design, "faults": maps[SRAM]}

    def port(self, design: Any) -> wiring.Signature:
        """Of either, as the inner one."""
        return self.inner.port(design)

    def events(self, design: Any) -> dict[str, int]:
        """As the inner one."""
        return self.inner.events(design)

    def outside(self, design: Any, use: StreamUse | None = None) -> dict[str, int]:
        """The PE's number, and registers."""
        found, settings = {"number": number_bits(design)}, self.settings(design, use)
        return found if settings is None else found | {"settings": settings.bits}

    def settings(self, design: Any, use: StreamUse | None = None) -> Settings | None:
        """Key, draw, rates of each SRAM of both memories; none of a measured map."""
        return settings_of_maps(self._maps(design, use))

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The inner one's."""
        return self.inner.bank(bits=bits, depth=depth, transparent=transparent)

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Lists end, whatever the cells give."""
        from rtl.memories.faulty.proofs import stream_proofs

        return stream_proofs()

    def _maps(self, design: Any, use: StreamUse | None) -> dict[str, FaultMap]:
        return self.memory.maps(design.stream_use("iaram") if use is None else use)


__all__ = ["FaultyBankRtl", "FaultyRtl", "FaultyStreamRtl"]
