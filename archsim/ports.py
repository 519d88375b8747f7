"""Ports: the streams at a core's boundary, and what crossed them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from archsim.errors import require
from archsim.numbers import IntArray, pack_lanes, unpack_lanes


class CommandField(NamedTuple):
    """One field of a command: its name, its width, whether it is two's complement."""

    name: str
    bits: int
    signed: bool = False

    @property
    def low(self) -> int:
        """The least value that the field holds."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest value that the field holds."""
        return (1 << (self.bits - 1 if self.signed else self.bits)) - 1


@dataclass(frozen=True, kw_only=True)
class Port:
    """One valid/ready stream at the boundary of a core.

    lane_bits: the width of each lane; lane 0 lies in the lowest bits of a word.
    lane_signed: whether a lane is two's complement.
    lane_names: one name a lane where lanes are fields of a record, else empty.
    """

    name: str
    direction: Literal["i", "o"]
    lane_bits: tuple[int, ...]
    lane_signed: tuple[bool, ...]
    lane_names: tuple[str, ...] = ()

    @classmethod
    def uniform(
        cls, name: str, direction: Literal["i", "o"], lanes: int, bits: int, signed: bool = True
    ) -> Port:
        """A port of equal lanes."""
        return cls(
            name=name,
            direction=direction,
            lane_bits=(bits,) * lanes,
            lane_signed=(signed,) * lanes,
        )

    @property
    def lanes(self) -> int:
        return len(self.lane_bits)

    @property
    def bits(self) -> int:
        """Width of a whole word."""
        return sum(self.lane_bits)

    def pack(self, payload: IntArray) -> npt.NDArray[np.uint8]:
        """Payload [n, lanes] to words [n, bytes]."""
        return pack_lanes(payload, self.lane_bits)

    def unpack(self, words: npt.NDArray[np.uint8]) -> IntArray:
        """Words [n, bytes] to payload [n, lanes]."""
        return unpack_lanes(words, self.lane_bits, self.lane_signed)


@dataclass(frozen=True, kw_only=True)
class Transfers:
    """What crossed one port: cycle [n] (strictly rising) and payload [n, lanes]."""

    cycle: IntArray
    payload: IntArray

    def __post_init__(self) -> None:
        require(
            self.payload.ndim == 2 and len(self.cycle) == len(self.payload),
            f"transfers need a payload row a cycle, not {self.payload.shape} "
            f"for {len(self.cycle)} cycles",
        )

    def __len__(self) -> int:
        return len(self.cycle)


class PortAnswer(Protocol):
    """What a model answers, whatever kind of machine it is of.

    transfers: by port.  earliest: for each port, the cycle before which the memory side does not
    offer each word, 0 where nothing but gaps holds words back, [n].  actions: counted, by name.
    """

    @property
    def transfers(self) -> Mapping[str, Transfers]: ...

    @property
    def earliest(self) -> Mapping[str, IntArray]: ...

    @property
    def actions(self) -> Mapping[str, int]: ...

    @property
    def cycles(self) -> int:
        """From cycle 0 to the last ofmap word, both included."""
        ...


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How two recordings of one port differ: counts, and the first place."""

    port: str
    transfers: int
    cycle_differences: int
    value_differences: int
    first: int | None


def compare(port: str, expected: Transfers, actual: Transfers) -> Difference:
    """Count the transfers whose cycle or payload differ; a missing one counts as both."""
    shared = min(len(expected), len(actual))
    missing = max(len(expected), len(actual)) - shared
    late = expected.cycle[:shared] != actual.cycle[:shared]
    wrong = (expected.payload[:shared] != actual.payload[:shared]).any(axis=1)
    bad = np.flatnonzero(late | wrong)
    first = int(bad[0]) if len(bad) else (shared if missing else None)
    return Difference(
        port=port,
        transfers=max(len(expected), len(actual)),
        cycle_differences=int(late.sum()) + missing,
        value_differences=int(wrong.sum()) + missing,
        first=first,
    )


def differences(
    expected: Mapping[str, Transfers], actual: Mapping[str, Transfers]
) -> tuple[Difference, ...]:
    """`compare` for every port of the expected answer."""
    return tuple(compare(name, expected[name], actual[name]) for name in expected)
