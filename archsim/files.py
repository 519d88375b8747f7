"""Output files and folders that appear whole under their name, or not at all.

What exists is refused, or, inside `overwriting` (the command line's --force), replaced when the
new is whole: a file by a file, a folder by a folder that has all its names.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import TextIO

from archsim.errors import InputError
from archsim.interrupts import heard, held

LONGEST_NAME = 255
"""Bytes of a name in a folder, on any file system in use."""

_numbers = count()
_overwriting: ContextVar[bool] = ContextVar("overwriting", default=False)


@contextmanager
def overwriting(force: bool = True) -> Generator[None]:
    """Outputs that exist are replaced meanwhile, if `force`."""
    token = _overwriting.set(force)
    try:
        yield
    finally:
        _overwriting.reset(token)


def require_new(path: Path, *, folder: bool = False, names: Collection[str] | None = None) -> None:
    """Refuse an output path that is taken or cannot be made, before the work that fills it.

    names: of all that will be in a folder, where that is known by then.
    """
    if os.path.lexists(path):
        if not _overwriting.get():
            raise InputError(f"{path} exists; give a name that does not, or say --force")
        if path.is_dir() != folder:
            kinds = ("a folder", "not a file") if path.is_dir() else ("a file", "not a folder")
            raise InputError(f"{path} is {kinds[0]}, {kinds[1]}; give another name")
        if not (folder or path.is_file() or (path.is_symlink() and not path.exists())):
            raise InputError(f"{path} is a device or the like, not a file; give another name")
        if names is not None:
            _require_all_replaced(path, names)
    for part in path.parts:
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise InputError(
                f"{path} cannot be written: a name has at most {LONGEST_NAME} bytes, not "
                f"{len(os.fsencode(part))}"
            )
    parent = next((one for one in path.absolute().parents if os.path.lexists(one)), Path("/"))
    if not parent.is_dir():
        raise InputError(f"{path} cannot be written: {parent} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: {parent} is read-only")


def _require_all_replaced(folder: Path, names: Collection[str]) -> None:
    kept = sorted({one.name for one in folder.iterdir()}.difference(names))
    if kept:
        raise InputError(
            f"{folder} holds {kept[0]}, which is not from this command; give another name"
        )


@contextmanager
def _place(path: Path, *others: Path) -> Generator[None]:
    """Folders for outputs, which go again where nothing comes to be in them; errors are told."""
    made: list[Path] = []
    with held():
        try:
            for one in (path, *others):
                missing = [parent for parent in one.parents if not os.path.lexists(parent)]
                for parent in reversed(missing):
                    parent.mkdir()
                    made.append(parent)
            with heard():
                yield
        except (OSError, UnicodeError) as error:
            said = error.strerror if isinstance(error, OSError) else None
            names = ", ".join(map(str, (path, *others)))
            raise InputError(f"{names} cannot be written: {said or error}") from error
        finally:
            for parent in reversed(made):
                with suppress(OSError):  # it is not empty: all went well
                    parent.rmdir()


def _beside(path: Path) -> Path:
    """A name for what becomes `path`, or was it: short, for `path` may have all the letters."""
    return path.with_name(f".archsim-{os.getpid()}-{next(_numbers)}")


@contextmanager
def scratch_folder(purpose: str = "", place: Path | None = None) -> Generator[Path]:
    """A folder for work, which goes when that ends, however it ends.

    purpose: part of its name; place: the folder that it is in, the system's for such if None.
    Raises `InputError` where none can be made.
    """
    with held():
        try:
            work = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=place))
        except OSError as error:
            raise InputError(
                f"no folder for work can be made ({error.strerror}); TMPDIR may name a place for it"
            ) from error
        try:
            with heard():
                yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def new_folder(path: Path) -> Generator[Path]:
    """A folder that appears under its name only when everything in it is written.

    One that exists is replaced, where that is allowed, if it holds nothing else.
    """
    require_new(path, folder=True)
    with _place(path), held():
        work = Path(tempfile.mkdtemp(prefix=".archsim-", dir=path.parent))
        try:
            with heard():
                yield work
            work.chmod(0o755)
            _replace_folder(path, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _replace_folder(path: Path, work: Path) -> None:
    """Put a folder under its name; what stood there goes, if the new one has all its names."""
    if not os.path.lexists(path):
        work.rename(path)
        return
    _require_all_replaced(path, [one.name for one in work.iterdir()])
    with tempfile.TemporaryDirectory(prefix=".archsim-", dir=path.parent) as aside:
        old = path.rename(Path(aside) / "old")
        try:
            work.rename(path)
        except OSError:
            old.rename(path)
            raise


@contextmanager
def new_by_name(path: Path) -> Generator[Path]:
    """A name that other code writes to; the file appears under its own when it is whole."""
    require_new(path)
    with _place(path), held():
        work = Path(tempfile.mkdtemp(prefix=".archsim-", dir=path.parent))
        try:
            with heard():
                yield work / path.name
            (work / path.name).replace(path)
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Generator[TextIO]:
    """A text file, written as it comes, that appears under its name only when it is whole."""
    require_new(path)
    temporary = _beside(path)
    with _place(path), held():
        try:
            with heard(), temporary.open("w", encoding="utf-8") as file:
                yield file
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_new(files: Mapping[Path, str | bytes]) -> None:
    """Write files, texts in UTF-8, that must not exist yet: all of them, each whole, or none.

    Where they may be replaced, all of the old ones are there as they were if one cannot be.
    """
    for path in files:
        require_new(path)
    with _place(*files), held():
        fresh: dict[Path, Path] = {}
        try:
            with heard():
                for path, content in files.items():
                    fresh[path] = _beside(path)
                    data = content.encode() if isinstance(content, str) else content
                    fresh[path].write_bytes(data)
            _replace_all(fresh)
        finally:
            for temporary in fresh.values():
                temporary.unlink(missing_ok=True)


def _replace_all(fresh: Mapping[Path, Path]) -> None:
    """Put files under their names, or leave all that is there as it was."""
    kept: dict[Path, Path | None] = {}
    try:
        for path, temporary in fresh.items():
            kept[path] = old = _beside(path) if os.path.lexists(path) else None
            if old is not None:
                path.rename(old)
            temporary.rename(path)
    except OSError:
        for path, old in kept.items():
            if old is None:
                path.unlink(missing_ok=True)
            elif os.path.lexists(old):
                old.replace(path)
        raise
    for old in filter(None, kept.values()):
        old.unlink()
