"""Files of a user's, read whole: never more of them than a limit, and TOML whatever its shape."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

TEXT_BYTES = 16 << 20
"""No design, technology, table or tiling is a larger file."""

PIECE_BYTES = 1 << 20
"""Read at once."""

DIGITS = 4300
"""Digits of a whole number, which is what Python itself reads and writes of one."""

Refusal = Callable[[str], Exception]
"""What is raised, made from its message."""


def read_text(path: Path, refuse: Refusal, *, what: str, most: int = TEXT_BYTES) -> str:
    """The text of a file of at most `most` bytes, whatever it is: /dev/zero ends there too.

    what: the file should be, for messages: "a TOML file".  A pipe is read as well, if anything
    writes to it: one of a name to which nothing does would be waited for without end.
    """
    try:
        data = _read(path, most + 1, refuse)
        if len(data) > most:
            raise refuse(f"{path} must be at most {most:,} bytes")
        return data.decode("utf-8")
    except OSError as error:
        raise refuse(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise refuse(f"{path} is not {what}: {error}") from error
    except ValueError as error:  # a NUL in the path; `refuse` may make errors of this class too
        if type(error) is not ValueError:
            raise
        raise refuse(f"{path} cannot be read: {error}") from error


def _read(path: Path, most: int, refuse: Refusal) -> bytes:
    if not path.is_fifo():
        with path.open("rb") as file:
            return _up_to(file, most)
    with FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as pipe:
        first = pipe.read(1)  # None where somebody will write, but has not yet
        if first == b"":
            raise refuse(f"{path} is a pipe to which nothing is written")
        os.set_blocking(pipe.fileno(), True)
        return (first or b"") + _up_to(BufferedReader(pipe), most)


def _up_to(file: BufferedReader, most: int) -> bytes:
    """Piece by piece: `file.read(most)` takes memory for so many bytes, however short it is."""
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(min(most, PIECE_BYTES))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def parse_toml(text: str, where: str, refuse: Refusal) -> dict[str, Any]:
    """TOML text as a table.  Refused: numbers of too many digits, and nests too deep to read.

    Raises `tomllib.TOMLDecodeError` for what is no TOML.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        levels = sys.getrecursionlimit() // 4
        raise refuse(f"{where} is nested too deep: about {levels} levels are read") from None
    except ValueError as error:
        if isinstance(error, tomllib.TOMLDecodeError):
            raise
        raise refuse(f"{where} holds a number of more than {DIGITS:,} digits") from error


def load_toml(path: Path, refuse: Refusal) -> dict[str, Any]:
    """The table in a TOML file; `refuse` makes the error of what cannot be read or is none."""
    return load_toml_text(read_text(path, refuse, what="a TOML file"), str(path), refuse)


def load_toml_text(text: str, where: str, refuse: Refusal) -> dict[str, Any]:
    """The table in the text of a TOML file; `refuse` makes the error of what is none."""
    try:
        return parse_toml(text, where, refuse)
    except tomllib.TOMLDecodeError as error:
        raise refuse(f"{where} is not a TOML file: {error}") from error
