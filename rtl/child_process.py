"""Programs that end with whoever started them, and with them all that they started themselves."""

import os
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from archsim.interrupts import held

__all__ = ["child", "end_children"]

GRACE_SECONDS = 2.0
"""To remove temporary files in, as compilers do."""

_running: set[subprocess.Popen[str]] = set()


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
    process: subprocess.Popen[str] | None = None
    try:
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
        yield process
    except BaseException:
        if process is not None:
            _end(process)
        raise
    finally:
        if process is not None:
            if process.stdout is not None:
                process.stdout.close()
            process.wait()
            _running.discard(process)


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
