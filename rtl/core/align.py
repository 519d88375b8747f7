"""The ifmap scratchpad's banks: a vector of lanes read at any element address."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.memory import Scratchpad
from rtl.core.delay import Delay
from rtl.core.memory import Words, rtl_of, scratchpad, settings_port
from rtl.hierarchy import place


class AlignedBanks(wiring.Component):
    """o[j] = tile[address + j] if low ≤ j < high, else 0.

    Element a lies in bank a mod lanes, row ⌊a / lanes⌋: any `lanes` neighbours lie in different
    banks, and a rotation puts them in order; a compressed memory keeps that order in its words.
    Latency: 1 + `memory.read_latency_cycles` + `registers` from address to o (memory, its register
    if there is one, then rotation and mask).
    Throughput: one vector a cycle.  Never stalls.

    Members
    -------
    write, write_half, write_address, write_data: a row of all banks, from the loader; write_last:
    it is the tile's last; read_half: the half that is read; address: of lane 0, which may lie
    outside the tile if low > 0; low, high:
    the lanes that count; o: the vector.  Of a memory that reads whole words also read: a vector is
    read in this cycle; and what it counts (`rtl.core.memory.ScratchpadRtl`).  settings: of a memory
    that takes some.
    """

    write: Signal
    write_half: Signal
    write_address: Signal
    write_last: Signal
    write_data: Signal
    read_half: Signal
    address: Signal
    low: Signal
    high: Signal
    o: Signal
    read: Signal
    settings: Signal

    def __init__(self, *, memory: Scratchpad, words: Words, registers: int = 0) -> None:
        """registers: 1 between the memory and the rotation."""
        self.memory = memory
        self.words = words
        self.registers = registers
        self.lanes = lanes = words.lanes
        self.bits = bits = words.bits
        self.depth = depth = words.depth
        rtl = rtl_of(memory)
        self.whole_words: bool = rtl.whole_words
        self.events: dict[str, Any] = rtl.events(words, by_lane=True)
        self.set = settings_port(memory, words)
        super().__init__(
            {
                "write": In(1),
                "write_half": In(1),
                "write_address": In(range(max(depth, 2))),
                "write_last": In(1),
                "write_data": In(lanes * bits),
                "read_half": In(1),
                "address": In(signed(28)),
                "low": In(range(lanes + 1)),
                "high": In(range(lanes + 1)),
                "o": Out(lanes * bits),
                **self._more(),
            }
        )

    def _more(self) -> dict[str, Any]:
        """Ports beside those of a memory a lane."""
        found = {"read": In(1), **self.events} if self.whole_words else {}
        return {**found, **self.set}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift_bits = (self.lanes - 1).bit_length()
        row, offset = self.address[shift_bits:], self.address[:shift_bits]
        borrows: list[Value] = [offset > lane for lane in range(self.lanes - 1)]
        borrows.append(Const(0, 1))
        read = self._store if self.whole_words else self._banks
        lanes = self._registered(m, read(m, row, borrows))
        late = place(
            m,
            "late",
            Delay,
            bits=shift_bits + 2 * len(self.low),
            cycles=self.memory.read_latency_cycles + self.registers,
        )
        rotation, low, high = (
            Signal(max(shift_bits, 1)),
            Signal.like(self.low),
            Signal.like(self.high),
        )
        m.d.comb += [
            late.i.eq(Cat(self.low, self.high, offset)),
            Cat(low, high, rotation).eq(late.o),
        ]
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

    def _registered(self, m: Module, lanes: list[Value]) -> list[Value]:
        """What the memory gives, a cycle later where there is a register."""
        if not self.registers:
            return lanes
        kept = [Signal(self.bits, name=f"kept_{lane}") for lane in range(self.lanes)]
        m.d.sync += [one.eq(value) for one, value in zip(kept, lanes, strict=True)]
        return [*kept]

    def _banks(self, m: Module, row: Value, borrows: list[Value]) -> list[Value]:
        """A memory a lane, each read at its own row."""
        read: list[Value] = []
        for lane, borrow in enumerate(borrows):
            bank = scratchpad(m, f"bank_{lane}", self.memory, self.words.lane(lane))
            m.d.comb += [bank.settings.eq(self.settings) for _ in self.set]
            m.d.comb += [
                bank.write.eq(self.write),
                bank.write_half.eq(self.write_half),
                bank.write_address.eq(self.write_address),
                bank.write_data.eq(self.write_data.word_select(lane, self.bits)),
                bank.read_half.eq(self.read_half),
                bank.read_address.eq((row + borrow)[: len(bank.read_address)]),
            ]
            read.append(bank.read_data)
        return read

    def _store(self, m: Module, row: Value, borrows: list[Value]) -> list[Value]:
        """One memory of whole words, of which each lane takes the word at the row or the next."""
        store = scratchpad(m, "store", self.memory, self.words, by_lane=True)
        m.d.comb += [
            store.write.eq(self.write),
            store.write_half.eq(self.write_half),
            store.write_address.eq(self.write_address),
            store.write_last.eq(self.write_last),
            store.write_data.eq(self.write_data),
            store.read_half.eq(self.read_half),
            store.read_address.eq(row[: len(store.read_address)]),
            store.read_next.eq(Cat(borrows)),
            store.read.eq(self._read_lanes()),
            *(getattr(self, event).eq(getattr(store, event)) for event in self.events),
            *(store.settings.eq(self.settings) for _ in self.set),
        ]
        return [store.read_data.word_select(lane, self.bits) for lane in range(self.lanes)]

    def _read_lanes(self) -> Value:
        """Which banks hold an element that counts: lane j's is bank (address + j) mod lanes."""
        mask: list[Value] = [
            self.read & (lane >= self.low) & (lane < self.high) for lane in range(self.lanes)
        ]
        for bit in range((self.lanes - 1).bit_length()):
            step, shifts = 1 << bit, self.address[bit]
            mask = [Mux(shifts, mask[bank - step], mask[bank]) for bank in range(self.lanes)]
        return Cat(mask)
