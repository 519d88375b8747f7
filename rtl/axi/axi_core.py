"""A core behind AXI: operands and outputs as AXI4-Stream, everything else in registers."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machine.design import Design
from archsim.ports import Port
from rtl.axi.lite_slave import DATA_BITS, LiteSlave, lite_ports
from rtl.axi.register_map import (
    COMMAND,
    SETTINGS,
    Register,
    command_words,
    has_settings,
    register_map,
)
from rtl.hierarchy import place
from rtl.registry import core_kind

ADDRESS_BITS = 12
COUNTER_BITS = 48


def stream_name(port: Port) -> str:
    """The prefix of a port's AXI4-Stream signals."""
    return f"{'s' if port.direction == 'i' else 'm'}_axis_{port.name}"


def data_bits(port: Port) -> int:
    """Bits of TDATA: whole bytes."""
    return -(-port.bits // 8) * 8


class AxiCore(wiring.Component):
    """The core of a design; the layer of the registers COMMAND begins with CONTROL.START.

    Words of ifmap, weights, biases and ofmap cross as in the core itself, in the same order and
    with the same back-pressure; TLAST goes with the OFMAP_WORDS-th word of a layer, at which the
    interrupt rises.  What is written where nothing may be is answered with SLVERR and does nothing.
    Latency: a command crosses in the 5th cycle behind the write of START, if the core takes it.

    Members
    -------
    aclk, aresetn: clock and synchronous reset, low when active; s_axi_…: AXI4-Lite;
    s_axis_NAME_…, m_axis_ofmap_…: AXI4-Stream; irq: high while it is due and enabled.
    """

    def __init__(self, *, design: Design) -> None:
        self.design = design
        self.registers = register_map(design)
        self.streams = tuple(
            port for port in design.machine_model().ports if port.name != "command"
        )
        members: dict[str, wiring.Member] = {"aclk": In(1), "aresetn": In(1), "irq": Out(1)}
        lite = lite_ports(ADDRESS_BITS)
        members |= {f"s_axi_{name}": member for name, member in lite.items()}
        for port in self.streams:
            ahead, back = (In, Out) if port.direction == "i" else (Out, In)
            prefix = stream_name(port)
            members |= {
                f"{prefix}_tdata": ahead(data_bits(port)),
                f"{prefix}_tvalid": ahead(1),
                f"{prefix}_tready": back(1),
            }
            if port.direction == "o":
                members[f"{prefix}_tlast"] = Out(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = ClockDomain(local=True)
        io: Any = self
        m.d.comb += [ClockSignal().eq(io.aclk), ResetSignal().eq(~io.aresetn)]
        self.core = place(m, "core", core_kind(self.design), design=self.design)
        self.slave: Any = place(m, "slave", LiteSlave, address_bits=ADDRESS_BITS)
        for name, member in lite_ports(ADDRESS_BITS).items():
            outer, inner = getattr(io, f"s_axi_{name}"), getattr(self.slave, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        self._decode(m)
        self._layer(m)
        self._settings(m)
        self._streams(m)
        self._read(m)
        return m

    def _decode(self, m: Module) -> None:
        """Which register an address is, in registers: it is steady a cycle before the write."""
        self.hits: dict[str, Signal] = {}
        self.of_command = Signal(name="of_command")
        word = self.slave.write_address[2:]
        m.d.sync += self.of_command.eq(word >= COMMAND >> 2)
        for register in self.registers:
            if "w" in register.access:
                self.hits[register.name] = hit = Signal(name=f"hit_{register.name.lower()}")
                m.d.sync += hit.eq(word == register.address >> 2)
        self.may_be_written = Cat(self.hits.values()).any()

    def _wrote(self, name: str) -> Value:
        """The register is written in this cycle."""
        return self.slave.write & self.hits[name]

    def _merged(self, old: Value) -> Value:
        """A register of 32 bits with the written bytes."""
        slave = self.slave
        return Cat(
            Mux(slave.write_bytes[byte], slave.write_data, old).word_select(byte, 8)
            for byte in range(DATA_BITS // 8)
        )

    def _layer(self, m: Module) -> None:
        """Command, start, end and interrupt of a layer."""
        slave, io = self.slave, self._io
        words = command_words(self.design)
        self.command = [Signal(DATA_BITS, name=f"command_{n}") for n in range(words)]
        self.pending, self.running = Signal(name="pending"), Signal(name="running")
        self.enabled, self.done = Signal(name="enabled"), Signal(name="done")
        self.words = Signal(DATA_BITS, name="ofmap_words")
        self.left = Signal(DATA_BITS, name="ofmap_left")
        busy = self.pending | self.running
        starts = self._wrote("CONTROL") & slave.write_bytes[0] & slave.write_data[0]
        no_words = Signal(init=1, name="no_words")  # a write is not followed by one at once
        m.d.sync += no_words.eq(self.words == 0)
        self.refused = starts & (busy | no_words)
        self.locked = (self.of_command & self.pending) | (self._wrote("OFMAP_WORDS") & busy)
        if has_settings(self.design):
            self.locked |= self._wrote(SETTINGS) & busy
        command: Any = self.core.command
        m.d.comb += [
            Value.cast(command.payload).eq(Cat(self.command)),
            command.valid.eq(self.pending),
            io.irq.eq(self.done & self.enabled),
        ]
        for number, word in enumerate(self.command):
            with m.If(self._wrote(f"COMMAND_{number}") & ~self.locked):
                m.d.sync += word.eq(self._merged(word))
        with m.If(self._wrote("OFMAP_WORDS") & ~self.locked):
            m.d.sync += self.words.eq(self._merged(self.words))
        with m.If(self._wrote("INTERRUPT_ENABLE") & slave.write_bytes[0]):
            m.d.sync += self.enabled.eq(slave.write_data[0])
        with m.If(self._wrote("INTERRUPT_STATUS") & slave.write_bytes[0] & slave.write_data[0]):
            m.d.sync += self.done.eq(0)
        with m.If(self.pending & command.ready):
            m.d.sync += self.pending.eq(0)
        crossed = self.core.ofmap.valid & self.core.ofmap.ready
        with m.If(crossed & self.running):
            m.d.sync += self.left.eq(self.left - 1)
            with m.If(self.left == 1):
                m.d.sync += [self.running.eq(0), self.done.eq(1)]
        with m.If(starts & ~self.refused):
            m.d.sync += [self.pending.eq(1), self.running.eq(1), self.left.eq(self.words)]

    def _settings(self, m: Module) -> None:
        """A bit a write into the chain of memories that take settings."""
        if has_settings(self.design):
            slave, core = self.slave, self.core
            m.d.comb += core.settings_in.eq(slave.write_data[0])
            shifts = self._wrote(SETTINGS) & slave.write_bytes[0] & ~self.locked
            m.d.comb += core.settings_shift.eq(shifts)

    @property
    def _io(self) -> Any:
        return self

    def _streams(self, m: Module) -> None:
        """Ports to AXI4-Stream, and how long each waits."""
        self.waits: dict[str, Signal] = {}
        busy = self.pending | self.running
        cycles = Signal(COUNTER_BITS, name="cycles")
        m.d.sync += cycles.eq(cycles + busy)
        self.waits["CYCLES"] = cycles
        for port in self.streams:
            inner: Any = getattr(self.core, port.name)
            data, valid, ready = (
                getattr(self, f"{stream_name(port)}_t{what}") for what in ("data", "valid", "ready")
            )
            wait = Signal(COUNTER_BITS, name=f"wait_{port.name}")
            self.waits[f"WAIT_{port.name.upper()}"] = wait
            if port.direction == "i":
                m.d.comb += [inner.payload.eq(data), inner.valid.eq(valid), ready.eq(inner.ready)]
                waits = inner.ready & ~valid
            else:
                m.d.comb += [data.eq(inner.payload), valid.eq(inner.valid), inner.ready.eq(ready)]
                m.d.comb += getattr(self, f"{stream_name(port)}_tlast").eq(self.left == 1)
                waits = inner.valid & ~ready
            m.d.sync += wait.eq(wait + (busy & waits))

    def _value(self, register: Register) -> Value:
        """What a register reads."""
        named: dict[str, Value] = {
            "STATUS": Cat(self.pending, self.running),
            "INTERRUPT_ENABLE": self.enabled,
            "INTERRUPT_STATUS": self.done,
            "OFMAP_WORDS": self.words,
            "OFMAP_LEFT": self.left,
            **{f"COMMAND_{number}": word for number, word in enumerate(self.command)},
        }
        return named.get(register.name, Value.cast(register.reset))

    def _counter(self, register: Register) -> Value:
        name = register.name.rpartition("_")[0]
        if name in self.waits:
            return self.waits[name]
        return getattr(self.core, f"count_{name.removeprefix('COUNT_').lower()}")

    def _read(self, m: Module) -> None:
        """What is read; and which accesses are refused.

        Which register an address is lies in registers, decoded in the cycle in which it crosses.
        The lower half of a counter keeps the upper one.
        """
        slave, io = self.slave, self._io
        word, crosses = io.s_axi_araddr[2:], io.s_axi_arvalid & io.s_axi_arready
        kept = Signal(COUNTER_BITS - DATA_BITS, name="upper")
        given: list[Value] = []
        upper: list[Value] = []
        asked: dict[str, Signal] = {}
        for register in self.registers:
            if "r" not in register.access:
                continue
            name = register.name
            asked[name] = Signal(name=f"asked_{name.lower()}")
            with m.If(crosses):
                m.d.sync += asked[name].eq(word == register.address >> 2)
            value = kept if name.endswith("_HIGH") else self._value(register)
            if name.endswith("_LOW"):
                value = self._counter(register)
                upper.append(Mux(asked[name], value[DATA_BITS:], 0))
            given.append(Mux(asked[name], value[:DATA_BITS], 0))
        counted = Cat(one for name, one in asked.items() if name.endswith("_LOW")).any()
        with m.If(slave.read & counted):
            m.d.sync += kept.eq(_any(upper))
        m.d.comb += [
            slave.read_data.eq(_any(given)),
            slave.read_error.eq(~Cat(asked.values()).any()),
            slave.write_error.eq(~self.may_be_written | self.refused | self.locked),
        ]


def _any(values: Sequence[Value]) -> Value:
    """Values of which all but one are 0, laid over each other; a bit is one gate of all."""
    bits = max(map(len, values))
    return Cat(Cat(value[bit : bit + 1] for value in values).any() for bit in range(bits))
