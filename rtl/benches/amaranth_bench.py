"""Run a bench on a component in Amaranth's own simulator: slow, but sees into everything."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.hdl import ClockDomain, Module, Value
from amaranth.lib import wiring
from amaranth.sim import Simulator

from rtl.benches.bench import RESET_CYCLES, Bench, Outcome
from rtl.benches.boundary import check_boundary, ports_of, probes_of
from rtl.benches.drivers import BenchRun, InputDriver

__all__ = ["Elaborated", "run_amaranth"]

CLOCK_SECONDS = 1e-8
"""The clock's period in a written wave."""


def run_amaranth(component: wiring.Component, bench: Bench, *, vcd: Path | None = None) -> Outcome:
    """Run `bench` on `component`, whose members bear the names of the bench's ports and probes.

    Writes a wave to `vcd` if given. Raises `ValueError` if bench and component do not fit,
    `ProtocolError` if the component breaks the stream rule.
    """
    return Elaborated(lambda: component).run(bench, vcd=vcd)


class Elaborated:
    """A component in the simulator, elaborated at its first bench and for all behind it.

    Each bench begins with every signal and memory at its initial value. `make` makes the component,
    once more behind a bench that ended with an error.
    """

    def __init__(self, make: Callable[[], wiring.Component]) -> None:
        self._make = make
        self._component: Any = None
        self._domain: Any = None
        self._simulator: Simulator | None = None
        self._process: _BenchProcess | None = None

    def run(self, bench: Bench, *, vcd: Path | None = None) -> Outcome:
        """As `run_amaranth`."""
        simulator, self._simulator = self._simulator, None
        if simulator is None:
            self._component = self._make()
        component = self._component
        check_boundary(bench, ports_of(component), probes_of(component))
        if simulator is None:
            simulator = self._elaborated()
        else:
            simulator.reset()
        self._process = process = _BenchProcess(component, bench, self._domain)
        with simulator.write_vcd(str(vcd)) if vcd is not None else contextlib.nullcontext():
            while process.outcome is None:
                simulator.advance()
        self._simulator = simulator  # not behind an error: what waited for a signal would wait on
        return process.outcome

    def _elaborated(self) -> Simulator:
        top = Module()
        self._domain = ClockDomain("sync")
        top.domains += self._domain
        top.submodules.dut = self._component
        simulator = Simulator(top)
        simulator.add_clock(CLOCK_SECONDS, domain="sync")
        simulator.add_process(self._run)
        return simulator

    async def _run(self, ctx: Any) -> None:
        assert self._process is not None
        await self._process.run(ctx)


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
