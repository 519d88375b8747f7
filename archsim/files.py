"""Output files and folders that appear whole under their name, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from archsim.errors import InputError


def require_new(path: Path) -> None:
    """Refuse an output path that is taken or cannot be made, before the work that fills it."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists; give a name that does not")
    parent = next(one for one in path.absolute().parents if os.path.lexists(one))
    if not parent.is_dir():
        raise InputError(f"{path} cannot be written: {parent} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: {parent} is read-only")


@contextmanager
def new_folder(path: Path) -> Generator[Path]:
    """A folder that appears under its name only when everything in it is written."""
    require_new(path)
    work: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        yield work
        work.chmod(0o755)
        work.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Generator[TextIO]:
    """A text file, written as it comes, that appears under its name only when it is whole."""
    require_new(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            yield file
        temporary.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_new(files: Mapping[Path, str]) -> None:
    """Write files that must not exist yet: all of them, each whole, or none."""
    for path in files:
        require_new(path)
    written: list[Path] = []
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            written.append(path.with_name(f".{path.name}.{os.getpid()}"))
            written[-1].write_text(text, encoding="utf-8")
        for path, temporary in zip(files, written.copy(), strict=True):
            temporary.rename(path)
            written.append(path)
        written.clear()
    except OSError as error:
        name = ", ".join(map(str, files))
        raise InputError(f"{name} cannot be written: {error.strerror or error}") from error
    finally:
        for path in written:
            path.unlink(missing_ok=True)
