"""The vector lane's RTL between two streams, compared with its model word by word."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from component_verilog import verilog_of

from archsim.machines.vsq.vector_lane import LaneSteps, VectorLaneDesign
from archsim.numbers import pack_lanes, unpack_lanes
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus, StreamPort
from rtl.benches.verilated import Verilated
from rtl.core.sram import address_bits
from rtl.core.vector_lane import VectorLane
from rtl.hierarchy import place


class Streamed(wiring.Component):
    """The lane between two streams: it takes a word, of all its inputs, whenever there is one.

    What comes out, an entry above its address, must be accepted at once: the lane never stalls.
    """

    def __init__(self, design: VectorLaneDesign) -> None:
        self.design = design
        out = address_bits(design.depth) + design.mac.accumulator_bits
        super().__init__(
            {
                "i": In(stream.Signature(sum(width for _, width in inputs(design)))),
                "o": Out(stream.Signature(out)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        unit = place(m, "unit", VectorLane, design=self.design)
        ports: Any = self
        at = 0
        for name, width in inputs(self.design):
            m.d.comb += getattr(unit, name).eq(ports.i.payload[at : at + width])
            at += width
        m.d.comb += [
            ports.i.ready.eq(1),
            unit.valid_i.eq(ports.i.valid),
            ports.o.valid.eq(unit.valid_o),
            ports.o.payload[: len(unit.address_o)].eq(unit.address_o),
            ports.o.payload[len(unit.address_o) :].eq(unit.o),
        ]
        return m


def inputs(design: VectorLaneDesign) -> list[tuple[str, int]]:
    """The lane's input ports but valid_i, and their widths."""
    mac = design.mac
    widths = [
        ("weight", design.length * mac.weight.bits),
        ("activation", design.length * mac.activation.bits),
        ("weight_scale", mac.weight.scale_bits or 0),
        ("activation_scale", mac.activation.scale_bits or 0),
        ("address", address_bits(design.depth)),
        ("first", 1),
        ("last", 1),
    ]
    return [(name, width) for name, width in widths if width]


def words_of(design: VectorLaneDesign, steps: LaneSteps) -> npt.NDArray[np.uint8]:
    """The steps as the words that `Streamed` takes."""
    columns = [
        (getattr(steps, name).reshape(len(steps), -1), bits) for name, bits in inputs(design)
    ]
    lane_bits = [bits // lanes.shape[1] for lanes, bits in columns for _ in range(lanes.shape[1])]
    return pack_lanes(np.column_stack([lanes for lanes, _ in columns]), tuple(lane_bits))


Run = Callable[[Bench], Outcome]


def simulated(design: VectorLaneDesign) -> Run:
    return lambda bench: run_amaranth(Streamed(design), bench)


def compiled(design: VectorLaneDesign) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(Streamed(design))).run


def differences(design: VectorLaneDesign, steps: LaneSteps, run: Run, gaps: int = 0) -> list[str]:
    """What differs between RTL and model: entries, or the cycles in which they come."""
    out_bits = (address_bits(design.depth), design.mac.accumulator_bits)
    words, n = words_of(design, steps), len(steps)
    waits = np.random.default_rng(n).integers(0, gaps + 1, n)
    bench = Bench(
        ports=(
            StreamPort(name="i", direction="i", bits=sum(w for _, w in inputs(design))),
            StreamPort(name="o", direction="o", bits=sum(out_bits)),
        ),
        stimuli={
            "i": Stimulus.offer(words, gaps=waits),
            "o": Stimulus.accept(int(steps.last.sum())),
        },
        max_cycles=(n + 20) * (gaps + 2),
        tail_cycles=8,
    )
    outcome = run(bench)
    into, out = outcome.crossings["i"], outcome.crossings["o"]
    wanted = design.compute(replace(steps, start_cycles=into.cycles.astype(np.int64)))
    ours = unpack_lanes(out.words, out_bits, (False, True))
    found: list[str] = []
    if not np.array_equal(out.cycles, wanted.cycles):
        found.append("cycles")
    if not np.array_equal(ours, np.column_stack([wanted.address, wanted.sums])):
        found.append("sums")
    return found
