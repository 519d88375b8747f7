"""The two memories of a PE's activations, which change places between layers."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from archsim.machines.scnn.design import Scnn
from rtl.core.scnn_layouts import vector_layout
from rtl.core.sram import Sram
from rtl.hierarchy import place


def address_port(design: Scnn, kept_bits: int | None = None) -> wiring.Signature:
    """The port of either memory; its addresses reach the one behind the larger one's last.

    kept_bits: of a vector as it is kept, with its flag; None: as it is.
    """
    return Sram.ports(
        bits=vector_layout(design, design.ifmap_lanes).size if kept_bits is None else kept_bits,
        depth=max(design.iaram_vectors, design.oaram_vectors) + 1,
    )


class ActivationMemories(wiring.Component):
    """ifmap is the port of the IARAM and ofmap that of the OARAM; with `exchanged` it is the
    reverse.

    Latency: that of `rtl.core.sram.Sram`, transparent but with `pipelined_pes`, where no vector is
    used whose address was given in the cycle in which it was written; what is read in the cycle of
    an exchange is of an address given before it, so it is not to be used.  What is written behind
    the last vector of a memory is dropped.  Throughput: a vector read and a vector written a cycle,
    of each.  Never stalls.
    """

    exchanged: Any
    ifmap: Any
    ofmap: Any

    def __init__(self, *, design: Scnn, kept_bits: int | None = None) -> None:
        """kept_bits: of a vector as it is kept (`address_port`)."""
        self.design = design
        port = address_port(design, kept_bits)
        super().__init__({"exchanged": In(1), "ifmap": Out(port), "ofmap": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = len(self.ifmap.write_data)
        for name, depth, own, other in (
            ("iaram", self.design.iaram_vectors, self.ifmap, self.ofmap),
            ("oaram", self.design.oaram_vectors, self.ofmap, self.ifmap),
        ):
            apart = self.design.pipelined_pes
            shape: dict[str, Any] = {"apart": True} if apart else {"transparent": True}
            store = place(m, name, Sram, bits=bits, depth=depth, **shape)
            m.d.comb += [
                getattr(store, member).eq(
                    Mux(self.exchanged, getattr(other, member), getattr(own, member))
                )
                for member in ("write_address", "write_data", "read_address")
            ]
            address = Mux(self.exchanged, other.write_address, own.write_address)
            writes = Mux(self.exchanged, other.write, own.write)
            m.d.comb += store.write.eq(writes & (address < depth))
            with m.If(self.exchanged):
                m.d.comb += other.read_data.eq(store.read_data)
            with m.Else():
                m.d.comb += own.read_data.eq(store.read_data)
        return m


class BoundedActivations(wiring.Component):
    """`ActivationMemories` for lists that may be longer than a memory, for what cells that fail
    make of them: what is read behind the last vector is a vector of nothing that ends its list.

    Latency and throughput: those of `ActivationMemories`.  Never stalls.  Members: as there, and
    `more`.
    """

    exchanged: Signal
    ifmap: Any
    ofmap: Any

    def __init__(self, *, design: Scnn, kept_bits: int | None = None, **more: Member) -> None:
        """kept_bits: of a vector as it is kept (`address_port`)."""
        self.design = design
        port = address_port(design, kept_bits)
        ports = {"ifmap": Out(port), "ofmap": Out(port)}
        super().__init__({"exchanged": In(1), **more, **ports})

    def read(self, m: Module, name: str, half: Value, inner: Any) -> Value:
        """What is read of the memory at a port, where there are vectors.

        name: of the port; half: whether that is the OARAM's memory; inner: its port inside.
        """
        return inner.read_data

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = len(self.ifmap.read_data)
        inner = place(m, "inner", ActivationMemories, design=self.design, kept_bits=bits)
        m.d.comb += inner.exchanged.eq(self.exchanged)
        depths = self.design.iaram_vectors, self.design.oaram_vectors
        for name, half in (("ifmap", self.exchanged), ("ofmap", ~self.exchanged)):
            own, other = getattr(self, name), getattr(inner, name)
            nothing = 1 << len(own.read_data) - 1
            found = self.read(m, name, half, other)
            beyond = Signal(name=f"{name}_beyond")
            m.d.sync += beyond.eq(own.read_address >= Mux(half, depths[1], depths[0]))
            m.d.comb += [
                *(
                    getattr(other, member).eq(getattr(own, member))
                    for member in ("write", "write_address", "write_data", "read_address")
                ),
                own.read_data.eq(Mux(beyond, nothing, found)),
            ]
        return m
