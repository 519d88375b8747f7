"""Fault maps that were measured: a file with a number for every cell of an array.

A cell of a CSV or NPZ file is 0 if it reads right, 1 if it reads 1 whatever is stored (0→1), 2 if
it reads 0 (1→0), and 3 if it reads the other value.  Rows of the file are those of the array.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

import numpy as np
import numpy.typing as npt

from archsim.array_files import load_npz
from archsim.errors import InputError, require

Kinds = npt.NDArray[np.uint8]

READS_ONE, READS_ZERO, FLIPS = 1, 2, 3
MOST_CELLS = 1 << 26
LONGEST_LINE = 1 << 20
"""Characters of a CSV file's line."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured array; digest: of its cells, by which maps are equal or not.

    kinds [rows, columns]: `READS_ONE` and so on; rate: the share of cells that may fail.
    """

    path: str
    digest: str
    rows: int
    columns: int
    rate: float
    kinds: Kinds = field(compare=False, repr=False)

    def masks(
        self, words: npt.NDArray[np.int64], bits: int, *, alternate: bool
    ) -> tuple[Kinds, Kinds]:
        """[words, bits] of words by number: 1 where a bit is wrong if 0, or if 1, is stored.

        Words of so many bits lie side by side in a row, one behind the other, or `alternate` bit by
        bit.  Raises `InputError` for words that the array has not.
        """
        side = self.columns // bits
        require(
            words.size == 0 or int(words.max()) < self.rows * side,
            f"{self.path} has {self.rows * side} words of {bits} bits, no {words.max(initial=0)}",
        )
        row, place = words // side, words % side
        bit = np.arange(bits)
        columns = bit * side + place[:, None] if alternate else place[:, None] * bits + bit
        found = self.kinds[row[:, None], columns]
        return found & np.uint8(READS_ONE), (found >> 1).astype(np.uint8)


def measured(path: str) -> Measured:
    """The array of a .csv or .npz file.

    Raises `InputError` for anything else: sizes are looked at before anything is allocated.
    """
    where = Path(path)
    try:
        status = where.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}") from error
    require(S_ISREG(status.st_mode), f"{path} must be a file on a disk, not a device or a pipe")
    return _known(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _known(path: str, size: int, changed: int) -> Measured:
    kinds = _of_npz(path) if path.endswith(".npz") else _of_csv(path, size)
    kinds.flags.writeable = False
    return Measured(
        path=path,
        digest=hashlib.sha256(repr(kinds.shape).encode() + kinds.tobytes()).hexdigest(),
        rows=kinds.shape[0],
        columns=kinds.shape[1],
        rate=float(np.count_nonzero(kinds)) / kinds.size,
        kinds=kinds,
    )


def _of_npz(path: str) -> Kinds:
    arrays = load_npz(Path(path))
    require(len(arrays) == 1, f"{path} must hold one array, a fault map, not {len(arrays)}")
    (array,) = arrays.values()
    require(
        array.ndim == 2 and array.size > 0 and array.dtype.kind in "iub",
        f"{path} must hold whole numbers [rows, columns], not {array.dtype} of {array.shape}",
    )
    require(array.size <= MOST_CELLS, f"{path} must have at most {MOST_CELLS} cells")
    low, high = int(array.min()), int(array.max())
    require(
        low >= 0 and high <= FLIPS, f"{path}: cells must be 0 to 3, not {low if low < 0 else high}"
    )
    return np.ascontiguousarray(array, np.uint8)


def _of_csv(path: str, size: int) -> Kinds:
    require(path.endswith(".csv"), f"{path} must be a .csv or .npz file, a fault map")
    require(size <= 4 * MOST_CELLS, f"{path} must have at most {MOST_CELLS} cells")
    rows: list[bytes] = []
    known = {b"0": 0, b"1": 1, b"2": 2, b"3": 3}
    try:
        with Path(path).open("rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                where = f"{path}, line {len(rows) + 1}"
                require(
                    len(line) <= LONGEST_LINE, f"{where} is longer than {LONGEST_LINE} characters"
                )
                cells = [one.strip() for one in line.split(b",")]
                wrong = [one for one in cells if one not in known]
                if wrong:
                    said = wrong[0][:20].decode("utf-8", "replace")
                    raise InputError(f"{where}: cells must be 0 to 3, not {said!r}")
                rows.append(bytes(known[one] for one in cells))
                require(
                    len(rows[-1]) == len(rows[0]),
                    f"{where} must have {len(rows[0])} cells, not {len(rows[-1])}",
                )
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    require(bool(rows), f"{path} must hold a fault map, and is empty")
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1).copy()


__all__ = ["FLIPS", "READS_ONE", "READS_ZERO", "Measured", "measured"]
