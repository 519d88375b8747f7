"""Random small tensor cores, for the tests that run them as RTL."""

from archsim.machines.tensorcore.design import ACCUMULATORS, OPERANDS, TensorCore
from archsim.memory import Plain
from rtl.cases import Draw

FORMATS = [(operand, sums) for operand in OPERANDS for sums in ACCUMULATORS[operand]]


def random_design(draw: Draw) -> TensorCore:
    """Any format and any shape of unit, block and octet."""
    operand, accumulator = FORMATS[draw.whole(0, len(FORMATS) - 1)]
    return TensorCore(
        octets=draw.whole(1, 2),
        group_columns=draw.whole(1, 2),
        rows=2 * draw.whole(1, 6),
        length=draw.whole(1, 5),
        operand=operand,  # pyright: ignore[reportArgumentType]
        accumulator=accumulator,  # pyright: ignore[reportArgumentType]
        ifmap_memory=Plain(capacity_bytes=draw.whole(400, 6000)),
        weight_memory=Plain(capacity_bytes=draw.whole(1000, 8000)),
        accumulator_memory=Plain(capacity_bytes=draw.whole(400, 6000)),
        bias_words=draw.whole(2, 64),
    )
