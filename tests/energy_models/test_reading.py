"""Files of a user's take memory for what they hold, and not for what they may."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from energy_models.errors import EnergyError
from energy_models.reading import read_text


def test_a_short_file_takes_no_memory_for_the_longest(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("a = 1\n")
    tracemalloc.start()
    try:
        assert read_text(path, EnergyError, what="a file", most=1 << 34) == "a = 1\n"
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_all_of_a_file_is_read_up_to_the_limit(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"ab" * (size // 2) + b"c" * (size % 2))
    assert read_text(path, EnergyError, what="a file", most=size) == path.read_text()
    if size:
        with pytest.raises(EnergyError, match="must be at most"):
            read_text(path, EnergyError, what="a file", most=size - 1)
    with pytest.raises(EnergyError, match="must be at most"):
        read_text(Path("/dev/zero"), EnergyError, what="a file", most=size)
