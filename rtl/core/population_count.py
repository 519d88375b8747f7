"""How many of many bits are set: the twin of `archsim.memories.boveda.population_count`."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memories.boveda.population_count import SUMMED, count_stages
from rtl.core.adder_tree import sum_of


class PopulationCount(wiring.Component):
    """o[t + latency] = number of ones of i[t].

    The bits are registered first, so that what makes them is not delayed by the sum; then 32
    registers are added to one in each cycle.  Latency: `len(count_stages(bits))`: 1 cycle for one
    bit, 2 up to 32 bits, 3 up to 1024.  Throughput: one count a cycle.  Never stalls.
    """

    i: Signal
    o: Signal

    def __init__(self, *, bits: int) -> None:
        self.bits = bits
        self.stages = count_stages(bits)
        super().__init__({"i": In(bits), "o": Out(range(bits + 1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        groups: list[list[Value]] = [[bit] for bit in self.i]
        registers: list[Signal] = []
        for number, stage in enumerate(self.stages):
            registers = [
                Signal(range(most + 1), name=f"stage_{number}_{at}")
                for at, most in enumerate(stage)
            ]
            for register, group in zip(registers, groups, strict=True):
                m.d.sync += register.eq(sum_of(group))
            found: list[Value] = [*registers]
            groups = [found[at : at + SUMMED] for at in range(0, len(found), SUMMED)]
        m.d.comb += self.o.eq(registers[0])
        return m
