"""What every address of a core behind AXI4-Lite reads, in the cycle in which it is answered."""

from pathlib import Path
from typing import Any

import pytest
from amaranth.sim import Simulator
from faulty_module import faulty_module

from archsim.machine.registry import load_design, with_settings
from rtl.axi import axi_core
from rtl.axi.register_map import COMMAND, register_map

MEMORIES = [f"{name}_memory.capacity_bytes=1024" for name in ("ifmap", "weight", "accumulator")]
DESIGN = with_settings(load_design("edge-16"), ["rows=1", "columns=1", "bias_words=4", *MEMORIES])
SLAVE_ERROR = 2
WORD = 0x5EED0000
REGISTERS = register_map(DESIGN)
WRITTEN = {
    one.name: WORD + n for n, one in enumerate(REGISTERS) if one.name.startswith("COMMAND_")
    and one.access == "rw"
}  # fmt: skip

COUNTED = {"CYCLES": 0x1234_8765_4321, "WAIT_BIAS": 0x5678_0000_0009}
"""Counters that stand still, for no layer runs; each lower half is read before its upper one."""
LOW = 0xFFFF_FFFF


class Host:
    """Reads and writes, one after the other."""

    def __init__(self, ctx: Any, core: Any) -> None:
        self.ctx, self.core = ctx, core

    async def tick(self) -> None:
        """To the middle of the next cycle."""
        for level in (1, 0):
            self.ctx.set(self.core.aclk, level)
            await self.ctx.delay(1e-6)

    async def write(self, address: int, value: int) -> None:
        ctx, core = self.ctx, self.core
        for name, given in (("aw", address), ("w", value)):
            ctx.set(getattr(core, f"s_axi_{name}{'addr' if name == 'aw' else 'data'}"), given)
            ctx.set(getattr(core, f"s_axi_{name}valid"), 1)
        ctx.set(core.s_axi_wstrb, 15)
        ctx.set(core.s_axi_bready, 1)
        await self.tick()
        ctx.set(core.s_axi_awvalid, 0)
        ctx.set(core.s_axi_wvalid, 0)
        while not ctx.get(core.s_axi_bvalid):
            await self.tick()
        await self.tick()

    async def read(self, address: int) -> tuple[int, int]:
        """Data and response; 2 cycles behind the address, while another address is offered."""
        ctx, core = self.ctx, self.core
        ctx.set(core.s_axi_araddr, address)
        ctx.set(core.s_axi_arvalid, 1)
        ctx.set(core.s_axi_rready, 1)
        assert ctx.get(core.s_axi_arready)
        await self.tick()
        ctx.set(core.s_axi_araddr, address ^ 4)
        assert not ctx.get(core.s_axi_rvalid)
        await self.tick()
        ctx.set(core.s_axi_arvalid, 0)
        assert ctx.get(core.s_axi_rvalid)
        found = ctx.get(core.s_axi_rdata), ctx.get(core.s_axi_rresp)
        await self.tick()
        return found

    async def read_late(self, first: int, second: int) -> tuple[int, int]:
        """Of the second, which crosses while the first is answered and has not been taken."""
        ctx, core = self.ctx, self.core
        ctx.set(core.s_axi_araddr, first)
        ctx.set(core.s_axi_arvalid, 1)
        ctx.set(core.s_axi_rready, 0)
        await self.tick()
        await self.tick()
        ctx.set(core.s_axi_araddr, second)
        assert ctx.get(core.s_axi_rvalid) and ctx.get(core.s_axi_arready)
        await self.tick()
        ctx.set(core.s_axi_arvalid, 0)
        ctx.set(core.s_axi_araddr, first)
        await self.tick()
        ctx.set(core.s_axi_rready, 1)
        await self.tick()
        await self.tick()
        found = ctx.get(core.s_axi_rdata), ctx.get(core.s_axi_rresp)
        await self.tick()
        return found


def reads(module: Any) -> dict[int, tuple[int, int]]:
    """What every address of a word reads, behind writes of the command; some of those between."""
    core: Any = module.AxiCore(design=DESIGN)
    ends = max(one.address for one in REGISTERS) + 8
    near = {at for one in REGISTERS for at in range(one.address - 4, one.address + 9, 4)}
    found: dict[int, tuple[int, int]] = {}

    async def bench(ctx: Any) -> None:
        ctx.set(core.aresetn, 0)
        host = Host(ctx, core)
        await host.tick()
        ctx.set(core.aresetn, 1)
        for one in REGISTERS:
            if one.name in WRITTEN:
                await host.write(one.address, WRITTEN[one.name])
        for name, count in COUNTED.items():
            ctx.set(core.waits[name], count)
        for address in sorted({at % 0x1000 for at in near} | {ends, 0x400, 0xFFC}):
            found[address] = await host.read(address)
        for first, second in ((0, COMMAND + 4), (COMMAND, 4), (4, 0xFFC)):
            late = await host.read_late(first, second)
            found[second] = late if found[second] == late else (-1, -1)
        low, high = (one.address for one in REGISTERS if one.name in ("CYCLES_LOW", "CYCLES_HIGH"))
        for address in (low, 0, high):  # the upper half is kept meanwhile
            again = await host.read(address)
            found[address] = again if found[address] == again else (-1, -1)

    simulator = Simulator(core)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def wrong(found: dict[int, tuple[int, int]]) -> list[int]:
    """Addresses that do not read what the map says."""
    named = {one.address: one for one in REGISTERS}
    wanted: dict[int, tuple[int, int]] = {}
    halves = {f"{name}_LOW": count & LOW for name, count in COUNTED.items()}
    halves |= {f"{name}_HIGH": count >> 32 for name, count in COUNTED.items()}
    values = {**WRITTEN, **halves}
    for address in found:
        one = named.get(address)
        if one is None or one.access == "w":
            wanted[address] = 0, SLAVE_ERROR
        else:
            wanted[address] = values.get(one.name, one.reset), 0
    return [address for address in found if found[address] != wanted[address]]


def test_every_register_and_what_is_beside_them() -> None:
    found = reads(axi_core)
    assert wrong(found) == []
    assert {one.address for one in REGISTERS} < set(found)


FAULTS = {
    "an address that is looked at while it waits": ("with m.If(crosses):", "with m.If(1):"),
    "nothing read without an error": ("~Cat(asked.values()).any()", "0"),
    "a write-only register that is read": ('if "r" not in register.access', "if False"),
    "a register twice": ("(word == register.address >> 2)", "(word[1:] == register.address >> 3)"),
    "a bit that is not read": ("value[bit : bit + 1] for", "value[bit : bit + 1] & (bit != 9) for"),
    "the upper half of another counter": ("Mux(asked[name], value[DATA_BITS:], 0)",
                                          "value[DATA_BITS:]"),
    "an upper half that is not kept": ("slave.read & counted", "slave.read"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(fault: str, tmp_path: Path) -> None:
    assert wrong(reads(faulty_module(axi_core, tmp_path, FAULTS[fault])))
