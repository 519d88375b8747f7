"""A component at whose boundary are its design's streams and the counters of its actions."""

from abc import abstractmethod
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.ports import Port
from rtl.conformance import COUNTER_BITS


class DesignComponent(wiring.Component):
    """Members: a stream for each of `design.ports`, and count_<action> for each of `counters`."""

    counters: tuple[str, ...] = ()
    """Actions that it counts; set before `__init__` where they hang on the design."""

    def __init__(self, design: Any) -> None:
        self.design = design
        members: dict[str, Any] = {
            port.name: (In if port.direction == "i" else Out)(stream.Signature(port.bits))
            for port in design.ports
        }
        counts = {f"count_{name}": Out(COUNTER_BITS) for name in self.counters}
        super().__init__({**members, **counts})

    @property
    def ports(self) -> tuple[Port, ...]:
        """The streams, with what their lanes hold."""
        return self.design.ports

    def counted(self, m: Module, **events: Any) -> None:
        """Count each action in the cycles in which its signal is 1."""
        for name, event in events.items():
            counter: Signal = getattr(self, f"count_{name}")
            with m.If(event):
                m.d.sync += counter.eq(counter + 1)

    @abstractmethod
    def elaborate(self, platform: object) -> Module:
        """The hardware."""


__all__ = ["DesignComponent"]
