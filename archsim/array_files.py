"""Arrays from a user's .npy and .npz files, each looked at before it is read.

A header tells how large an array is, and may lie; an archive may unpack to more than there is.  So
sizes are compared with the limits (`workloads.limits`) and with the file before anything is read.
"""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, require, require_within
from workloads.limits import limits

MEMBERS = 10_000
"""Arrays of an archive; a network has an input or two."""


def load_npy(path: Path) -> npt.NDArray[Any]:
    """The array of an .npy file.  Raises `InputError` for anything else, and for too large ones."""
    with _Opened(path, "an .npy file of numbers") as file:
        if file.read(2) == b"PK":
            raise InputError(f"{path} holds several arrays; give an .npy file")
        file.seek(0, 2)
        size = file.tell()
        file.seek(0)
        return _array(file, str(path), size)


def load_npz(path: Path, what: str = "an .npz file of input arrays") -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file by name.  what: it is wanted as.

    Raises `InputError` as `load_npy`.
    """
    found: dict[str, npt.NDArray[Any]] = {}
    with _Opened(path, what) as file:
        if file.read(6) == b"\x93NUMPY":
            raise InputError(f"{path} holds one array; an .npz names each input's array")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            require(len(members) <= MEMBERS, f"{path} must hold at most {MEMBERS} arrays")
            require(bool(members), f"{path} must hold arrays, and holds none")
            total = sum(one.file_size for one in members)
            require_within("file_mib", **{f"{path}: MiB unpacked": total >> 20})
            for one in members:
                name = one.filename.removesuffix(".npy")
                with archive.open(one) as member:
                    found[name] = _array(member, f"{path}: {name[:60]!r}", one.file_size)
    return found


class _Opened:
    """A file, and one line for whatever is wrong with it."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._file: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        try:
            if not S_ISREG(self._path.stat().st_mode):  # before it is opened: a pipe would wait
                raise InputError(f"{self._path} must be a file, not a folder, a device or a pipe")
            self._file = self._path.open("rb")
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error.strerror or error}") from error
        except ValueError as error:  # a NUL in the path; InputError is one of these too
            if type(error) is not ValueError:
                raise
            raise InputError(f"{self._path} cannot be read: {error}") from error
        return self._file

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._file is not None:
            self._file.close()
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InputError(f"{self._path} cannot be read: {reason}") from error
        # what numpy, zipfile and its codecs raise for a broken file has no base class in common
        if isinstance(error, Exception) and not isinstance(error, InputError):
            raise InputError(f"{self._path} is not {self._what}: {error}") from error


def _array(file: IO[bytes], where: str, size: int) -> npt.NDArray[Any]:
    """An array whose header says no more than the file's `size` holds, and the limit allows."""
    version = np.lib.format.read_magic(file)
    readers: dict[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise InputError(f"{where} is an array of a format {version} that is not read")
    shape, _, dtype = readers[version](file)
    require(not dtype.hasobject, f"{where} must hold numbers, not Python objects")
    count = prod(shape)
    require(
        count * dtype.itemsize <= size,
        f"{where} says that it holds {count:,} values of {dtype}, more than there are",
    )
    require_within("elements", **{f"{where}: elements": count})
    require(count * dtype.itemsize <= limits().file_mib << 20, f"{where} is too large")
    file.seek(0)
    values: Any = np.lib.format.read_array(file, allow_pickle=False)
    return values
