"""Frames of the byte link: what a host asks and a core answers.

| bytes | of a request | of an answer |
|---|---|---|
| 1 | `REQUEST` | `ANSWER` |
| 1 | sequence number | that of the request |
| 1 | `Operation` | `Status` |
| 2 | bytes of the payload, at most `PAYLOAD`, lowest first | the same |
| n | payload | payload |
| 4 | CRC-32 (ISO-HDLC, as zlib's) of all behind the first byte, lowest first | the same |

A host sends a request, and the same again until its answer comes; a core does a request once and
answers it as often as it comes.  What is no whole frame with its CRC is passed over.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "ANSWER",
    "FRAME_BYTES",
    "HEAD_BYTES",
    "LINK_VERSION",
    "PAYLOAD",
    "REQUEST",
    "Frame",
    "Operation",
    "Status",
    "frame_bytes",
    "take_frame",
]

REQUEST, ANSWER = 0xA5, 0x5A
PAYLOAD = 1024
"""Bytes of a payload at most."""
LINK_VERSION = 1

_HEAD = struct.Struct("<BBBH")
_CRC = struct.Struct("<I")
HEAD_BYTES = _HEAD.size
FRAME_BYTES = HEAD_BYTES + _CRC.size
"""Of a frame without payload."""


class Operation(IntEnum):
    """What is asked for.  Payloads, of the request → of the answer:

    HELLO: 4 bytes → the same bytes; done whatever its number, which begins a count anew.
    READ: addresses of 2 bytes → registers of 4 bytes.
    WRITE: (address, 4 bytes) each → 2 bytes: how many were written.
    SEND: number of an input stream, words of whole bytes → 2 bytes: how many words were taken.
    RECEIVE: 2 bytes: how many words at most → words of the ofmap that are there.
    RESET: nothing → nothing: the core and its queues are as after power-up.
    """

    HELLO = 0
    READ = 1
    WRITE = 2
    SEND = 3
    RECEIVE = 4
    RESET = 5


class Status(IntEnum):
    """How it went.  REFUSED: a register did not take or give it; UNKNOWN: no such operation or
    stream; LENGTH: the payload is no whole number of what it holds, or the answer would be too
    long.  What came before in the payload is done.
    """

    DONE = 0
    REFUSED = 1
    UNKNOWN = 2
    LENGTH = 3


@dataclass(frozen=True)
class Frame:
    """code: of `Operation` or `Status`."""

    number: int
    code: int
    payload: bytes = b""


def frame_bytes(first: int, frame: Frame) -> bytes:
    """As it crosses the link; first: `REQUEST` or `ANSWER`."""
    head = _HEAD.pack(first, frame.number, frame.code, len(frame.payload))
    body = head[1:] + frame.payload
    return head[:1] + body + _CRC.pack(zlib.crc32(body))


def take_frame(first: int, seen: bytearray) -> Frame | None:
    """The first whole frame in `seen`, which loses it and what lies before; None if there is none.

    What may still become a frame stays.
    """
    waiting = len(seen)
    at = seen.find(first)
    while at >= 0:
        found = _frame_at(seen, at)
        if isinstance(found, Frame):
            del seen[: at + FRAME_BYTES + len(found.payload)]
            return found
        if found is None:  # it may be whole later, or its length is wrong and another is behind
            waiting = min(waiting, at)
        at = seen.find(first, at + 1)
    del seen[:waiting]
    return None


def _frame_at(seen: bytearray, at: int) -> Frame | bool | None:
    """A frame; False where none can begin; None where bytes are still to come."""
    if len(seen) < at + _HEAD.size:
        return None
    _, number, code, length = _HEAD.unpack_from(seen, at)
    if length > PAYLOAD:
        return False
    end = at + _HEAD.size + length
    if len(seen) < end + _CRC.size:
        return None
    body = bytes(seen[at + 1 : end])
    if _CRC.unpack_from(seen, end)[0] != zlib.crc32(body):
        return False
    return Frame(number, code, bytes(seen[at + _HEAD.size : end]))
