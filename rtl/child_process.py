"""Programs that end with whoever started them, and with them all that they started themselves."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from archsim.interrupts import heard, held

__all__ = ["child", "end_children", "python_command"]

GRACE_SECONDS = 2.0
"""To remove temporary files in, as compilers do."""

_ENDS_WITH_US = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit(1)
"""
"""Said by the child itself, of whatever ends us: a signal that nobody hears, and SIGKILL, too."""

_running: set[subprocess.Popen[str]] = set()


def python_command(script: str, *words: str) -> list[str]:
    """To run a script of Python in a `child`, its words from sys.argv[1] on.

    On Linux it ends when we do, whatever ends us: a placement may take hours.
    """
    return [sys.executable, "-c", _ENDS_WITH_US + script, str(os.getpid()), *words]


@contextmanager
def child(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[str] = subprocess.PIPE,
) -> Generator[subprocess.Popen[str]]:
    """A running program without input, both its streams in `stdout`, as text.

    It has a process group of its own, so that Ctrl-C is heard by us alone, who then end all of the
    group: a make, its compilers, and theirs.
    """
    with held():
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            process_group=0,
        )
        _running.add(process)
        try:
            with heard():
                yield process
                _wait(process)
        except BaseException:
            _end(process)
            _wait(process)
            raise
        finally:
            _running.discard(process)


def _wait(process: subprocess.Popen[str]) -> None:
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def end_children() -> None:
    """End what runs, for the threads that wait for it: no signal is heard there."""
    for process in list(_running):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Ask the group to end, then make it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
