"""The ifmap scratchpad's banks: a vector of lanes read at any element address."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memory import Scratchpad
from rtl.core.scratchpad import scratchpad


class AlignedBanks(wiring.Component):
    """o[j] = tile[address + j] if low ≤ j < high, else 0.

    Element a lies in bank a mod lanes, row ⌊a / lanes⌋: any `lanes` neighbours lie in different
    banks, and a rotation puts them in order.  Latency: 2 cycles from address to o (memory, then
    rotation and mask).  Throughput: one vector a cycle.  Never stalls.

    Members
    -------
    write, write_half, write_address, write_data: a row of all banks, from the loader; read_half:
    the half that is read; address: of lane 0, which may lie outside the tile if low > 0; low, high:
    the lanes that count; o: the vector.
    """

    write: Signal
    write_half: Signal
    write_address: Signal
    write_data: Signal
    read_half: Signal
    address: Signal
    low: Signal
    high: Signal
    o: Signal

    def __init__(self, *, memory: Scratchpad, lanes: int, bits: int, depth: int) -> None:
        self.memory = memory
        self.lanes = lanes
        self.bits = bits
        self.depth = depth
        super().__init__(
            {
                "write": In(1),
                "write_half": In(1),
                "write_address": In(range(max(depth, 2))),
                "write_data": In(lanes * bits),
                "read_half": In(1),
                "address": In(signed(28)),
                "low": In(range(lanes + 1)),
                "high": In(range(lanes + 1)),
                "o": Out(lanes * bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift_bits = (self.lanes - 1).bit_length()
        row, offset = self.address[shift_bits:], self.address[:shift_bits]
        read: list[Signal] = []
        for lane in range(self.lanes):
            bank = scratchpad(m, f"bank_{lane}", self.memory, bits=self.bits, depth=self.depth)
            borrow = (offset > lane) if lane + 1 < self.lanes else 0
            m.d.comb += [
                bank.write.eq(self.write),
                bank.write_half.eq(self.write_half),
                bank.write_address.eq(self.write_address),
                bank.write_data.eq(self.write_data.word_select(lane, self.bits)),
                bank.read_half.eq(self.read_half),
                bank.read_address.eq((row + borrow)[: len(bank.read_address)]),
            ]
            read.append(bank.read_data)
        rotation, low, high = (
            Signal(max(shift_bits, 1)),
            Signal.like(self.low),
            Signal.like(self.high),
        )
        m.d.sync += [rotation.eq(offset), low.eq(self.low), high.eq(self.high)]
        lanes = read
        for bit in range(shift_bits):
            step = 1 << bit
            stage = [Signal(self.bits, name=f"rotate_{bit}_{lane}") for lane in range(self.lanes)]
            for lane in range(self.lanes):
                m.d.comb += stage[lane].eq(
                    Mux(rotation[bit], lanes[(lane + step) % self.lanes], lanes[lane])
                )
            lanes = stage
        masked = [Mux((lane >= low) & (lane < high), value, 0) for lane, value in enumerate(lanes)]
        m.d.sync += self.o.eq(Cat(value[: self.bits] for value in masked))
        return m
