"""What is proved of the fault layer, for every key, address, word and rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.memories.faulty.cell_hash import HASH_BITS, THRESHOLD_BITS
from archsim.memories.faulty.fault_map import FaultMap
from rtl.formal import Proof, claim, prove_always
from rtl.memories.faulty.fault_layer import RATE_BITS, FaultLayer

BITS, ADDRESS_BITS = 3, 5


class LayerProof(wiring.Component):
    """Two layers of one chip at two rates, over the same word.

    Where the lower one is wrong, so is the higher; at rate 0 nothing is, at rate 1 every bit that
    is not protected; a bit that reads 1 for a 0 is no fault of cells that only lose ones.
    """

    def __init__(self, **shares: Any) -> None:
        self.faults = FaultMap(
            words=1 << 6, word_bits=BITS, rate=0.5, protected_bits=(1,), **shares
        )
        super().__init__(
            {
                "half": In(1),
                "address": In(ADDRESS_BITS),
                "key": In(HASH_BITS),
                "low": In(RATE_BITS),
                "high": In(RATE_BITS),
                "i": In(BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        own: Any = self
        wrong: list[Signal] = []
        for name, rate in (("lower", own.low), ("higher", own.high)):
            layer: Any = FaultLayer(
                faults=self.faults, bits=BITS, address_bits=ADDRESS_BITS, first_bit=0, latency=1
            )
            m.submodules[name] = layer
            m.d.comb += [
                layer.half.eq(own.half),
                layer.address.eq(own.address),
                layer.settings.eq(Cat(own.key, rate)),
                layer.i.eq(own.i),
            ]
            wrong.append(Signal(BITS, name=f"{name}_wrong"))
            m.d.comb += wrong[-1].eq(layer.o ^ own.i)
        low, high = wrong
        m.d.comb += [
            claim(m, "grows", (own.low > own.high) | ((low & ~high) == 0)),
            claim(m, "none", (own.low != 0) | (low == 0)),
            claim(m, "protected", ~high[1]),
        ]
        flips = self.faults.kind_limits == (256, 0)
        whole = own.low >= (1 << THRESHOLD_BITS)
        if flips:
            m.d.comb += claim(m, "all", ~whole | (low == 0b101))
        elif self.faults.one_to_zero == 1:
            m.d.comb += [
                claim(m, "lost", (high & ~own.i) == 0),
                claim(m, "all_lost", ~whole | (low == (own.i & 0b101))),
            ]
        return m


def layer_proofs() -> Iterator[Proof]:
    """Of cells that flip, and of cells that lose ones."""
    for what, shares in (("flip", {}), ("lose ones", {"one_to_zero": 1.0})):
        yield Proof(
            name=f"faults grow with the rate, cells that {what}",
            says="at a higher rate every fault of a lower one is there; none at rate 0, all at "
            f"rate 1, none in protected bits; for every chip and address, cells that {what}: "
            f"words of {BITS} bits",
            prove=lambda shares=shares: prove_always(LayerProof(**shares)),
        )


__all__ = ["LayerProof", "layer_proofs"]
