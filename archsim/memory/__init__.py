"""Memories as a machine sees them: what it asks, whatever kind stands there (ADR 19).

seam          what a machine says of a memory's use (`Use`), and what every kind answers
tile_store    what memories answer whose capacity hangs on values
plain         SRAMs that keep words as they are
around        a kind around another one
at_once       what is read of words, by a memory's shorter way where it has one
kinds         kinds by name, as other packages add them, and as plain data
off_chip      the memory outside the chip

The rooms of kinds that store words in another form: `archsim.memories`.
"""

from archsim.memory.off_chip import OffChip
from archsim.memory.plain import Plain, PlainBank, PlainStream
from archsim.memory.seam import (
    FLIP_FLOPS,
    Bank,
    Cells,
    Memory,
    Scratchpad,
    StreamMemory,
    StreamUse,
    Use,
)

__all__ = [
    "FLIP_FLOPS",
    "Bank",
    "Cells",
    "Memory",
    "OffChip",
    "Plain",
    "PlainBank",
    "PlainStream",
    "Scratchpad",
    "StreamMemory",
    "StreamUse",
    "Use",
]
