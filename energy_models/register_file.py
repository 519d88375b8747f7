"""A memory built of registers and multiplexers, where that costs less than a macro.

Of d words of w bits, per bit of the word and priced by a technology's own logic (register: a
flip-flop; choice: a multiplexer of two ways):

storage   d registers, each behind a choice of old or new data; d - 1 choices to read; a register
          behind them, since the emitted memories answer a cycle later
write     a register is written, and the d choices see the new data
read      the d - 1 choices turn, and the register behind them is written

So all figures are linear in words and in bits.  Words are clocked only when they are written, as
behind clock gates; `benchmarks/logic_fit.md` says how far a multiplexer of up to 32 ways is from
choices of two.  Decoders of the address are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from energy_models.component import Component
from energy_models.estimator import Quantity

REGISTER = Component(name="memory as registers", kind="register", attributes={"bits": 1})
CHOICE = Component(name="memory as registers", kind="mux", attributes={"bits": 1, "ways": 2})
"""A bit of it."""

Ask = Callable[[Component, str], "Quantity | None"]
"""A figure of one piece for an action ("" for area and leakage); None where there is no source."""


def register_file(memory: Component, action: str, ask: Ask) -> Quantity | None:
    """A figure of an "sram" component as registers; None where its parts have no source.

    action: "read" or "write", or "" for area and leakage.
    """
    total = register_file_value(memory, action, ask)
    if total is None:
        return None
    bits, depth = memory.attributes["word_bits"], memory.attributes["depth"]
    asked = (ask(part, event) for part, event, _ in _parts(action, depth))
    texts = ("; ".join(filter(None, (one.source, one.how))) for one in asked if one is not None)
    return Quantity(
        value=total,
        source="; ".join(dict.fromkeys(texts)),
        how=f"{depth} words of {bits} bits as registers",
    )


def register_file_value(memory: Component, action: str, ask: Ask) -> float | None:
    """The value of `register_file` without its sources: of most memories it is only compared."""
    bits, depth = memory.attributes["word_bits"], memory.attributes["depth"]
    total = 0.0
    for part, event, number in _parts(action, depth):
        found = ask(part, event)
        if found is None:
            return None
        total += bits * number * found.value
    return total


def _parts(action: str, depth: int) -> Iterator[tuple[Component, str, int]]:
    """For each bit of a word: a piece, its event, and how many of them."""
    if action == "write":
        yield REGISTER, "write", 1
        yield CHOICE, "select", depth
    elif action == "read":
        yield REGISTER, "write", 1
        yield CHOICE, "select", depth - 1
    else:
        yield REGISTER, "", depth + 1
        yield CHOICE, "", 2 * depth - 1


__all__ = ["CHOICE", "REGISTER", "register_file", "register_file_value"]
