"""A mapped netlist simulated cycle by cycle, and the toggles of its nets counted.

Zero delay: every net takes one settled value a cycle, so that glitches are not seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from archsim.kernels import inlined, kernel
from rtl.benches.bench import RESET_CYCLES, Bench, Outcome
from rtl.benches.drivers import BenchRun, InputDriver, OutputDriver
from rtl.synthesis.flat_netlist import FlatNetlist, Memory, Tables

__all__ = ["GateSimulation", "idle", "run_gates"]

Bits = npt.NDArray[np.uint8]


class GateSimulation:
    """The state of one netlist. `values` [nets]: 0 or 1; registers and memories begin with 0."""

    def __init__(self, flat: FlatNetlist) -> None:
        self.flat = flat
        self.values: Bits = np.zeros(flat.nets, np.uint8)
        self.values[1] = 1
        self.toggles = np.zeros(flat.nets, np.int64)
        self.cycles = 0
        self._before = self.values.copy()
        self._nets = {name: np.array(nets, np.int64) for name, nets in flat.ports.items()}
        self._memories = [_MemoryState(memory) for memory in flat.memories]

    def drive(self, port: str, value: int) -> None:
        """Put a number on an input port."""
        nets = self._nets[port]
        data = np.frombuffer(value.to_bytes((len(nets) + 7) // 8, "little"), np.uint8)
        self.values[nets] = np.unpackbits(data, count=len(nets), bitorder="little")

    def drive_bits(self, port: str, bits: Bits) -> None:
        """Put bits on an input port, the least significant one first."""
        self.values[self._nets[port]] = bits

    def read(self, port: str) -> int:
        """The unsigned number on a port."""
        packed = np.packbits(self.values[self._nets[port]], bitorder="little")
        return int.from_bytes(packed.tobytes(), "little")

    def settle(self) -> None:
        """Let all logic follow the registers and inputs."""
        _evaluate(self.values, *_arrays(self.flat.logic))

    def count(self) -> None:
        """End a cycle that counts: add what has toggled since the last call of this or `skip`."""
        self.toggles += self.values != self._before
        self.cycles += 1
        self.skip()

    def skip(self) -> None:
        """End a cycle that does not count."""
        np.copyto(self._before, self.values)

    def edge(self) -> None:
        """A rising clock edge: registers and memories sample. Logic follows at `settle`."""
        registers = self.flat.registers
        sampled = _sampled(self.values, *_arrays(registers))
        for memory in self._memories:
            memory.sample(self.values)
        self.values[registers.outputs] = sampled
        for memory in self._memories:
            memory.publish(self.values)


class _MemoryState:
    """The words of a memory [depth, bits], and what its read port will show."""

    def __init__(self, memory: Memory) -> None:
        self.ports = {name: np.array(nets, np.int64) for name, nets in memory.ports.items()}
        self.transparent = memory.transparent
        self.words: Bits = np.zeros((memory.depth, len(self.ports["read_data"])), np.uint8)
        self.shown = self.words[0].copy()

    def sample(self, values: Bits) -> None:
        """Read and write as `sram` and `held_sram` do; beyond the depth, words are 0."""
        reading = self._address(values, "read_address")
        data = values[self.ports["write_data"]]
        writing = self._address(values, "write_address") if values[self.ports["write"][0]] else -1
        if "read" in self.ports and not values[self.ports["read"][0]]:
            pass
        elif reading >= len(self.words):
            self.shown = np.zeros_like(data)
        elif self.transparent and reading == writing:
            self.shown = data
        else:
            self.shown = self.words[reading].copy()
        if 0 <= writing < len(self.words):
            self.words[writing] = data

    def publish(self, values: Bits) -> None:
        """Put the word read on the nets of the read port."""
        values[self.ports["read_data"]] = self.shown

    def _address(self, values: Bits, port: str) -> int:
        packed = np.packbits(values[self.ports[port]], bitorder="little")
        return int.from_bytes(packed.tobytes(), "little")


def run_gates(
    flat: FlatNetlist,
    bench: Bench,
    *,
    window_cycles: int,
    progress: Callable[[int], object] = lambda cycle: None,
) -> tuple[Outcome, GateSimulation]:
    """Run a bench on a netlist with its ports; toggles of the first `window_cycles` are counted.

    The clock's two toggles a cycle are not among them. `progress` is told every hundredth cycle.
    Raises `ProtocolError` if the netlist breaks the stream rule.
    """
    simulation = GateSimulation(flat)
    state = BenchRun(bench)
    for driver in state.drivers:
        _put(simulation, driver)
    _reset(simulation)
    while state.running:
        for driver in state.drivers:
            if driver.drive(state.cycle):
                _put(simulation, driver)
        simulation.settle()
        if state.cycle < window_cycles:
            simulation.count()
        _sample(simulation, state)
        simulation.edge()
        if state.cycle % 100 == 0:
            progress(state.cycle)
        state.advance()
    simulation.settle()
    probes = {name: simulation.read(name) for name, _ in bench.probes}
    return state.outcome(probes), simulation


def idle(flat: FlatNetlist, cycles: int) -> GateSimulation:
    """So many cycles after reset with every input 0."""
    simulation = GateSimulation(flat)
    _reset(simulation)
    for _ in range(cycles):
        simulation.settle()
        simulation.count()
        simulation.edge()
    return simulation


def _reset(simulation: GateSimulation) -> None:
    """Hold the reset as all benches do; what toggles until cycle 0 does not count."""
    simulation.drive("rst", 1)
    for _ in range(RESET_CYCLES):
        simulation.settle()
        simulation.edge()
    simulation.drive("rst", 0)
    simulation.settle()
    simulation.skip()


def _put(simulation: GateSimulation, driver: InputDriver | OutputDriver) -> None:
    """What a driver says, on its wires."""
    if isinstance(driver, InputDriver):
        simulation.drive(f"{driver.port.name}__valid", driver.valid)
        simulation.drive(f"{driver.port.name}__payload", driver.payload)
    else:
        simulation.drive(f"{driver.port.name}__ready", driver.ready)


def _sample(simulation: GateSimulation, state: BenchRun) -> None:
    """Hand the drivers what the settled wires say."""
    for driver in state.drivers:
        name = driver.port.name
        if isinstance(driver, InputDriver):
            crossed = driver.sample(state.cycle, simulation.read(f"{name}__ready"))
        else:
            valid = simulation.read(f"{name}__valid")
            payload = simulation.read(f"{name}__payload") if valid else 0
            crossed = driver.sample(state.cycle, valid, payload)
        if crossed:
            state.crossed()


def _arrays(tables: Tables) -> tuple[npt.NDArray[np.int64 | np.uint64], ...]:
    return tables.outputs, tables.tables, tables.first, tables.sources


@inlined
def _bit(values, tables, first, sources, number):  # pyright: ignore
    """The bit of a function's table that its inputs select."""
    index = 0
    for place in range(first[number], first[number + 1]):
        index |= int(values[sources[place]]) << (place - first[number])
    return (tables[number] >> np.uint64(index)) & np.uint64(1)


@kernel("u1.1, i8.1, u8.1, i8.1, i8.1")
def _evaluate(values, outputs, tables, first, sources):  # pyright: ignore
    """Each function in order, each reading what those before it have written."""
    for number in range(len(outputs)):
        values[outputs[number]] = _bit(values, tables, first, sources, number)


@kernel("u1.1, i8.1, u8.1, i8.1, i8.1")
def _sampled(values, outputs, tables, first, sources):  # pyright: ignore
    """The next states of all registers, from the values as they are."""
    found = np.empty(len(outputs), np.uint8)
    for number in range(len(outputs)):
        found[number] = _bit(values, tables, first, sources, number)
    return found
