"""A host on AXI, in the simulator's process: layers through the registers and the streams.

Masters, sources and sinks are cocotbext-axi's; every channel pauses at random.
"""

import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

QUESTION = "AXI_QUESTION"
ANSWER = "AXI_ANSWER"


def _pauses(draw: random.Random) -> Iterator[bool]:
    share = draw.choice([0.0, 0.2, 0.7])
    while True:
        yield draw.random() < share


class Host:
    """Registers by name, streams by port."""

    def __init__(self, dut: Any, asked: dict[str, Any]) -> None:
        self.dut, self.asked = dut, asked
        draw = random.Random(asked["seed"])
        clocked = {"clock": dut.aclk, "reset": dut.aresetn, "reset_active_level": False}
        self.master: Any = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), **clocked)
        write, read = self.master.write_if, self.master.read_if
        channels = (write.aw_channel, write.w_channel, write.b_channel)
        for channel in (*channels, read.ar_channel, read.r_channel):
            channel.set_pause_generator(_pauses(draw))
        self.streams: dict[str, Any] = {}
        for name, (prefix, size) in asked["streams"].items():
            kind = AxiStreamSource if prefix.startswith("s_") else AxiStreamSink
            bus = AxiStreamBus.from_prefix(dut, prefix)
            self.streams[name] = kind(bus, **clocked, byte_lanes=size)
            self.streams[name].set_pause_generator(_pauses(draw))

    async def read(self, name: str) -> int:
        return int(await self.master.read_dword(self.asked["registers"][name]))

    async def write(self, name: str, value: int) -> Any:
        data = value.to_bytes(4, "little")
        return (await self.master.write(self.asked["registers"][name], data)).resp

    async def counter(self, name: str) -> int:
        low = await self.read(f"{name}_LOW")
        return low | await self.read(f"{name}_HIGH") << 32

    async def layer(self, layer: dict[str, Any]) -> bytes:
        """Run a layer; returns its ofmap."""
        for number, word in enumerate(layer["command"]):
            assert await self.write(f"COMMAND_{number}", word) == AxiResp.OKAY
        assert await self.write("OFMAP_WORDS", layer["ofmap_words"]) == AxiResp.OKAY
        assert await self.write("CONTROL", 1) == AxiResp.OKAY
        assert await self.write("CONTROL", 1) == AxiResp.SLVERR, "a layer is running"
        assert await self.write("OFMAP_WORDS", 1) == AxiResp.SLVERR, "a layer is running"
        for name, data in layer["words"].items():
            if data:
                self.streams[name].send_nowait(AxiStreamFrame(tdata=data))
        frame = await with_timeout(self.streams["ofmap"].recv(), 1, "ms")
        if not int(self.dut.irq.value):
            await with_timeout(RisingEdge(self.dut.irq), 1, "us")
        assert await self.read("STATUS") == 0
        assert await self.read("INTERRUPT_STATUS") == 1
        assert await self.write("INTERRUPT_STATUS", 1) == AxiResp.OKAY
        assert not int(self.dut.irq.value)
        return bytes(frame.tdata)


@cocotb.test()
async def layers(dut: Any) -> None:
    """Identification, refusals, then every layer; leaves ofmaps and counters."""
    asked = pickle.loads(Path(os.environ[QUESTION]).read_bytes())
    cocotb.start_soon(Clock(dut.aclk, 10, "ns").start())
    dut.aresetn.value = 0
    host = Host(dut, asked)
    await ClockCycles(dut.aclk, 3)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 2)
    found: dict[str, Any] = {"reset": {}, "ofmaps": [], "counters": []}
    for name in asked["readable"]:
        found["reset"][name] = await host.read(name)
    refused = await host.master.read(0x7FC, 4)
    assert refused.resp == AxiResp.SLVERR
    assert await host.write("ID", 1) == AxiResp.SLVERR
    assert await host.write("CONTROL", 1) == AxiResp.SLVERR, "no words of the ofmap"
    assert await host.write("INTERRUPT_ENABLE", 1) == AxiResp.OKAY
    for layer in asked["layers"]:
        found["ofmaps"].append(await host.layer(layer))
        await ClockCycles(dut.aclk, 20)
        counted = {name: await host.counter(name) for name in asked["counters"]}
        found["counters"].append(counted)
    Path(os.environ[ANSWER]).write_bytes(pickle.dumps(found))
