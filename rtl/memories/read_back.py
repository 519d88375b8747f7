"""What is proved of memories that keep words as they are: what is written is read back.

A proof keeps an account of every word beside the memory, and claims that the cells hold the same,
so that one step of induction is enough.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.machines.scnn.design import Scnn
from archsim.memory.plain import joined_depth
from rtl.core.scnn_memories import ActivationMemories
from rtl.core.sram import Sram, halves_ports
from rtl.formal import Proof, claim, opened, prove_always
from rtl.memories.plain import JoinedScratchpad, PlainScratchpad

Cells = Callable[[Any], Sequence[Value]]
"""Of a bank that is not elaborated yet: what lies at each of its addresses."""


def sram_cells(bank: Any) -> list[Value]:
    """Those of an `Sram`."""
    store = opened(bank).submodules.words
    ports = [store.read_port(domain="comb") for _ in range(bank.depth)]
    for address, port in enumerate(ports):
        opened(bank).d.comb += port.addr.eq(address)
    return [port.data for port in ports]


class ReadBackProof(wiring.Component):
    """o[t + 1] is what was written last to read_address[t], in a cycle before t; else 0.

    With `transparent`, in t also.  An address behind the last word reads anything, and a write to
    it changes nothing.  Halves in two banks are a `PlainScratchpad`, in one a `JoinedScratchpad`,
    and so for each half.
    """

    def __init__(
        self,
        *,
        bits: int,
        depth: int,
        transparent: bool = False,
        halves_in: int = 0,
        bank: Any = Sram,
        cells: Cells = sram_cells,
    ) -> None:
        """halves_in: so many banks, or 0 where there is a bank and no halves; bank: the component,
        with the ports of an `Sram`; cells: what lies in it."""
        self.bits, self.depth, self.transparent = bits, depth, transparent
        self.halves_in = halves_in
        self.bank, self.cells = bank, cells
        ports: Any = halves_ports(bits=bits, depth=depth)
        if not self.halves_in:
            ports = Sram.ports(bits=bits, depth=depth).members
        self.inputs = [name for name in ports if name != "read_data"]
        super().__init__({name: In(ports[name].shape) for name in self.inputs})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports: Any = self
        store, cells = self._placed()
        m.submodules.store = store
        m.d.comb += [getattr(store, name).eq(getattr(self, name)) for name in self.inputs]
        write_half = ports.write_half if self.halves_in else Const(0, 1)
        account: list[Array[Signal]] = []
        for half, lie in enumerate(cells):
            written = ports.write & (write_half == half)
            with_data = (written, ports.write_address, ports.write_data)
            account.append(kept(m, f"{half}", lie[: self.depth], with_data))
        now = account[0][ports.read_address]
        if self.halves_in:
            now = Mux(ports.read_half, account[1][ports.read_address], now)
        if self.transparent:
            forward = ports.write & (ports.write_address == ports.read_address)
            now = Mux(forward, ports.write_data, now)
        expected, there = Signal(self.bits), Signal()
        m.d.sync += [expected.eq(now), there.eq(ports.read_address < self.depth)]
        m.d.comb += claim(m, "read", ~there | (store.read_data == expected))
        return m

    def _placed(self) -> tuple[Any, list[Sequence[Value]]]:
        """The memory, and what lies in it, or in each half of it."""
        sizes = {"bits": self.bits, "depth": self.depth}
        if not self.halves_in:
            found = self.bank(**sizes, transparent=self.transparent)
            return found, [self.cells(found)]
        kind = JoinedScratchpad if self.halves_in == 1 else PlainScratchpad
        found = kind(**sizes, bank=self.bank)
        inside = opened(found).submodules
        if self.halves_in == 2:
            return found, [self.cells(inside.half_0), self.cells(inside.half_1)]
        both, second = self.cells(inside.both), joined_depth(self.depth) - self.depth
        return found, [both[:second], both[second:]]


class Exchanged:
    """Both memories of a PE's activations, for a proof: `ActivationMemories`, as they are."""

    def unit(self, design: Scnn) -> Any:
        """The component."""
        return ActivationMemories(design=design)

    def cells(self, unit: Any) -> tuple[list[Value], list[Value]]:
        """The vectors that lie in IARAM and in OARAM."""
        inside = opened(unit).submodules
        return sram_cells(inside.iaram), sram_cells(inside.oaram)


class ExchangedProof(wiring.Component):
    """Either port of a PE's memories reads what was written to the memory that it has now.

    What was written last to the address of the cycle before, in that cycle too; not in the cycle of
    an exchange.  Both may be exchanged in any cycle.
    """

    def __init__(self, design: Scnn, memories: Exchanged | None = None) -> None:
        self.design, self.memories = design, memories or Exchanged()
        unit = self._unit()
        self.inputs = [name for name in unit.ifmap.signature.members if name != "read_data"]
        members = unit.ifmap.signature.members
        free = {
            f"{port}_{name}": In(members[name].shape)
            for port in ("ifmap", "ofmap")
            for name in self.inputs
        }
        super().__init__({"exchanged": In(1), **free})

    def _unit(self) -> Any:
        unit = self.memories.unit(self.design)
        unit._MustUse__silence = True
        return unit

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit, exchanged = self._unit(), self.exchanged  # pyright: ignore[reportAttributeAccessIssue]
        cells = self.memories.cells(unit)
        depths = [self.design.iaram_vectors, self.design.oaram_vectors]
        ports = [
            {name: getattr(self, f"{port}_{name}") for name in self.inputs}
            for port in ("ifmap", "ofmap")
        ]
        m.submodules.unit = unit
        m.d.comb += unit.exchanged.eq(exchanged)
        for port, given in zip((unit.ifmap, unit.ofmap), ports, strict=True):
            m.d.comb += [getattr(port, name).eq(value) for name, value in given.items()]
        account: list[Array[Signal]] = []
        for number, (own, other) in enumerate((ports, ports[::-1])):
            written = tuple(
                Mux(exchanged, other[name], own[name])
                for name in ("write", "write_address", "write_data")
            )
            account.append(kept(m, f"{number}", cells[number][: depths[number]], written))
        before, begun = Signal(), Signal()
        m.d.sync += [before.eq(exchanged), begun.eq(1)]
        for number, port in enumerate((unit.ifmap, unit.ofmap)):
            given, expected, there = ports[number], Signal(len(port.read_data)), Signal()
            address, other = given["read_address"], 1 - number
            forward = given["write"] & (given["write_address"] == address)
            lies = Mux(exchanged, account[other][address], account[number][address])
            within = Mux(exchanged, address < depths[other], address < depths[number])
            m.d.sync += [
                expected.eq(Mux(forward, given["write_data"], lies)),
                there.eq(within),
            ]
            usable = begun & there & (exchanged == before)
            m.d.comb += claim(m, f"read_{number}", ~usable | (port.read_data == expected))
        return m


def kept(m: Module, name: str, cells: Sequence[Value], written: Any) -> "Array[Signal]":
    """The account of a memory's words: claims that its cells hold the same.

    written: whether a word is written in this cycle, its address, its data.
    """
    write, address, word = written
    account = Array(Signal(len(word), name=f"account_{name}_{n}") for n in range(len(cells)))
    for n, (cell, own) in enumerate(zip(cells, account, strict=True)):
        with m.If(write & (address == n)):
            m.d.sync += own.eq(word)
        m.d.comb += claim(m, f"cell_{name}_{n}", cell == own)
    return account


def bank_proofs(bank: Any = Sram, cells: Cells = sram_cells) -> Iterator[Proof]:
    """Of a bank with the ports of an `Sram`: of 3 and 4 words of 2 bits."""
    for depth, transparent in ((3, False), (4, False), (3, True), (4, True)):
        sizes: dict[str, Any] = {"bits": 2, "depth": depth, "transparent": transparent}
        late = "in the same cycle or before" if transparent else "in a cycle before"
        yield Proof(
            name=f"a bank reads back, {depth} words{', transparent' if transparent else ''}",
            says=f"a word read is the last that was written to its address, {late}, for ever: "
            f"{depth} words of 2 bits",
            prove=lambda sizes=sizes: prove_always(ReadBackProof(**sizes, bank=bank, cells=cells)),
        )


def scratchpad_proofs(bank: Any = Sram, cells: Cells = sram_cells) -> Iterator[Proof]:
    """Of both halves made of such a bank, and of both in one: of 3 and 4 words of 2 bits each."""
    for depth, banks in ((3, 2), (4, 2), (3, 1), (4, 1)):
        sizes: dict[str, Any] = {"bits": 2, "depth": depth, "halves_in": banks}
        where = " in one bank" if banks == 1 else ""
        yield Proof(
            name=f"a scratchpad reads back, halves of {depth} words{where}",
            says="a word read is the last that was written to its half and address, in a cycle "
            f"before, for ever: halves of {depth} words of 2 bits{where}",
            prove=lambda sizes=sizes: prove_always(ReadBackProof(**sizes, bank=bank, cells=cells)),
        )


def small_scnn(iaram: int, oaram: int) -> Scnn:
    """With memories of so many vectors, of a byte."""
    return Scnn(
        grid_rows=1, grid_columns=1, weight_lanes=1, ifmap_lanes=1, banks=1, bank_entries=4,
        operand_bits=4, index_bits=4, accumulator_bits=8, iaram_bytes=iaram, oaram_bytes=oaram,
    )  # fmt: skip


def exchanged_proofs(memories: Exchanged | None = None) -> Iterator[Proof]:
    """Of both memories of a PE: of 2 and 3 vectors."""
    for iaram, oaram in ((2, 3), (3, 2)):
        design = small_scnn(iaram, oaram)
        yield Proof(
            name=f"exchanged memories read back, of {iaram} and {oaram} vectors",
            says="a vector read is the last that was written to its address of the memory that the "
            f"port has, whenever both are exchanged, for ever: {iaram} and {oaram} vectors",
            prove=lambda design=design: prove_always(ExchangedProof(design, memories)),
        )


__all__ = [
    "Cells",
    "Exchanged",
    "ExchangedProof",
    "ReadBackProof",
    "bank_proofs",
    "exchanged_proofs",
    "scratchpad_proofs",
    "small_scnn",
    "sram_cells",
]
