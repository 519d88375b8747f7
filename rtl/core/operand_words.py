"""What the scratchpads of a core hold, and what its memories take from registers."""

from typing import Any

from archsim.ports import Port
from rtl.core.memory import PLAIN_BANKS, Settings, Words, made_of, settings_of


def _port(design: Any, name: str) -> Port:
    return next(port for port in design.ports if port.name == name)


def _words(design: Any, name: str, lanes: int) -> Words:
    """What the scratchpad of "ifmap" or "weight" holds, as so many lanes."""
    port = _port(design, name)
    return Words(
        lanes=lanes,
        bits=port.bits // lanes,
        signed=port.lane_signed[0],
        depth=design.depth(name),
        use=design.use(name),
    )


def operand_words(design: Any) -> dict[str, Words]:
    """Of both scratchpads of operands."""
    values = not design.use("weight").as_is
    return {
        "ifmap": _words(design, "ifmap", design.ifmap_lanes),
        "weight": _words(design, "weight", _port(design, "weight").lanes if values else 1),
    }


def memory_settings(design: Any) -> dict[str, Settings]:
    """What memories take from registers, by memory."""
    asked = {
        name: settings_of(design.memory(name), words)
        for name, words in operand_words(design).items()
    }
    for name in ("accumulator", "bias"):
        banks = made_of(design.bank(name), design.use(name)).get("banks", PLAIN_BANKS)
        asked[name] = banks.settings(design.depth(name))
    return {name: one for name, one in asked.items() if one is not None}
