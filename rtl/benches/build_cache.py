"""A cache of compiled simulators, shared by all processes of a user.

An entry is a folder named by the hash of all that it was built from. It is built beside its place
and moved there in one step, so that no process ever sees half an entry; of two processes that
build the same, the slower throws its work away. make builds in no folder of whose path a space is a
part: where the cache is such a one, entries are built among temporary files.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from archsim.files import scratch_folder
from workloads.cache_folder import cache_folder

__all__ = ["build_once", "cache_key", "is_built", "simulators"]


def simulators() -> Path:
    """The folder of all entries (it need not exist)."""
    return cache_folder() / "simulators"


def cache_key(*parts: str) -> str:
    """A name for what is built from `parts`: texts, versions, options, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def is_built(kind: str, key: str) -> bool:
    """Whether `build_once` would find entry `key` of `kind`."""
    return (simulators() / kind / key).is_dir()


def build_once(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder of entry `key` of `kind`, made by `build(folder)` if it is not there.

    What `build` writes must not name the folder it is given: the folder moves afterwards. Should
    `build` raise, nothing is kept.
    """
    place = simulators() / kind / key
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder(f".{key[:8]}", place.parent) as work:
        if any(map(str.isspace, str(place))):
            with scratch_folder("archsim") as elsewhere:
                build(elsewhere)
                shutil.copytree(elsewhere, work, symlinks=True, dirs_exist_ok=True)
        else:
            build(work)
        try:
            work.rename(place)
        except OSError:
            if not place.is_dir():
                raise
    return place
