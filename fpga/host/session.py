"""A session with a core behind a byte link: registers, words and counters, over any byte port."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from archsim.errors import UserError, require
from archsim.machine.design import Design
from fpga.host.memories import design_as_built, setting_bits
from rtl.axi.register_map import (
    IDENTIFICATION,
    MAP_VERSION,
    SETTINGS,
    design_crc,
    has_settings,
    register_map,
)
from rtl.link.frames import (
    ANSWER,
    FRAME_BYTES,
    HEAD_BYTES,
    PAYLOAD,
    REQUEST,
    Frame,
    Operation,
    Status,
    frame_bytes,
    take_frame,
)
from rtl.link.link_core import input_streams, word_bytes

__all__ = ["BytePort", "LinkError", "Session", "Words"]

NUMBERS = 256
READ_AT_ONCE, WRITTEN_AT_ONCE = PAYLOAD // 4, PAYLOAD // 6
_WRITE = struct.Struct("<HI")

Words = npt.NDArray[np.uint8]


class LinkError(UserError):
    """The board does not answer, or is not what it should be."""


class BytePort(Protocol):
    """What crosses bytes: pyserial's `Serial`, or `rtl.benches.byte_board.ByteBoard`.

    timeout: how long `read` waits at most, in the port's own unit.
    """

    def write(self, data: bytes, /) -> int | None: ...

    def read(self, size: int, /) -> bytes: ...


class Session:
    """Speaks with the core of `design`; the port stays its owner's.

    A request is sent again, up to `tries` times in all, each time that the port's timeout passes
    without its answer; the core does it once.  retries: how many were sent again so far.
    Raises `LinkError` where no answer comes, and for a board that holds another design.
    """

    def __init__(self, port: BytePort, design: Design, *, tries: int = 8) -> None:
        require(tries >= 1, f"tries must be at least 1, not {tries}")
        self.design = self._built = design
        self.retries = 0
        self._port, self._tries = port, tries
        self._number = 0
        self._seen = bytearray()
        self._addresses = {one.name: one.address for one in register_map(design)}
        ports = {port.name: port for port in design.machine_model().ports}
        self.inputs = {port.name: number for number, port in enumerate(input_streams(design))}
        self._word_bytes = {name: word_bytes(port) for name, port in ports.items()}
        self._hello()
        self.reset()

    def _hello(self) -> None:
        """Counts begin anew, on both sides; then: is it the core that is meant?"""
        nonce = bytes(np.random.default_rng().integers(0, 256, 4, np.uint8))
        answer = self._asked(Operation.HELLO, nonce)
        if answer != nonce:
            raise LinkError(f"the board answers {answer.hex()} to a greeting of {nonce.hex()}")
        found = self.read("ID", "MAP_VERSION", "DESIGN")
        if found["ID"] != IDENTIFICATION or found["MAP_VERSION"] != MAP_VERSION:
            raise LinkError(
                f"the board must hold a core of archsim with register map {MAP_VERSION}; "
                f"its ID reads 0x{found['ID']:08X}, its map {found['MAP_VERSION']}"
            )
        wanted = design_crc(self.design)
        if found["DESIGN"] != wanted:
            raise LinkError(
                f"the board must hold {self.design.summary}, whose identification is "
                f"0x{wanted:08X}; it has 0x{found['DESIGN']:08X}: build it with these settings"
            )

    def _asked(self, operation: Operation, payload: bytes = b"") -> bytes:
        """The payload of the answer; raises `LinkError` unless it is `DONE`."""
        self._number = (self._number + 1) % NUMBERS
        request = frame_bytes(REQUEST, Frame(self._number, operation, payload))
        for attempt in range(self._tries):
            self.retries += attempt > 0
            self._port.write(request)
            while (answer := self._heard()) is not None:
                right = answer.number == self._number
                if operation is Operation.HELLO:  # of a session before, another's greeting
                    right = right and answer.payload == payload
                if right:
                    return _done(operation, answer)
        raise LinkError(
            f"no answer to {operation.name}, asked {self._tries} times: is the board connected, "
            f"and does it hold a core with a byte link?"
        )

    def _heard(self) -> Frame | None:
        """The next whole answer; None if the port's time passes without."""
        while True:
            frame = take_frame(ANSWER, self._seen)
            if frame is not None:
                return frame
            more = self._port.read(self._missing())
            if not more:
                return None
            self._seen += more

    def _missing(self) -> int:
        """Bytes to wait for: of a frame that has begun, as far as its head tells."""
        if len(self._seen) < HEAD_BYTES:
            return FRAME_BYTES - len(self._seen)
        length = int.from_bytes(self._seen[HEAD_BYTES - 2 : HEAD_BYTES], "little")
        return max(1, min(length, PAYLOAD) + FRAME_BYTES - len(self._seen))

    def read(self, *names: str) -> dict[str, int]:
        """Registers by name, in one moment for the two halves of a counter."""
        found: dict[str, int] = {}
        for at in range(0, len(names), READ_AT_ONCE):
            part = names[at : at + READ_AT_ONCE]
            asked = b"".join(self._address(name).to_bytes(2, "little") for name in part)
            answer = self._asked(Operation.READ, asked)
            values = struct.unpack(f"<{len(part)}I", answer)
            found |= dict(zip(part, values, strict=True))
        return found

    def write(self, values: Mapping[str, int]) -> None:
        """Registers by name, in their order."""
        items = [_WRITE.pack(self._address(name), value) for name, value in values.items()]
        for at in range(0, len(items), WRITTEN_AT_ONCE):
            self._asked(Operation.WRITE, b"".join(items[at : at + WRITTEN_AT_ONCE]))

    def _address(self, name: str) -> int:
        require(name in self._addresses, f"there is no register {name!r}")
        return self._addresses[name]

    def reset(self) -> None:
        """Core, queues, counters and memories' settings as after power-up."""
        self._asked(Operation.RESET)
        self.design = self._built

    def set_memories(self, design: Design) -> None:
        """From here on to a reset, memories fail as `design` says, which `self.design` becomes.

        Its chips, draws and rates go into their registers, between layers. Raises `InputError`
        for a design that differs from the board's in anything else; `LinkError` during a layer.
        """
        require(
            design_as_built(design) == design_as_built(self._built),
            f"only rate, voltage, chip and draw of faulty memories may differ from the board's: "
            f"it holds {self._built.summary}",
        )
        address = self._address(SETTINGS) if has_settings(design) else 0
        bits = setting_bits(design)
        for at in range(0, len(bits), WRITTEN_AT_ONCE):
            part = bits[at : at + WRITTEN_AT_ONCE]
            self._asked(Operation.WRITE, b"".join(_WRITE.pack(address, bit) for bit in part))
        self.design = design

    def restart(self) -> None:
        """A reset behind which memories are set as before."""
        design = self.design
        self.reset()
        if design != self._built:
            self.set_memories(design)

    def counters(self) -> dict[str, int]:
        """What the core has counted since its reset: actions, cycles, cycles of waiting."""
        names = [name for name in self._addresses if name.endswith(("_LOW", "_HIGH"))]
        halves = self.read(*names)
        return {
            name.removesuffix("_LOW").lower(): halves[name]
            | halves[f"{name.removesuffix('LOW')}HIGH"] << 32
            for name in names
            if name.endswith("_LOW")
        }

    def layer(self, command: Words, words: Mapping[str, Words], ofmap_words: int) -> Words:
        """One layer: its ofmap's words [n, bytes].

        command: bytes of the layer command.  words: of each input port [n, bytes], whole bytes a
        word, lane 0 lowest.  ofmap_words: how many will come.  Raises `LinkError` where the core
        takes and gives nothing any more before they came.
        """
        filled = bytes(command.tobytes()) + bytes(-command.size % 4)
        self.write(
            {
                f"COMMAND_{at // 4}": int.from_bytes(filled[at : at + 4], "little")
                for at in range(0, len(filled), 4)
            }
            | {"OFMAP_WORDS": ofmap_words, "INTERRUPT_STATUS": 1, "CONTROL": 1}
        )
        return self._flow({name: _Pending(own) for name, own in words.items()}, ofmap_words)

    def _flow(self, pending: Mapping[str, _Pending], ofmap_words: int) -> Words:
        """Words to each input as it takes them, words of the ofmap as they come."""
        width = self._word_bytes["ofmap"]
        found: list[bytes] = []
        count = 0
        still = _Still(self)
        while count < ofmap_words:
            moved = sum(self._send(name, own) for name, own in pending.items() if own.left)
            most = min(ofmap_words - count, PAYLOAD // width)
            answer = self._asked(Operation.RECEIVE, most.to_bytes(2, "little"))
            found.append(answer)
            count += len(answer) // width
            if still.seen(bool(moved or answer)):
                left = {name: own.left for name, own in pending.items() if own.left}
                raise LinkError(
                    f"the core stands still with {ofmap_words - count} words of its ofmap to come"
                    + (f" and words left for {left}" if left else "")
                )
        left = {name: own.left for name, own in pending.items() if own.left}
        if left:
            raise LinkError(f"the layer has ended with words left for {left}")
        return np.frombuffer(b"".join(found), np.uint8).reshape(-1, width)

    def _send(self, name: str, own: _Pending) -> int:
        part = own.words[own.at : own.at + (PAYLOAD - 1) // own.words.shape[1]]
        payload = bytes([self.inputs[name]]) + part.tobytes()
        taken = int.from_bytes(self._asked(Operation.SEND, payload), "little")
        own.at += taken
        return taken


class _Still:
    """Whether a core does nothing any more: no word crosses, no action is counted."""

    POLLS = 8

    def __init__(self, session: Session) -> None:
        self._session = session
        self._polls = 0
        self._actions: dict[str, int] = {}

    def seen(self, moved: bool) -> bool:
        """True when it has been so for `POLLS` rounds."""
        if moved:
            self._polls = 0
            return False
        counters = self._session.counters()
        actions = {name: n for name, n in counters.items() if name.startswith("count_")}
        self._polls = self._polls + 1 if actions == self._actions else 0
        self._actions = actions
        return self._polls >= self.POLLS


class _Pending:
    """Words of a port, and how many of them were taken."""

    def __init__(self, words: Words) -> None:
        self.words, self.at = words, 0

    @property
    def left(self) -> int:
        return len(self.words) - self.at


def _done(operation: Operation, answer: Frame) -> bytes:
    if answer.code != Status.DONE:
        known = answer.code in Status.__members__.values()
        status = Status(answer.code).name if known else f"status {answer.code}"
        raise LinkError(f"the core answers {operation.name} with {status}")
    return answer.payload
