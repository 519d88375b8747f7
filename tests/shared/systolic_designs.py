"""Random small systolic designs, for the tests that run them as RTL."""

from archsim.machines.systolic.design import DATAFLOWS, Systolic
from archsim.memory import Plain
from rtl.cases import Draw


def random_design(draw: Draw, largest: int = 5) -> Systolic:
    """A small design: any dataflow, operand width and odd sizes."""
    return Systolic(
        rows=draw.whole(1, largest),
        columns=draw.whole(1, largest),
        dataflow=DATAFLOWS[draw.whole(0, 2)],
        operand_bits=draw.one_of(4, 8, 16),
        accumulator_bits=draw.one_of(32, 32, 37),
        ifmap_memory=_scratchpad(draw),
        weight_memory=_scratchpad(draw),
        accumulator_memory=Plain(capacity_bytes=draw.whole(400, 6000)),
        bias_words=draw.whole(2, 64),
    )


def _scratchpad(draw: Draw) -> Plain:
    """Of two SRAMs or one."""
    size = draw.whole(200, 4000)
    return Plain(capacity_bytes=size, joined_halves=bool(draw.whole(0, 1)))
