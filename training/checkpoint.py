"""A training under way in files: written beside and renamed, with a checksum, the last two kept."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Sized
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.interrupts import held
from archsim.robust.model import packed_arrays
from training.recipe import Recorded, difference

MAGIC = b"archsim checkpoint 1\n"
KEPT = 2

Arrays = dict[str, npt.NDArray[Any]]


class Resumable(Protocol):
    """A training whose state is arrays by name, and the batch that is next."""

    step: int
    injecting: bool
    weights: dict[str, npt.NDArray[np.float32]]
    momenta: dict[str, npt.NDArray[np.float32]]

    @property
    def recipe(self) -> Recorded:
        """What is trained."""
        ...

    @property
    def data(self) -> Sized:
        """What it learns from."""
        ...

    @property
    def steps(self) -> int:
        """Batches of the whole training."""
        ...


class DamagedError(Exception):
    """A file that is not, or no longer, a whole checkpoint."""


def _file(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}.checkpoint"


def checkpoints(folder: Path) -> list[Path]:
    """Those in a folder, the latest first."""
    found = [one for one in folder.glob("*.checkpoint") if re.match(r"step-\d{9}\.", one.name)]
    return sorted(found, reverse=True)


def save(folder: Path, training: Resumable) -> None:
    """Write where a training stands; older checkpoints than the one before go.

    Raises InputError where it cannot be written.
    """
    arrays: Arrays = {"head": np.frombuffer(json.dumps(_head(training)).encode(), np.uint8)}
    arrays |= {f"weight/{name}": one for name, one in training.weights.items()}
    arrays |= {f"momentum/{name}": one for name, one in training.momenta.items()}
    content = packed_arrays(arrays)
    path = _file(folder, training.step)
    beside = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with held():
            try:
                with beside.open("wb") as file:
                    file.write(MAGIC + hashlib.sha256(content).digest() + content)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
            for old in checkpoints(folder)[KEPT:]:
                old.unlink()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def _head(training: Resumable) -> dict[str, Any]:
    return {
        "recipe": training.recipe.record(),
        "pictures": len(training.data),
        "step": training.step,
        "injecting": training.injecting,
    }


def prepare(folder: Path) -> None:
    """Make the folder, before the work that fills it.  Raises InputError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder} cannot be written: it is read-only")


def resume(folder: Path, training: Resumable) -> list[str]:
    """Bring a fresh training to where the latest whole checkpoint stands, if there is one.

    Answers with what there is to say: where it goes on, and which files are damaged.  Raises
    InputError where checkpoints are of another training, or all are damaged.
    """
    said: list[str] = []
    for path in checkpoints(folder):
        try:
            head, arrays = _read(path)
        except DamagedError as error:
            said.append(f"{path} is damaged ({error}); the one before is taken")
            continue
        _require_same(path, head, training)
        training.step, training.injecting = int(head["step"]), bool(head["injecting"])
        for name in training.weights:
            training.weights[name] = arrays[f"weight/{name}"]
        for name in training.momenta:
            training.momenta[name] = arrays[f"momentum/{name}"]
        return [*said, f"going on from {path}, batch {training.step} of {training.steps}"]
    if said:
        raise InputError(
            f"all checkpoints in {folder} are damaged; remove them to begin again: {said[0]}"
        )
    return []


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """What a whole checkpoint holds.  Raises DamagedError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedError(error.strerror or str(error)) from error
    start = len(MAGIC) + hashlib.sha256().digest_size
    if content[: len(MAGIC)] != MAGIC or len(content) < start:
        raise DamagedError("it does not begin like one")
    if hashlib.sha256(content[start:]).digest() != content[len(MAGIC) : start]:
        raise DamagedError("its checksum is wrong")
    try:
        with np.load(io.BytesIO(content[start:]), allow_pickle=False) as file:
            arrays: Arrays = {name: file[name] for name in file.files}
        return cast("dict[str, Any]", json.loads(bytes(arrays.pop("head")))), arrays
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedError(str(error)) from error


def _require_same(path: Path, head: dict[str, Any], training: Resumable) -> None:
    recipe = cast("dict[str, Any]", head["recipe"])
    other = difference(training.recipe, recipe)
    if not other and head["pictures"] != len(training.data):
        other = f"{head['pictures']} pictures, not {len(training.data)}"
    if other:
        raise InputError(
            f"{path} is of another training ({other}); give another folder of checkpoints"
        )


__all__ = ["checkpoints", "prepare", "resume", "save"]
