"""Checkpoints: what goes on from one ends with the same bits; damaged ones are passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_training import Pull, pictures, recipe

from archsim.errors import InputError
from training.checkpoint import MAGIC, checkpoints, prepare, resume, save
from training.training import Training

ZIP_TIME = len(MAGIC) + 32 + 10
"""Of the first member: what the archive's own checksums do not cover."""


def fresh(**more: object) -> Training:
    return Training(recipe(**more), pictures(), Pull())


def run(training: Training, until: int | None = None) -> Training:
    while training.step < (training.steps if until is None else until):
        training.advance()
    return training


def test_a_training_that_goes_on_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = run(fresh()).model({}).packed()
    for until in (1, 4, 8):
        folder = tmp_path / str(until)
        prepare(folder)
        save(folder, run(fresh(), until))
        second = fresh()
        said = resume(folder, second)
        assert said == [f"going on from {checkpoints(folder)[0]}, batch {until} of 9"]
        assert run(second).model({}).packed() == whole


def test_the_last_two_are_kept_and_nothing_else(tmp_path: Path) -> None:
    training = fresh()
    for step in (1, 2, 3):
        save(tmp_path, run(training, step))
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["step-000000002.checkpoint", "step-000000003.checkpoint"]


@pytest.mark.parametrize("damage", ["short", "empty", "flipped", "time", "other"])
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    training = fresh()
    for step in (3, 5):
        save(tmp_path, run(training, step))
    last = checkpoints(tmp_path)[0]
    data = last.read_bytes()
    at = len(data) // 2
    last.write_bytes(
        {
            "short": data[:at],
            "empty": b"",
            "flipped": data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :],
            "time": data[:ZIP_TIME] + bytes([data[ZIP_TIME] ^ 1]) + data[ZIP_TIME + 1 :],
            "other": b"something else" * 100,
        }[damage]
    )
    second = fresh()
    said = resume(tmp_path, second)
    assert len(said) == 2 and f"{last} is damaged" in said[0]
    assert second.step == 3
    assert run(second).model({}).packed() == run(fresh()).model({}).packed()


def test_where_all_are_damaged_nothing_is_begun_anew_by_itself(tmp_path: Path) -> None:
    save(tmp_path, run(fresh(), 2))
    checkpoints(tmp_path)[0].write_bytes(b"")
    with pytest.raises(InputError, match=r"all checkpoints in .* are damaged; remove them"):
        resume(tmp_path, fresh())


def test_checkpoints_of_another_training_are_refused(tmp_path: Path) -> None:
    save(tmp_path, run(fresh(), 2))
    with pytest.raises(InputError, match=r"another training \(rate 0.05, not 0.1\)"):
        resume(tmp_path, fresh(rate=0.1))
    other = Training(recipe(), pictures(20), Pull())
    with pytest.raises(InputError, match=r"another training \(40 pictures, not 20\)"):
        resume(tmp_path, other)


def test_an_empty_folder_begins_at_the_beginning(tmp_path: Path) -> None:
    training = fresh()
    assert resume(tmp_path / "none", training) == [] and training.step == 0


def test_a_folder_that_cannot_be_made_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(InputError, match="cannot be written"):
            prepare(folder)
    with pytest.raises(InputError, match="cannot be written"):
        save(tmp_path / "none", fresh())
