"""What a simulation bench drives and what it answers, for all simulators alike.

Cycle 0 is the first clock cycle after reset. Word `k` of a port crosses at cycle `x(k)`, the
cycle in which valid and ready are both 1; `x(-1) = -1`. With
`start(k) = max(earliest[k], x(k-1) + 1 + gaps[k])`,

* an input's valid is 1 from `start(k)` until word `k` crosses, and 0 after the last word; while
  it is 0 the payload is the complement of the next word (all ones after the last), so that a
  core which looks at it too early is seen;
* an output's ready is 1 from `start(k)` until word `k` crosses, and stays 1 after the listed
  words: a core which emits too many is seen.

A bench with `before` is that one first, for its `max_cycles` or until its own end; then the reset
is held for `RESET_CYCLES`, and the run begins as if nothing had been.

A run ends `tail_cycles` after the last listed word of all ports has crossed, or at `max_cycles`.
Probes are read after the last clock edge, before anything else is driven.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = [
    "IDLE",
    "RESET_CYCLES",
    "Bench",
    "Crossing",
    "Outcome",
    "ProtocolError",
    "Stimulus",
    "StreamPort",
    "Watch",
]

IDLE = "settings_"
"""What the names of plain inputs begin with that a bench leaves at 0 (`rtl.core.settings`)."""

RESET_CYCLES = 2
"""Cycles for which every runner holds the reset before cycle 0 (valid and ready are 0)."""


class ProtocolError(RuntimeError):
    """A core has broken the stream rule: valid dropped, or payload changed, before ready.

    `port` is the output's name, `cycle` the first cycle in which the offered word is gone. Of
    several such outputs in one cycle the bench's first is named.
    """

    def __init__(self, port: str, cycle: int) -> None:
        super().__init__(
            f"output {port} did not keep its word until it was accepted: cycle {cycle}"
        )
        self.port = port
        self.cycle = cycle

    def __reduce__(self) -> tuple[type["ProtocolError"], tuple[str, int]]:
        return ProtocolError, (self.port, self.cycle)


@dataclass(frozen=True, kw_only=True)
class StreamPort:
    """A stream at a core's boundary: `<name>__payload`, `<name>__valid`, `<name>__ready`.

    `direction` is seen from the core ("i": the bench produces); `bits` is the payload's width.
    """

    name: str
    direction: Literal["i", "o"]
    bits: int

    def __post_init__(self) -> None:
        if self.direction not in ("i", "o"):
            raise ValueError(f"direction must be 'i' or 'o', not {self.direction!r}")
        if self.bits < 1:
            raise ValueError(f"bits must be positive, not {self.bits}")

    @property
    def word_bytes(self) -> int:
        """Bytes of one packed word."""
        return (self.bits + 7) // 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Stimulus:
    """What the bench does at one port.

    `words` uint8 `[n, word_bytes]`, little-endian, unused high bits 0 (None for an output);
    `gaps` int64 `[n]`, cycles from the earlier crossing; `earliest` int64 `[n]`, absolute cycles.
    """

    words: npt.NDArray[np.uint8] | None
    gaps: npt.NDArray[np.int64]
    earliest: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, cycles in (("gaps", self.gaps), ("earliest", self.earliest)):
            if cycles.dtype != np.int64 or cycles.ndim != 1:
                raise ValueError(f"{name} must be int64 [n], not {cycles.dtype} {cycles.shape}")
            if cycles.size and int(cycles.min()) < 0:
                raise ValueError(f"{name} must not be negative, not {cycles.min()}")
        if len(self.gaps) != len(self.earliest):
            raise ValueError(
                f"gaps and earliest must be equally long, not {len(self.gaps)} "
                f"and {len(self.earliest)}"
            )
        if self.words is not None and (self.words.dtype != np.uint8 or self.words.ndim != 2):
            raise ValueError(f"words must be uint8 [n, bytes], not {self.words.dtype}")
        if self.words is not None and len(self.words) != len(self.gaps):
            raise ValueError(f"words must be {len(self.gaps)}, not {len(self.words)}")

    def __len__(self) -> int:
        return len(self.gaps)

    @classmethod
    def offer(
        cls,
        words: npt.NDArray[np.uint8],
        *,
        gaps: npt.ArrayLike = 0,
        earliest: npt.ArrayLike = 0,
    ) -> "Stimulus":
        """An input's stimulus: `words` uint8 `[n, bytes]`; `gaps`, `earliest` scalar or `[n]`."""
        n = len(words)
        return cls(words=words, gaps=_cycles(gaps, n), earliest=_cycles(earliest, n))

    @classmethod
    def accept(cls, n: int, *, gaps: npt.ArrayLike = 0, earliest: npt.ArrayLike = 0) -> "Stimulus":
        """An output's stimulus: `n` words are awaited; `gaps`, `earliest` scalar or `[n]`."""
        return cls(words=None, gaps=_cycles(gaps, n), earliest=_cycles(earliest, n))


def _cycles(values: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    return np.broadcast_to(np.asarray(values, np.int64), (n,)).copy()


@dataclass(frozen=True, kw_only=True)
class Watch:
    """One to three wires of the modules inside a core, read in every cycle of a run.

    `path` is a pattern (`*`) of an instance's path below the core, "dispatcher.*_queue"; a wire of
    several bits counts as 1 where all its bits are 1.  What is seen is of all instances together:
    bit Σ wires[n] · 2ⁿ of `Outcome.seen[name]` is 1 if in some cycle the wires of one instance had
    these values.  Raises `ValueError` for another number of wires.
    """

    name: str
    path: str
    wires: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.wires) <= 3:
            raise ValueError(f"wires must be one to three, not {len(self.wires)}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """One run: a core's ports and probes, and what is done at every port.

    `probes` are (name, bits ≤ 64) of plain outputs; `stimuli` has one entry a port; `before` is
    what runs until a reset, with the same ports.
    Raises `ValueError` where the parts do not fit together.
    """

    ports: tuple[StreamPort, ...]
    probes: tuple[tuple[str, int], ...] = ()
    stimuli: Mapping[str, Stimulus]
    max_cycles: int
    tail_cycles: int = 64
    before: "Bench | None" = None

    def __post_init__(self) -> None:
        names = [port.name for port in self.ports] + [name for name, _ in self.probes]
        if len(set(names)) != len(names):
            raise ValueError(f"names of ports and probes must differ, not {names}")
        if set(self.stimuli) != {port.name for port in self.ports}:
            raise ValueError(f"stimuli must be for the ports, not for {sorted(self.stimuli)}")
        for name, bits in self.probes:
            if not 1 <= bits <= 64:
                raise ValueError(f"bits of probe {name} must be 1 to 64, not {bits}")
        if self.max_cycles < 1:
            raise ValueError(f"max_cycles must be positive, not {self.max_cycles}")
        if self.tail_cycles < 0:
            raise ValueError(f"tail_cycles must not be negative, not {self.tail_cycles}")
        for port in self.ports:
            _check_words(port, self.stimuli[port.name])
        if self.before is not None and self.before.ports != self.ports:
            raise ValueError("a bench and what runs before it must have the same ports")

    @property
    def listed_words(self) -> int:
        """Words which must cross before the tail begins."""
        return sum(len(stimulus) for stimulus in self.stimuli.values())


def _check_words(port: StreamPort, stimulus: Stimulus) -> None:
    words = stimulus.words
    if (words is None) != (port.direction == "o"):
        what = "needs" if port.direction == "i" else "must not have"
        raise ValueError(f"{port.name} {what} words")
    if words is None:
        return
    if words.shape[1] != port.word_bytes:
        wanted = port.word_bytes
        raise ValueError(f"words of {port.name} must be {wanted} bytes, not {words.shape[1]}")
    spare = 8 * port.word_bytes - port.bits
    if spare and np.any(words[:, -1] >> (8 - spare)):
        raise ValueError(f"words of {port.name} must have {port.bits} bits: a higher one is set")


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossing:
    """The words that crossed a port: `cycles` int64 `[n]`, `words` uint8 `[n, word_bytes]`."""

    cycles: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """A run's answer: what crossed each port, the probes at the end, and the cycles run.

    `timed_out` says that `max_cycles` ended the run, before the words or the tail did.  `seen`: by
    name what each `Watch` saw, where the simulator has them; what ran before a reset is part of it.
    """

    crossings: Mapping[str, Crossing]
    probes: Mapping[str, int]
    cycles: int
    timed_out: bool
    seen: Mapping[str, int] = field(default_factory=dict[str, int])

    def differences(self, other: "Outcome") -> list[str]:
        """How `other` differs, in words; an empty list if it is the same."""
        return list(self._differences(other))

    def _differences(self, other: "Outcome") -> Iterator[str]:
        for name in ("cycles", "timed_out", "probes"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                yield f"{name}: {mine} against {theirs}"
        if set(self.crossings) != set(other.crossings):
            yield f"ports: {sorted(self.crossings)} against {sorted(other.crossings)}"
            return
        for name, mine in self.crossings.items():
            theirs = other.crossings[name]
            if len(mine.cycles) != len(theirs.cycles):
                yield f"{name}: {len(mine.cycles)} words against {len(theirs.cycles)}"
            n = min(len(mine.cycles), len(theirs.cycles))
            wrong = (mine.cycles[:n] != theirs.cycles[:n]) | (
                (mine.words[:n] != theirs.words[:n]).any(axis=1)
            )
            if wrong.any():
                k = int(wrong.argmax())
                yield (
                    f"{name}: word {k} at cycle {mine.cycles[k]} {mine.words[k].tobytes().hex()} "
                    f"against cycle {theirs.cycles[k]} {theirs.words[k].tobytes().hex()}"
                )
