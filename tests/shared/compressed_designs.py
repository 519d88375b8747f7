"""Random small designs with compressed memories, for the tests that run them as RTL."""

from dataclasses import replace

from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import Plain, Scratchpad
from archsim.tiled.design import CoreDesign
from rtl.cases import Draw


def random_memory(draw: Draw, lanes: int, bits: int) -> Boveda:
    """A memory of few rows, any group, any unit."""
    groups = [size for size in range(1, lanes + 1) if lanes % size == 0]
    word_bytes = lanes * bits / 8
    return Boveda(
        capacity_bytes=max(1, round(2 * draw.one_of(2, 2, 2, 3, 4, 11) * word_bytes) + 1),
        group=draw.one_of(*groups),
        unit_words=draw.one_of(1, 2, 4, 8, 16),
        expansion=draw.one_of(1, 2, 4, 4, 8),
    )


def with_compressed(draw: Draw, design: CoreDesign) -> CoreDesign:
    """The design with its ifmap, its weight, or both memories compressed."""
    which = draw.one_of(1, 2, 3)
    memories: dict[str, Scratchpad] = {}
    for number, name in enumerate(("ifmap", "weight")):
        port = next(one for one in design.data_ports if one.name == name)
        if which >> number & 1:
            memories[f"{name}_memory"] = random_memory(draw, port.lanes, port.lane_bits[0])
    return replace(design, **memories)


def random_design(draw: Draw, largest: int = 5) -> CoreDesign:
    """A small systolic design: any dataflow, operand width and odd sizes."""
    plain = Systolic(
        rows=draw.whole(1, largest),
        columns=draw.whole(1, largest),
        dataflow=DATAFLOWS[draw.whole(0, 2)],
        operand_bits=draw.one_of(4, 8, 16),
        accumulator_bits=37,
        ifmap_memory=Plain(capacity_bytes=draw.whole(200, 2000)),
        weight_memory=Plain(capacity_bytes=draw.whole(200, 2000)),
        accumulator_memory=Plain(capacity_bytes=draw.whole(400, 6000)),
        bias_words=draw.whole(2, 64),
    )
    return with_compressed(draw, plain)
