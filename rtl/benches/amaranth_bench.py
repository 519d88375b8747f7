"""Run a bench on a component in Amaranth's own simulator: slow, but sees into everything."""

import contextlib
from pathlib import Path
from typing import Any

from amaranth.hdl import ClockDomain, Module, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator

from rtl.benches.bench import RESET_CYCLES, Bench, Outcome
from rtl.benches.boundary import check_boundary, ports_of, probes_of
from rtl.benches.drivers import BenchRun, InputDriver

__all__ = ["run_amaranth"]

CLOCK_SECONDS = 1e-8
"""The clock's period in a written wave."""


def run_amaranth(component: wiring.Component, bench: Bench, *, vcd: Path | None = None) -> Outcome:
    """Run `bench` on `component`, whose members bear the names of the bench's ports and probes.

    Writes a wave to `vcd` if given. Raises `ValueError` if bench and component do not fit,
    `ProtocolError` if the component breaks the stream rule.
    """
    check_boundary(bench, ports_of(component), probes_of(component))
    top = Module()
    domain: Any = ClockDomain("sync")
    top.domains += domain
    core: Any = component
    top.submodules.dut = core
    simulator = Simulator(top)
    simulator.add_clock(CLOCK_SECONDS, domain="sync")
    process = _BenchProcess(component, bench, domain)
    simulator.add_process(process.run)
    with simulator.write_vcd(str(vcd)) if vcd is not None else contextlib.nullcontext():
        while process.outcome is None:
            simulator.advance()
    return process.outcome


class _BenchProcess:
    """One process at the clock: sample what was before the edge, drive what comes after it."""

    def __init__(self, component: wiring.Component, bench: Bench, domain: Any) -> None:
        self.outcome: Outcome | None = None
        self._bench = bench
        self._domain = domain
        self._state = BenchRun(bench.before or bench)
        self._wires: list[tuple[Value, Value, Value]] = []
        self._sampled: list[Value] = []
        for driver in self._state.drivers:
            port = getattr(component, driver.port.name)
            payload = Value.cast(port.payload)
            payload = payload.as_unsigned() if payload.shape().signed else payload
            self._wires.append((payload, port.valid, port.ready))
            is_input = isinstance(driver, InputDriver)
            self._sampled += [port.ready] if is_input else [port.valid, payload]
        self._probes = [
            Value.cast(getattr(component, name)).as_unsigned() for name, _ in bench.probes
        ]

    async def run(self, ctx: Any) -> None:
        """The process. Its last act is to set `outcome`."""
        if self._bench.before is not None:
            await self._run(ctx)
            self._state = BenchRun(self._bench)
        await self._run(ctx)
        state = self._state
        _, _, *values = await ctx.tick().sample(*self._probes)
        names = [name for name, _ in self._bench.probes]
        self.outcome = state.outcome(dict(zip(names, values, strict=True)))

    async def _run(self, ctx: Any) -> None:
        """A reset, and the cycles of the state behind it."""
        state = self._state
        self._idle(ctx)
        ctx.set(self._domain.rst, 1)
        for _ in range(RESET_CYCLES):
            await ctx.tick()
        ctx.set(self._domain.rst, 0)
        if state.running:
            self._drive(ctx)
            async for _, _, *wires in ctx.tick().sample(*self._sampled):
                self._sample(wires)
                state.advance()
                if not state.running:
                    break
                self._drive(ctx)

    def _idle(self, ctx: Any) -> None:
        for driver, (_, valid, ready) in zip(self._state.drivers, self._wires, strict=True):
            ctx.set(valid if isinstance(driver, InputDriver) else ready, 0)

    def _drive(self, ctx: Any) -> None:
        cycle = self._state.cycle
        for driver, (payload, valid, ready) in zip(self._state.drivers, self._wires, strict=True):
            if not driver.drive(cycle):
                continue
            if isinstance(driver, InputDriver):
                ctx.set(valid, driver.valid)
                ctx.set(payload, driver.payload)
            else:
                ctx.set(ready, driver.ready)

    def _sample(self, wires: list[int]) -> None:
        cycle, at = self._state.cycle, 0
        for driver in self._state.drivers:
            if isinstance(driver, InputDriver):
                crossed = driver.sample(cycle, wires[at])
                at += 1
            else:
                crossed = driver.sample(cycle, wires[at], wires[at + 1])
                at += 2
            if crossed:
                self._state.crossed()
