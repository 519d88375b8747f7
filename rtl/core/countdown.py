"""The flags of a counter that goes down to 0: whether turns are left, and whether one is."""

from amaranth.hdl import Module, Signal, Value


def countdown_flags(
    m: Module, left: Signal, *, start: Value, count: Value, turn: Value, ahead: bool
) -> tuple[Value, Value]:
    """left ≠ 0, and left = 1, of a counter that starts at `count` and loses 1 a turn.

    It turns only while turns are left.  With `ahead`, both are registers, compared when the counter
    is written; in the same cycles.
    """
    if not ahead:
        return left != 0, left == 1
    some, last = Signal(name=f"{left.name}_some"), Signal(name=f"{left.name}_last")
    with m.If(start):
        m.d.sync += [some.eq(count != 0), last.eq(count == 1)]
    with m.Elif(turn):
        m.d.sync += [some.eq(~last), last.eq(left == 2)]
    return some, last
