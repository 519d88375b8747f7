"""The command line attacked (`attacks`): one line or an answer, within memory and time."""

from __future__ import annotations

import io
import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from attacks import (
    SPACE,
    Attack,
    attacks,
    of_files,
    of_places,
    of_surroundings,
    of_values,
    prepare,
    start,
)
from bounded_child import BoundedChild
from hostile_models import conv

SEED = 20261126
MEMORY_MIB, SECONDS = 1536, 20
COMPILING_SECONDS = 120
"""Of what compiles kernels: the first of what makes good files, where there are none."""
FEW = {"values": 10, "files": 10, "places": 10, "surroundings": 4}
"""Of a part, in the fast tests; in surroundings with a cache of their own kernels are compiled."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Of what is not attacked, by suffix."""
    with BoundedChild(seconds=COMPILING_SECONDS) as child:
        return good_files(child, tmp_path_factory.mktemp("good"))


def good_files(child: BoundedChild, folder: Path) -> dict[str, bytes]:
    """By suffix."""

    def shown(*words: str) -> bytes:
        ended = child.archsim(*words, cwd=folder)
        assert ended.code == 0, ended
        return ended.out.encode()

    onnx = conv().SerializeToString()
    (folder / "small.onnx").write_bytes(onnx)
    (folder / "space.toml").write_text(SPACE)
    shown("sweep", "space.toml", "-o", "study", "--workers", "1", "--json")
    study = (folder / "study" / "study.duckdb").read_bytes()
    for name in ("small.onnx", "space.toml"):
        (folder / name).unlink()
    shutil.rmtree(folder / "study")
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, np.ones((4, 8, 8), np.int8))
    np.savez_compressed(npz, x=np.ones((1, 4, 8, 8), np.float32))
    return {
        "toml": shown("show", "edge-16"),
        "json": shown("run", "edge-16", "alexnet", "--timing-only", "--json"),
        "onnx": onnx,
        "duckdb": study,
        "npy": npy.getvalue(),
        "npz": npz.getvalue(),
        "lib": b"library (x) { cell (a) { area : 1; pin (y) { direction : output; } } }",
        "tflite": b"\x1c\0\0\0TFL3" + bytes(200),
    }


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def bad_ends(
    todo: Mapping[str, Attack], good: Mapping[str, bytes], folder: Path, seconds: int = SECONDS
) -> dict[str, str]:
    """Attacks that end otherwise than in an answer or in a line, or leave something, and how."""
    found: dict[str, str] = {}
    with BoundedChild(memory_mib=MEMORY_MIB, seconds=seconds) as child:
        prepare(folder / "files", good)
        there = names(folder / "files")
        for name, attack in todo.items():
            here = folder / "here"
            start(here, good)
            before = names(here)
            ended = child.archsim(
                *attack.words, cwd=here, environment=attack.environment, stdout=attack.stdout
            )
            cache = Path(attack.environment.get("ARCHSIM_CACHE_DIR", "")).parts[:1]
            after = [one for one in names(here) if one not in cache]  # asked for, whatever ended
            if ended.fault:
                found[name] = f"{ended.fault}: {ended.err[-300:]}"
            elif ended.code == 2 and before != after:
                found[name] = f"leaves {set(after).symmetric_difference(before)}"
            elif any(one.startswith(".archsim") for one in after):
                found[name] = f"leaves {after}"
            shutil.rmtree(here)
        assert names(folder) == ["files"]
        assert names(folder / "files") == there
    return found


def sample(parts: Iterator[tuple[str, Attack]], count: int) -> dict[str, Attack]:
    return dict(random.Random(SEED).sample(list(parts), count))


PARTS = {
    "values": lambda: of_values(3),
    "files": of_files,
    "places": of_places,
    "surroundings": of_surroundings,
}

LIMITS = {part: COMPILING_SECONDS if part == "surroundings" else SECONDS for part in PARTS}
"""Seconds of processor time of a call: where no cache can be kept kernels are compiled in it."""


@pytest.mark.parametrize("part", PARTS)
def test_some_attacks(part: str, good: dict[str, bytes], tmp_path: Path) -> None:
    assert bad_ends(sample(PARTS[part](), FEW[part]), good, tmp_path, LIMITS[part]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_all_attacks(part: str, good: dict[str, bytes], tmp_path: Path) -> None:
    assert bad_ends(dict(PARTS[part]()), good, tmp_path, LIMITS[part]) == {}


def test_there_are_hundreds() -> None:
    assert len(attacks(3)) > 1500
