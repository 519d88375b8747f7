"""Random small sparse training machines, for the model's tests and those that run them as RTL."""

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.draw import Draw


def random_design(draw: Draw) -> SparseTrain:
    """A small one of every kind of window."""
    pes, lanes = draw.one_of(1, 2, 4), draw.one_of(1, 2, 4, 8)
    segments = min(draw.one_of(1, 2, 4), lanes)
    return SparseTrain(
        pes=pes, lanes=lanes, segments=segments, look_ahead=draw.whole(0, 3),
        look_aside=draw.whole(0, 5), skip_outputs=draw.chance(0.7),
        move_work=draw.chance(0.7), rows=draw.whole(1, 5),
        columns=pes * segments * draw.one_of(1, 2), depth=draw.whole(1, 7),
        operand_bits=draw.whole(2, 8),
        accumulator_bits=draw.whole(16, 33),
        row_scratchpad=draw.one_of(0, draw.whole(1, 60)),
        column_scratchpad=draw.one_of(0, draw.whole(1, 60)), pipelined_pes=draw.chance(0.4),
    )  # fmt: skip
