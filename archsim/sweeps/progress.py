"""How far a run is, and what it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Progress:
    """done: points of this run, of at most `total`, those that were known among them; kept: points
    that the study has; seconds: since it began; best: least value so far of each objective, of
    points that fulfil the requirements."""

    done: int
    total: int
    kept: int
    seconds: float
    best: dict[str, float]

    @property
    def rate(self) -> float:
        """Points a second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0


@dataclass(kw_only=True)
class Ran:
    """What a run did.  new, known: points that it computed, and that were kept before.

    Seconds: in all; of CPU in the sampler, in the writer, and in all workers.
    """

    new: int = 0
    known: int = 0
    refused: int = 0
    failed: int = 0
    seconds: float = 0.0
    sampler_seconds: float = 0.0
    writer_seconds: float = 0.0
    simulator_seconds: float = 0.0


__all__ = ["Progress", "Ran"]
