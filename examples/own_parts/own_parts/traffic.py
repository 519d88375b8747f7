"""Bytes that cross a machine's ports for a multiply-accumulate: an objective of sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.simulate import simulate
from workloads.layers import Network


@dataclass(frozen=True, kw_only=True)
class BytesPerMac:
    """written: what a byte written counts, beside one that is read."""

    unit: ClassVar[str] = "bytes/MAC"

    written: float = 1.0

    @property
    def network(self) -> Network | None:
        """It is of any network."""
        return None

    def check(self, design: Design, network: Network) -> None:
        """Not of machines whose traffic hangs on values: there are none."""
        if design.machine_model().timed_by_values:
            raise InputError(f"bytes_per_mac is not of {design.kind} machines, which want operands")

    def value(self, design: Design, network: Network) -> float:
        """Of all layers together."""
        result = simulate(design, network)
        total = 0.0
        for layer in result.layers:
            written = layer.bytes_moved["ofmap"]
            total += layer.total_bytes + (self.written - 1.0) * written
        return total / network.macs
