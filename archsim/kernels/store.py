"""Object files of kernels in the user's cache folder: never stale, never half written, few.

A file is named by the kernel, its types of arguments, and a key of all that it was made from; it
holds a checksum.  Each version of a kernel that was not used lately goes when another is written.
Where the folder cannot be written, kernels are compiled in memory, and one warning says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import warnings
from pathlib import Path

from archsim.interrupts import held
from workloads.cache_folder import CACHE_VARIABLE, cache_folder

VERSIONS = 8
"""Of a kernel, kept: checkouts and environments of one user share the folder."""

UNUSED_SECONDS = 60 * 24 * 3600
"""After so long without a use, a file of whatever kernel goes."""

_MARK = b"archsim kernel 1\n"
_DIGEST = 32


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept."""


_warned = False


def kernel_folder() -> Path:
    """Where compiled kernels are kept (it need not exist)."""
    return cache_folder() / "kernels"


def read(name: str, key: str) -> bytes | None:
    """What was written under this key; None where there is nothing, or nothing whole."""
    path = kernel_folder() / f"{name}-{key}.o"
    try:
        data = path.read_bytes()
    except OSError:
        return None
    start = len(_MARK) + _DIGEST
    whole = data[: len(_MARK)] == _MARK
    if not whole or hashlib.sha256(data[start:]).digest() != data[len(_MARK) : start]:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return data[start:]


def can_write() -> bool:
    """Whether anything can be kept."""
    folder = kernel_folder()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return os.access(folder, os.W_OK | os.X_OK)


def write(name: str, key: str, content: bytes) -> None:
    """Keep it, if that can be; old versions go."""
    folder = kernel_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held():
            descriptor, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_MARK + hashlib.sha256(content).digest() + content)
                Path(temporary).replace(folder / f"{name}-{key}.o")
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        _sweep(folder, name)
    except OSError as error:
        _warn(folder, error)


def _sweep(folder: Path, name: str) -> None:
    """Drop versions of this kernel beyond the last used ones, and what nothing used for long."""
    ages: list[tuple[float, Path]] = []
    oldest = time.time() - UNUSED_SECONDS
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            used = path.stat().st_mtime
            if used < oldest:
                path.unlink()
            elif path.name.startswith(f"{name}-") and path.suffix == ".o":
                ages.append((used, path))
    for _, path in sorted(ages, reverse=True)[VERSIONS:]:
        path.unlink(missing_ok=True)


def _warn(folder: Path, error: OSError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels cannot be kept in {folder} ({error.strerror or error}), so every "
            f"run compiles them anew; name a folder that can be written in {CACHE_VARIABLE}",
            CacheWarning,
            stacklevel=2,
        )
