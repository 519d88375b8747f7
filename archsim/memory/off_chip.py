"""The off-chip memory that fills a machine's own memories."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.errors import LARGEST, require, require_positive, require_whole


@dataclass(frozen=True, kw_only=True)
class OffChip:
    """Off-chip memory: it decides in which cycles words are offered and accepted.

    bytes_per_cycle: bandwidth at the core's clock, of one channel that serves the ports'
        transfers in program order (docs/adr/0012-one-channel.md); 0 means that every port moves
        a word a cycle.
    latency_cycles: from asking for words, all with the layer's command, to the channel.
    burst_bytes: words come from the channel a burst at a time.
    shared: False gives each port a channel of its own, with the whole bandwidth.
    weight_bytes_per_cycle: a channel for weights alone, as the TPU's DDR3; None shares the above.
    """

    bytes_per_cycle: float = 0.0
    weight_bytes_per_cycle: float | None = None
    latency_cycles: int = 0
    burst_bytes: int = 64
    shared: bool = True

    def __post_init__(self) -> None:
        if self.bytes_per_cycle != 0:
            _require_rate("bytes_per_cycle", self.bytes_per_cycle)
        if self.weight_bytes_per_cycle is not None:
            _require_rate("weight_bytes_per_cycle", self.weight_bytes_per_cycle)
        require_whole(0, "not be negative", latency_cycles=self.latency_cycles)
        require_positive(burst_bytes=self.burst_bytes)


def _require_rate(name: str, rate: float) -> None:
    """Rates are kept in 1/1024 of a byte per cycle (`archsim.tiled.traffic`)."""
    require(rate > 0, f"{name} must be positive, not {rate}")
    require(rate * 1024 >= 1, f"{name} must be at least 1/1024, not {rate}")
    require(rate <= LARGEST, f"{name} must be at most {LARGEST}, not {rate}")
