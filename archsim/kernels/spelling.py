"""Arguments of kernels: as text, as the words of a call; and answers, back from their words.

A type is spelled `int`, `float`, `bool`, `i8.2` (an array of int64 with two axes; `f4.1`, `u1.3`
alike), `u8` (a number of that kind), or a tuple of such, `(int,i8.1)`, with the name of its class
before it if it has one.  Arrays are in C order.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_PLAIN = {"i8": "int", "f8": "float", "b1": "bool"}

ARRAY_WORDS = 5
"""Of an array before its shape and strides: owner, parent, elements, bytes of one, address."""

ADDRESS = 4


@dataclass
class Arguments:
    """What a call is given: the types, the words as compiled code takes them, and copies of arrays
    that are not in C order, with the arrays that they stand for."""

    types: list[str] = field(default_factory=list[str])
    words: list[Any] = field(default_factory=list[Any])
    copies: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])

    def add(self, value: Any) -> None:
        """One more.  Raises `TypeError` for what no kernel takes."""
        if isinstance(value, np.ndarray):
            self._add_array(cast("Array", value))
        elif isinstance(value, tuple):
            entries = cast("tuple[Any, ...]", value)
            name = type(entries).__name__ if hasattr(entries, "_fields") else ""
            inner = Arguments(words=self.words, copies=self.copies)
            for entry in entries:
                inner.add(entry)
            self.types.append(f"{name}({inner.spelled})")
        elif isinstance(value, np.generic):
            scalar = cast("Any", value)
            text = dtype_text(scalar.dtype)
            self.types.append(_PLAIN.get(text, text))
            self.words.append(scalar.item())
        elif isinstance(value, (bool, int, float)):
            self.types.append(type(value).__name__)
            self.words.append(value)
        else:
            raise TypeError(f"a kernel takes numbers, arrays and tuples of them, not {value!r}")

    def _add_array(self, array: Array) -> None:
        if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
            copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
            self.copies.append((copy, array))
            array = copy
        seen = array.__array_interface__
        shape = seen["shape"]
        self.types.append(f"{seen['typestr'][1:]}.{len(shape)}")
        self.words += (0, 0, array.size, array.itemsize, seen["data"][0], *shape, *array.strides)

    @property
    def spelled(self) -> str:
        """The types in a row."""
        return ",".join(self.types)

    def give_back(self) -> None:
        """What the call wrote into copies, into the arrays that they stand for."""
        for copy, array in self.copies:
            if array.flags.writeable:
                array[...] = copy


def examples(spelled: str, scope: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments of these types, arrays without elements.

    scope: where classes of named tuples stand by name.  Raises `TypeError` where one is not there,
    and where it is not one type each.
    """
    return tuple(_example(entry, scope) for entry in _entries(f"({spelled})"))


def _example(spelled: str, scope: Mapping[str, Any]) -> Any:
    """One of them."""
    plain = {"int": 0, "float": 0.0, "bool": False}
    if spelled in plain:
        return plain[spelled]
    if spelled.startswith("("):
        return tuple(_example(entry, scope) for entry in _entries(spelled))
    name, _, inner = spelled.partition("(")
    if inner and name in scope:
        return scope[name](*examples(inner[:-1], scope))
    found = re.fullmatch(r"([a-z][0-9]+)(?:\.([0-9]+))?", spelled)
    if found is None:
        raise TypeError(f"no argument can be made of {spelled}")
    dtype, axes = np.dtype(found[1]), found[2]
    return dtype.type(0) if axes is None else np.zeros((0,) * int(axes), dtype)


def words_of(spelled: str) -> str:
    """Of an answer's type, the words that it takes, as `struct` writes them: q, d or b."""
    plain = {"none": "", "int": "q", "float": "d", "bool": "b"}
    if spelled in plain:
        return plain[spelled]
    if spelled.startswith("("):
        return "".join(map(words_of, _entries(spelled)))
    return "q" * (ARRAY_WORDS + 2 * int(spelled.rpartition(".")[2]))


def reader(spelled: str) -> Callable[[Any, Callable[[int], None]], Any]:
    """What makes an answer of that type of what a call has left in memory.

    Arrays become NumPy's own, and the function that it is given besides frees their owner.  A tuple
    holds words of eight bytes only.
    """
    if spelled == "none":
        return lambda memory, release: None
    if spelled == "bool":
        return lambda memory, release: memory[0] != b"\0"
    unpack = struct.Struct(f"={words_of(spelled)}").unpack_from
    read = _reader(spelled)
    return lambda memory, release: read(iter(unpack(memory)), release)


_Reader = Callable[[Iterator[Any], Callable[[int], None]], Any]


def _reader(spelled: str) -> _Reader:
    """Of a part of an answer, from the words that are left."""
    if spelled in ("int", "float"):
        return lambda words, release: next(words)
    if spelled.startswith("("):
        entries = [_reader(entry) for entry in _entries(spelled)]
        return lambda words, release: tuple(read(words, release) for read in entries)
    text, _, count = spelled.rpartition(".")
    dtype, axes = np.dtype(text), int(count)
    return lambda words, release: _array(words, release, dtype, axes)


def _array(
    words: Iterator[Any], release: Callable[[int], None], dtype: np.dtype[Any], axes: int
) -> Array:
    owner, _, size, itemsize, address, *rest = islice(words, ARRAY_WORDS + 2 * axes)
    shape, strides = tuple(rest[:axes]), tuple(rest[axes:])
    made: Array = np.empty(shape, dtype)
    if made.strides == strides or size <= 1:
        ctypes.memmove(made.__array_interface__["data"][0], address, size * itemsize)
    else:
        reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + itemsize
        there = (ctypes.c_char * reach).from_address(address)
        made[...] = np.ndarray(shape, dtype, there, strides=strides)
    if owner:
        release(owner)
    return made


def _entries(spelled: str) -> list[str]:
    """Of a tuple's type, those of its entries."""
    found, depth = [""], 0
    for part in re.split(r"([(),])", spelled[spelled.index("(") + 1 : -1]):
        depth += (part == "(") - (part == ")")
        if part == "," and depth == 0:
            found.append("")
        else:
            found[-1] += part
    return [entry for entry in found if entry]


def dtype_text(dtype: np.dtype[Any]) -> str:
    """i8, f4, u1 and so on."""
    return dtype.str[1:]
