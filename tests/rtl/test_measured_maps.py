"""Fault maps from files, and words whose bits alternate in a row: model, RTL, hostile files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.laws import Columns
from archsim.memories.faulty.measured import measured
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memory import Plain, Use
from rtl.cases import random_case
from rtl.conformance import check
from rtl.simulators import runner

USE = Use(name="weight", field="weight_memory", lane_bits=(8, 8), lane_signed=(True, True))
SUMS: dict[str, Any] = {"accumulator_memory": Plain(capacity_bytes=512), "bias_words": 16}


def write(path: Path, kinds: Any) -> str:
    """A map as the file that the name says."""
    if path.suffix == ".npz":
        np.savez(path, faults=kinds)
    else:
        path.write_text("\n".join(",".join(map(str, row)) for row in kinds.tolist()) + "\n")
    return str(path)


def drawn(rows: int, columns: int, seed: int = 0) -> Any:
    """Cells of which a third fail."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((rows, columns)) < 0.3, rng.integers(1, 4, (rows, columns)), 0)


def expected(kinds: Any, word: int, row: int, place: int, side: int, apart: bool) -> int:
    """What is read of a word of 16 bits, cell by cell."""
    seen = 0
    for bit in range(16):
        kind = kinds[row][bit * side + place if apart else place * 16 + bit]
        stored = word >> bit & 1
        seen |= [stored, 1, 0, 1 - stored][kind] << bit
    return seen


@pytest.mark.parametrize("ending", ["csv", "npz"])
@pytest.mark.parametrize("side", [1, 2, 4])
@pytest.mark.parametrize("apart", [False, True])
def test_cells_are_read_as_the_file_says(
    tmp_path: Path, ending: str, side: int, apart: bool
) -> None:
    kinds = drawn(2 * 32 // side, 16 * side)
    memory = Faulty(
        inner=Plain(capacity_bytes=128), map=write(tmp_path / f"m.{ending}", kinds),
        interleave=side if apart else 1,
    )  # fmt: skip
    memory.check(USE)
    words = np.random.default_rng(1).integers(-128, 128, (32, 2))
    for half in (0, 1):
        use = replace(USE, half=half)
        seen = memory.read_back(use, memory.stored(use, words), 32) & 0xFF
        whole = words & 0xFF
        for number in range(32):
            at, place = divmod(32 * half + number, side)
            word = int(whole[number, 0] | whole[number, 1] << 8)
            wanted = expected(kinds, word, at, place, side, apart and side > 1)
            assert int(seen[number, 0] | seen[number, 1] << 8) == wanted


def test_interleaved_words_share_columns_bit_by_bit() -> None:
    """Of two words in a row, bit b of the one lies beside bit b of the other."""
    law = Columns(shape=0.3)
    beside = FaultMap(words=64, word_bits=8, rate=0.1, law=law, columns=16)
    apart = replace(beside, interleaved=True)
    columns = beside.thresholds.reshape(-1)
    assert apart.thresholds.tolist() == [columns[0::2].tolist(), columns[1::2].tolist()]


@pytest.mark.parametrize("kind", ["measured", pytest.param("columns", marks=pytest.mark.slow)])
def test_a_core_with_such_memories_is_its_model(tmp_path: Path, kind: str) -> None:
    small = Plain(capacity_bytes=64)
    weights: Any = Faulty(inner=small, rate=0.1, column_shape=0.4, interleave=4, persistent=0.5)
    ifmaps: Any = replace(weights, interleave=2)
    biases: Any = replace(FaultyBank(rate=0.1), column_shape=0.4, interleave=2)
    if kind == "measured":
        path = write(tmp_path / "w.csv", drawn(16, 32, 3))
        weights = Faulty(inner=small, map=path, interleave=4)
        ifmaps = Faulty(inner=small, map=write(tmp_path / "i.npz", drawn(64, 8, 4)))
        biases = FaultyBank(map=write(tmp_path / "b.npz", drawn(64, 64, 5)))
    design = Systolic(
        rows=2, columns=2, operand_bits=4, ifmap_memory=ifmaps, weight_memory=weights,
        bias_memory=biases, **SUMS,
    )  # fmt: skip
    assert design_from_record(design_record(design), "it") == design
    case = random_case(7, 1, design)
    good = Systolic(
        rows=2, columns=2, operand_bits=4, ifmap_memory=small, weight_memory=small, **SUMS
    )
    right = random_case(7, 1, good).answer().transfers["ofmap"].payload
    assert (case.answer().transfers["ofmap"].payload != right).any()
    assert check(case, runner(design, "amaranth")).equal


@pytest.mark.slow
def test_a_core_with_measured_compressed_memories_is_its_model(tmp_path: Path) -> None:
    inner = Boveda(capacity_bytes=64, group=1, unit_words=4, expansion=4)
    sound = Systolic(rows=2, columns=2, ifmap_memory=inner, weight_memory=inner, **SUMS)
    failing: dict[str, Any] = {}
    for seed, name in enumerate(("ifmap", "weight")):
        sizes = inner.srams(sound.use(name)).values()
        rows, entries = (
            write(tmp_path / f"{name}{bits}.npz", drawn(2 * depth, bits, seed) * (seed + 1) % 4)
            for depth, bits in sizes
        )
        failing[f"{name}_memory"] = Faulty(inner=inner, map=rows, directory_map=entries)
    design = replace(sound, **failing)
    assert design_from_record(design_record(design), "it") == design
    case: Any = random_case(7, 7, design, longest_words=600)
    right, seen = replace(case, design=sound).answer(), case.answer()
    assert (seen.transfers["ofmap"].payload != right.transfers["ofmap"].payload).any()
    assert check(case, runner(design, "amaranth")).equal


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["map={rows}"], "directory_map must be given beside map: weight's directory fails too"),
        (["map={csv}", "directory_map={entries}"],
         "map: {csv} has 4 x 8 cells, where weight has 2 x 2048 words of 128 bits, 1 in a row"),
        (["map={rows}", "directory_map={csv}"],
         "directory_map: {csv} has 4 x 8 cells, where weight has 2 x 256 entries of 59 bits, 1"),
    ],
)  # fmt: skip
def test_maps_of_compressed_memories_have_the_geometry_of_rows_and_directories(
    tmp_path: Path, settings: list[str], said: str
) -> None:
    paths = {
        "csv": write(tmp_path / "small.csv", drawn(4, 8)),
        "rows": write(tmp_path / "rows.npz", drawn(4096, 128)),
        "entries": write(tmp_path / "entries.npz", drawn(512, 59)),
    }
    given = [f"weight_memory.{one.format(**paths)}" for one in settings]
    kinds = ["weight_memory.kind=boveda", "weight_memory.kind=faulty"]
    with pytest.raises(InputError) as raised:
        with_settings(EDGE_16, [*kinds, *given])
    assert said.format(**paths) in str(raised.value) and "\n" not in str(raised.value)
    both = [f"weight_memory.map={paths['rows']}", f"weight_memory.directory_map={paths['entries']}"]
    design: Any = with_settings(EDGE_16, [*kinds, *both])
    assert design.weight_memory.bit_rate > 0


HOSTILE: dict[str, tuple[Any, str]] = {
    "empty.csv": (b"", "must hold a fault map, and is empty"),
    "other.csv": (b"0,1\n0,4\n", "line 2: cells must be 0 to 3, not '4'"),
    "words.csv": (b"a,b\n", "line 1: cells must be 0 to 3, not 'a'"),
    "ragged.csv": (b"0,1\n0\n", "line 2 must have 2 cells, not 1"),
    "long.csv": (b"0," * (1 << 20), "line 1 is longer than"),
    "broken.npz": (b"PK\x03\x04", "is not an .npz file"),
    "map.txt": (b"0,1\n", "must be a .csv or .npz file, a fault map"),
    "floats.npz": (np.zeros((2, 2)), "must hold whole numbers [rows, columns], not float64"),
    "line.npz": (np.zeros(4, np.int8), "must hold whole numbers [rows, columns]"),
    "negative.npz": (np.full((2, 2), -1), "cells must be 0 to 3, not -1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, said = HOSTILE[name]
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, faults=content)
    with pytest.raises(InputError) as raised:
        measured(str(path))
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["map=gone.csv"], "gone.csv cannot be read: No such file"),
        (["map=/dev/zero"], "must be a file on a disk, not a device or a pipe"),
        (["map={csv}"], "has 4 x 8 cells, where weight has 2 x 2048 words of 128 bits, 1 in a row"),
        (["map={csv}", "rate=0.1"], "map and rate cannot both be given: a measured map says"),
        (["directory_map={csv}"], "directory_map must be given beside map, the faults of the rows"),
        (
            ["map={csv}", "directory_map=gone.csv"],
            "gone.csv cannot be read: No such file",
        ),
        (["rate=0.1", "interleave=3"], "interleave must be a power of two up to 16, not 3"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    tmp_path: Path, settings: list[str], said: str
) -> None:
    path = write(tmp_path / "small.csv", drawn(4, 8))
    given = [f"weight_memory.{one.format(csv=path)}" for one in settings]
    with pytest.raises(InputError) as raised:
        with_settings(EDGE_16, ["weight_memory.kind=faulty", *given])
    assert said in str(raised.value) and "\n" not in str(raised.value)
