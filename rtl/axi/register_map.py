"""What a host reads and writes of a core behind AXI4-Lite: registers of 32 bits, by address."""

import json
import zlib
from dataclasses import dataclass
from typing import Any, Literal

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machine.registry import design_record
from archsim.ports import Port
from rtl.registry import core_of

__all__ = [
    "COMMAND",
    "IDENTIFICATION",
    "MAP_VERSION",
    "SETTINGS",
    "Register",
    "command_words",
    "design_crc",
    "has_settings",
    "register_map",
]

IDENTIFICATION = 0x41524348
"""What register ID reads: "ARCH"."""
MAP_VERSION = 1
COUNTERS = 0x100
COMMAND = 0x800
"""Byte address of the first word of the layer command."""
LAST = 0x1000
SETTINGS = "MEMORY_SETTINGS"

Access = Literal["r", "rw", "w"]


@dataclass(frozen=True, kw_only=True)
class Register:
    """A register of 32 bits.

    name: in capitals; address: in bytes; access: by the host; reset: what it reads after a reset;
    says: in a sentence; fields: (name, lowest bit, bits) where it is more than one number.
    """

    name: str
    address: int
    access: Access
    says: str
    reset: int = 0
    fields: tuple[tuple[str, int, int], ...] = ()


def command_words(design: Design) -> int:
    """Registers that a layer command takes."""
    return -(-_command(design).bits // 32)


def register_map(design: Design) -> tuple[Register, ...]:
    """The registers of a design's core, by address.

    Raises `InputError` for a kind without one command port and one port of outputs `ofmap`.
    """
    ports = design.machine_model().ports
    _command(design)
    outputs = [port.name for port in ports if port.direction == "o"]
    if outputs != ["ofmap"]:
        raise InputError(
            f"interface must be streams for designs of kind {design.kind!r}: "
            f"the others need one port of outputs, ofmap, not {', '.join(outputs)}"
        )
    settings = _settings() if has_settings(design) else ()
    return (
        *_control(design),
        *settings,
        *_parameters(ports),
        *_counters(design),
        *_commands(design),
    )


def _command(design: Design) -> Port:
    for port in design.machine_model().ports:
        if port.name == "command":
            return port
    raise InputError(
        f"interface must be streams for designs of kind {design.kind!r}: "
        f"the others need a port named command"
    )


def design_crc(design: Design) -> int:
    """What register DESIGN reads: CRC-32 of the design as JSON, its keys in order."""
    return zlib.crc32(json.dumps(design_record(design), sort_keys=True).encode())


def _control(design: Design) -> tuple[Register, ...]:
    start = "Write 1 to START: the layer of COMMAND begins; refused while one is pending or running"
    return (
        Register(name="ID", address=0x00, access="r", reset=IDENTIFICATION, says="ARCH, in ASCII."),
        Register(
            name="MAP_VERSION", address=0x04, access="r", reset=MAP_VERSION, says="Of this map."
        ),
        Register(
            name="DESIGN",
            address=0x08,
            access="r",
            reset=design_crc(design),
            says="CRC-32 of the design as JSON, its keys in order.",
        ),
        Register(
            name="CONTROL", address=0x0C, access="w", says=f"{start}.", fields=(("START", 0, 1),)
        ),
        Register(
            name="STATUS",
            address=0x10,
            access="r",
            says="PENDING: the command has not crossed yet; RUNNING: words of the ofmap are due.",
            fields=(("PENDING", 0, 1), ("RUNNING", 1, 1)),
        ),
        Register(
            name="INTERRUPT_ENABLE",
            address=0x14,
            access="rw",
            says="DONE: raise the interrupt at the end of a layer.",
            fields=(("DONE", 0, 1),),
        ),
        Register(
            name="INTERRUPT_STATUS",
            address=0x18,
            access="rw",
            says="DONE: the last word of a layer's ofmap has crossed; write 1 to clear.",
            fields=(("DONE", 0, 1),),
        ),
        Register(
            name="OFMAP_WORDS",
            address=0x1C,
            access="rw",
            says="Words of the layer's ofmap, at least 1: the last leaves with TLAST.",
        ),
        Register(
            name="OFMAP_LEFT", address=0x20, access="r", says="Words of the ofmap still to cross."
        ),
    )


def has_settings(design: Design) -> bool:
    """Whether the core has memories that take settings at run time (`rtl.core.settings`)."""
    return "settings_shift" in _members(design)


def _settings() -> tuple[Register, ...]:
    says = (
        "Bit 0 is shifted into the chain of settings of faulty memories; refused while a layer is "
        "pending or running."
    )
    return (Register(name=SETTINGS, address=0x24, access="w", says=says, fields=(("BIT", 0, 1),)),)


def _parameters(ports: tuple[Port, ...]) -> tuple[Register, ...]:
    return tuple(
        Register(
            name=f"{port.name.upper()}_BITS",
            address=0x40 + 4 * number,
            access="r",
            reset=port.bits,
            says=f"Bits of a word of {port.name}; above them TDATA is 0 up to whole bytes."
            if port.name != "command"
            else "Bits of the layer command.",
        )
        for number, port in enumerate(ports)
    )


def _counters(design: Design) -> tuple[Register, ...]:
    """Two registers a counter."""
    says = {f"COUNT_{name.upper()}": f"Actions {name}" for name in _actions(design)}
    says |= {"CYCLES": "Cycles in which a layer was pending or running"}
    for port in design.machine_model().ports:
        if port.name != "command":
            waits = "no word is offered" if port.direction == "i" else "its word is not taken"
            says[f"WAIT_{port.name.upper()}"] = (
                f"Of these, cycles in which {port.name} waits: {waits}"
            )
    found: list[Register] = []
    for number, (name, text) in enumerate(says.items()):
        at = COUNTERS + 8 * number
        low = f"{text}, since the reset: the lower 32 bits. Reading it keeps the upper ones."
        high = f"{text}: the upper 16 bits, as they were when the lower ones were read."
        found.append(Register(name=f"{name}_LOW", address=at, access="r", says=low))
        found.append(Register(name=f"{name}_HIGH", address=at + 4, access="r", says=high))
    return tuple(found)


def _actions(design: Design) -> tuple[str, ...]:
    """What the core counts, in the order of its ports."""
    members = _members(design)
    return tuple(name.removeprefix("count_") for name in members if name.startswith("count_"))


def _members(design: Design) -> Any:
    core: Any = core_of(design)
    core._MustUse__silence = True  # only its ports are looked at
    return core.signature.members


def _commands(design: Design) -> tuple[Register, ...]:
    words = command_words(design)
    if COMMAND + 4 * words > LAST:
        raise InputError(
            f"interface must be streams for {design.summary}: its command takes {words} "
            f"registers, of at most {(LAST - COMMAND) // 4}"
        )
    return tuple(
        Register(
            name=f"COMMAND_{number}",
            address=COMMAND + 4 * number,
            access="rw",
            says=f"Bits {32 * number} and up of the layer command; fixed while it is pending.",
        )
        for number in range(words)
    )
