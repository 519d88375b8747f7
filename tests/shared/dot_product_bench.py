"""The dot-product unit's RTL between two streams, compared with its model word by word."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of
from faults import Patch

from archsim.arithmetic.cases import Operands
from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.formats import FloatFormat
from archsim.numbers import pack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.benches.words import unpack_words
from rtl.core import dot_product
from rtl.core.dot_product import DotProductUnit
from rtl.hierarchy import place

E2M1 = FloatFormat(exponent_bits=2, fraction_bits=1)
E3M2 = FloatFormat(exponent_bits=3, fraction_bits=2)


class Streamed(wiring.Component):
    """The unit between two streams: it takes a word {c, b, a} whenever there is one.

    What comes out must be accepted at once, since the unit never stalls.
    """

    def __init__(self, design: DotProduct) -> None:
        self.design = design
        bits = 2 * design.length * design.operand.bits + design.accumulator.bits
        super().__init__(
            {
                "i": In(stream.Signature(bits)),
                "o": Out(stream.Signature(design.accumulator.bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = place(m, "unit", DotProductUnit, design=self.design)
        ports: Any = self
        lanes = len(unit.a)
        m.d.comb += [
            ports.i.ready.eq(1),
            unit.valid_i.eq(ports.i.valid),
            unit.a.eq(ports.i.payload[:lanes]),
            unit.b.eq(ports.i.payload[lanes : 2 * lanes]),
            unit.c.eq(ports.i.payload[2 * lanes :]),
            ports.o.valid.eq(unit.valid_o),
            ports.o.payload.eq(unit.o),
        ]
        return m


Run = Callable[[Bench], Outcome]


def simulated(design: DotProduct) -> Run:
    return lambda bench: run_amaranth(Streamed(design), bench)


def compiled(design: DotProduct) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(Streamed(design))).run


def differences(design: DotProduct, operands: Operands, run: Run, gaps: int = 0) -> list[str]:
    """What differs between RTL and model: words, or the cycles from operands to result."""
    lane_bits = (design.operand.bits,) * (2 * design.length) + (design.accumulator.bits,)
    words = pack_lanes(np.column_stack(operands), lane_bits)
    n = len(words)
    waits = np.random.default_rng(n).integers(0, gaps + 1, n)
    bench = Bench(
        ports=(
            StreamPort(name="i", direction="i", bits=sum(lane_bits)),
            StreamPort(name="o", direction="o", bits=lane_bits[-1]),
        ),
        stimuli={"i": Stimulus.offer(words, gaps=waits), "o": Stimulus.accept(n)},
        max_cycles=(n + 20) * (gaps + 2),
        tail_cycles=8,
    )
    outcome = run(bench)
    into, out = outcome.crossings["i"], outcome.crossings["o"]
    found: list[str] = []
    if not np.array_equal(out.cycles, into.cycles + design.latency_cycles):
        found.append("cycles")
    if not np.array_equal(unpack_words(out.words), design.compute(*operands)):
        found.append("words")
    return found


def late_line(name: str, change: int) -> Patch:
    """The named delay line takes some cycles more."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = dot_product._delayed

        def mutated(m: Module, line: str, value: Any, cycles: int) -> Any:
            return plain(m, line, value, cycles + change * (line == name))

        monkeypatch.setattr(dot_product, "_delayed", mutated)

    return patch
