"""Outputs and folders for work, interrupted wherever Python looks for signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from archsim.files import new_file, new_folder, overwriting, scratch_folder, write_new
from archsim.interrupts import Ended, ending_by_signals

NAMES = {"one": "new", "two": "new"}


def folder(place: Path) -> None:
    with new_folder(place / "deep" / "out") as work:
        for name, text in NAMES.items():
            (work / name).write_text(text)


def file(place: Path) -> None:
    with new_file(place / "deep" / "one") as out:
        out.write(NAMES["one"])


def files(place: Path) -> None:
    write_new({place / "deep" / name: text for name, text in NAMES.items()})


def work(place: Path) -> None:
    with scratch_folder("work", place) as found:
        (found / "one").write_text("new")


NEW: dict[Callable[[Path], None], dict[str, str]] = {
    folder: {f"deep/out/{name}": text for name, text in NAMES.items()},
    file: {"deep/one": NAMES["one"]},
    files: {f"deep/{name}": text for name, text in NAMES.items()},
    work: {},
}

heard_here = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@contextmanager
def interrupted_at(moment: int) -> Iterator[list[str]]:
    """Ctrl-C at one of the moments at which Python looks for signals: a function begins, or one of
    C ends.  What is found has a name a moment that there was.
    """
    seen: list[str] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_name != "interrupted_at":
            if len(seen) == moment:
                sys.setprofile(None)
                os.kill(os.getpid(), signal.SIGINT)
            seen.append(frame.f_code.co_name)

    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def contents(place: Path) -> dict[str, str | None]:
    """Texts of files by name, and None of empty folders."""
    return {
        str(one.relative_to(place)): one.read_text() if one.is_file() else None
        for one in place.rglob("*")
        if one.is_file() or not any(one.iterdir())
    }


@pytest.mark.skipif(not heard_here, reason="whoever started this ignores Ctrl-C")
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
@pytest.mark.parametrize("write", NEW, ids=lambda one: one.__name__)
def test_ctrl_c_at_any_moment(write: Callable[[Path], None], old: bool, tmp_path: Path) -> None:
    moment, ended = 0, True
    while ended:
        place = tmp_path / str(moment)
        place.mkdir()
        before = dict.fromkeys(NEW[write], "old") if old else {}
        for name, text in before.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        ended = False
        try:
            with ending_by_signals(), overwriting(old), interrupted_at(moment):
                write(place)
        except Ended as error:
            error.__traceback__ = None
            ended = True
        assert contents(place) in ([before, NEW[write]] if ended else [NEW[write]]), moment
        moment += 1
    assert moment > 20
