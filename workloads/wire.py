"""What a serialised protobuf message holds, counted before a library makes objects of it.

Two bytes of a file make an empty message, and that some hundred bytes of memory.  So messages and
texts are counted in the bytes themselves, by the schema, until one is beyond its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

DEEPEST = 100
"""Messages within messages: protobuf reads no more."""

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_LONGEST_VARINT = 10

Count = Callable[[str, int], None]
"""Called with the full name of a kind of message ("onnx.NodeProto"; "" of all messages and texts
together) and how many there are so far; raises where that is too many, or "depth" is."""


def count_messages(data: bytes, descriptor: Any, count: Count) -> None:
    """Tell `count` of every message within a message, and of every text.

    descriptor: of the outermost message.  Bytes that are no message end the count: the library's
    parser refuses them in its own words.
    """
    counts = {"": 0}
    stack = [_parts(memoryview(data), descriptor)]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
            continue
        content, inner = part
        counts[""] += 1
        count("", counts[""])
        if inner is None:
            continue
        kind: str = inner.full_name
        counts[kind] = counts.get(kind, 0) + 1
        count(kind, counts[kind])
        count("depth", len(stack))
        stack.append(_parts(content, inner))


def _parts(data: memoryview, descriptor: Any) -> Iterator[tuple[memoryview, Any]]:
    """The messages (with their descriptor) and texts (with None) of a message."""
    fields: Any = descriptor.fields_by_number
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        elif wire == _VARINT:
            _, at = _varint(data, at)
        elif wire == _BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                return
            field = fields.get(tag >> 3)
            if field is not None and field.cpp_type >= field.CPPTYPE_STRING:
                yield data[at : at + size], field.message_type
            at += size
        elif wire not in (_GROUP, _GROUP_END):  # what a group holds follows as if it were here
            return


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, and where it ends; beyond all where it does not."""
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, at + place + 1
    return value, len(data) + 1


__all__ = ["DEEPEST", "Count", "count_messages"]
