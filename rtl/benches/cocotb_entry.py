"""The cocotb test that runs in the simulator's process: read a bench, run it, leave the answer.

For every cycle: just after the rising edge drive what has changed, let the step settle
(`ReadOnly`), then read. All registers have moved by then and all combinational paths, valid to
ready or ready to valid, have come to rest, so what is read is what the next edge will see.
"""

import os
import pickle
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

from archsim.wave_clock import WaveClock
from rtl.benches.bench import RESET_CYCLES, Bench, Outcome, ProtocolError
from rtl.benches.cocotb_files import ANSWER_FILE, BENCH_FILE
from rtl.benches.drivers import BenchRun, InputDriver


class _Wires:
    """One port's handles in the simulator."""

    def __init__(self, dut: Any, name: str) -> None:
        try:
            self.payload = dut[f"{name}__payload"]
            self.valid = dut[f"{name}__valid"]
            self.ready = dut[f"{name}__ready"]
        except KeyError as error:
            raise ValueError(f"port {name}: the core has no such stream") from error


class _CocotbRun:
    """A bench on a cocotb design handle."""

    def __init__(self, dut: Any, bench: Bench) -> None:
        self.state = BenchRun(bench)
        self.wires = [_Wires(dut, port.name) for port in bench.ports]
        self.pairs = list(zip(self.state.drivers, self.wires, strict=True))
        for port, wires in zip(bench.ports, self.wires, strict=True):
            if len(wires.payload) != port.bits:
                raise ValueError(
                    f"port {port.name}: bench has {port.bits} bits, core {len(wires.payload)}"
                )

    def idle(self) -> None:
        """Put valid and ready to 0, and payloads to what may not be looked at."""
        for driver, wires in self.pairs:
            if isinstance(driver, InputDriver):
                wires.valid.value = 0
                wires.payload.value = driver.payload
            else:
                wires.ready.value = 0

    def drive(self) -> None:
        """Put on the wires what this cycle changes."""
        cycle = self.state.cycle
        for driver, wires in self.pairs:
            if not driver.drive(cycle):
                continue
            if isinstance(driver, InputDriver):
                wires.valid.value = driver.valid
                wires.payload.value = driver.payload
            else:
                wires.ready.value = driver.ready

    def sample(self) -> None:
        """Read the settled wires, no more of them than the bench must see."""
        state = self.state
        cycle = state.cycle
        for driver, wires in self.pairs:
            if isinstance(driver, InputDriver):
                crossed = driver.valid and driver.sample(cycle, int(wires.ready.value))
            else:
                valid = int(wires.valid.value)
                payload = int(wires.payload.value) if valid else 0
                crossed = driver.sample(cycle, valid, payload)
            if crossed:
                state.crossed()


async def _tick(signal: Any, clock: WaveClock) -> None:
    """The clock, low first, from its edge 2 on: a period of it has passed in reset."""
    edge = 2
    while True:
        signal.value = edge % 2
        await Timer(clock.edge(edge + 1) - clock.edge(edge), clock.unit)
        edge += 1


async def _answer(dut: Any, bench: Bench, clock: WaveClock) -> Outcome:
    run = _CocotbRun(dut, bench)
    probes = [(name, dut[name]) for name, _ in bench.probes]
    for name, bits in bench.probes:
        if len(dut[name]) != bits:
            raise ValueError(f"probe {name}: bench has {bits} bits, core {len(dut[name])}")
    first = run if bench.before is None else _CocotbRun(dut, bench.before)
    first.idle()
    reset = getattr(dut, "rst", None)
    if reset is not None:
        reset.value = 1
    await Timer(clock.edge(2), clock.unit)
    signal = getattr(dut, "clk", None)
    edge = Timer(clock.edge(2), clock.unit)
    if signal is not None:
        if clock.is_whole:
            Clock(signal, clock.edge(2), clock.unit).start(start_high=False)
        else:
            cocotb.start_soon(_tick(signal, clock))
        edge = RisingEdge(signal)
    if first is not run:
        await _cycles(first, reset, edge)
        run.idle()
        if reset is not None:
            reset.value = 1
    await _cycles(run, reset, edge)
    await ReadOnly()
    return run.state.outcome({name: int(handle.value) for name, handle in probes})


async def _cycles(run: _CocotbRun, reset: Any, edge: Any) -> None:
    """The end of a reset, and the run behind it; both begin and end just behind an edge."""
    settled = ReadOnly()
    for _ in range(RESET_CYCLES):
        await edge
    if reset is not None:
        reset.value = 0
    state = run.state
    while state.running:
        run.drive()
        await settled
        run.sample()
        await edge
        state.advance()


@cocotb.test()
async def bench(dut: Any) -> None:
    """Answer the bench in the file that the environment names."""
    question: tuple[Bench, WaveClock] = pickle.loads(Path(os.environ[BENCH_FILE]).read_bytes())
    found: Outcome | ProtocolError | ValueError
    try:
        found = await _answer(dut, *question)
    except (ProtocolError, ValueError) as error:
        found = error
    Path(os.environ[ANSWER_FILE]).write_bytes(pickle.dumps(found))
