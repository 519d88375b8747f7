"""Hardware of values in as many bits as they need (docs/contracts/compressed-stream.md).

memories   both memories of a PE, with one packer and one unpacker
proofs     what is proved: packer and unpacker around rows
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from amaranth.lib import wiring

from archsim.errors import InputError
from archsim.memories.boveda_stream.stream import BovedaStream
from rtl.core.memory import CellLayer, Placed
from rtl.core.scnn_cells import lists_overflow
from rtl.memories.boveda_stream.memories import StreamMemories, row_event_fields, stream_signature

if TYPE_CHECKING:
    from rtl.formal import Proof


class BovedaStreamRtl:
    """`StreamMemories`, which are stepped from vector to vector."""

    def __init__(self, memory: BovedaStream) -> None:
        self.memory = memory

    def unit(self, design: Any) -> Placed:
        """Both memories of a PE; bounded where ofmaps may be larger than meant."""
        return self.unit_through(design, ())

    def unit_through(self, design: Any, layers: tuple[CellLayer, ...]) -> Placed:
        """The same, of cells that are seen through layers."""
        found: dict[str, Any] = {"design": design, "memory": self.memory}
        if layers:
            found["layers"] = layers
        if layers or lists_overflow(design):
            found["bounded"] = True
        return StreamMemories, found

    def port(self, design: Any) -> wiring.Signature:
        """Of either."""
        return stream_signature(design)

    def events(self, design: Any) -> dict[str, int]:
        """Rows written, and used up."""
        return row_event_fields(design.ifmap_lanes // self.memory.group)

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """Raises `InputError`: single words are not compressed."""
        raise InputError("a bank of words at any address must be plain")

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """What is packed is unpacked, in its order."""
        from rtl.memories.boveda_stream.proofs import stream_proofs

        return stream_proofs()


__all__ = ["BovedaStreamRtl"]
