"""Bytes of a file mutated, always in the same ways."""

from __future__ import annotations

import random
from collections.abc import Iterator


def mutants(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Bits flipped, bytes dropped, doubled and exchanged, ends cut."""
    draw = random.Random(seed)
    for _ in range(count):
        made = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(made) or 1)
            match draw.randrange(5):
                case 0 if made:
                    made[at] ^= 1 << draw.randrange(8)
                case 1:
                    del made[at : at + draw.randint(1, 8)]
                case 2:
                    made[at:at] = made[at : at + draw.randint(1, 30)]
                case 3 if made:
                    made[at] = draw.randrange(256)
                case _:
                    del made[at:]
        yield bytes(made)
