"""Calls of the command line that are interrupted while they touch files, at moment after moment.

    python interrupted_calls.py FOLDER WORDS…

Every event that Python reports to its audit hooks and that makes, opens or moves a file, makes a
folder, or starts a program is a moment.  Modules are loaded by a first call, which is let through;
then each moment is a fork of this process, in a folder of its own.
A line of JSON for each call: moment, exit code, stderr; moment -1 is the call that is let through.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

TOUCHING = frozenset(
    ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "subprocess.Popen")
)
"""Beside files that are opened to be written: tempfile's are reported as such too."""

_moments = {"seen": 0, "at": -1}


def hook(event: str, arguments: tuple[Any, ...]) -> None:
    """Press Ctrl-C at the chosen moment."""
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wxa")
    if event in TOUCHING or writes:
        _moments["seen"] += 1
        if _moments["seen"] == _moments["at"] + 1:
            os.kill(os.getpid(), signal.SIGINT)


def call(folder: Path, words: list[str], moment: int) -> tuple[int, str, int]:
    """Exit code, stderr, and moments that there were, of a call in a process of its own."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryFile() as said:
        process = os.fork()
        if process == 0:
            os.dup2(said.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.chdir(folder)
            _moments.update(seen=0, at=moment)
            sys.argv = ["archsim", *words]
            code = 0
            try:
                from archsim.cli.main import main

                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
            finally:
                sys.stderr.flush()
                os.write(said.fileno(), f"\0{_moments['seen']}".encode())
                os._exit(code)
        _, status = os.waitpid(process, 0)
        said.seek(0)
        text, _, seen = said.read().decode().partition("\0")
    return os.waitstatus_to_exitcode(status), text, int(seen or 0)


def warm(words: list[str]) -> None:
    """Load what a call loads, for every fork."""
    with tempfile.TemporaryDirectory() as name:
        before = Path.cwd()
        os.chdir(name)
        sys.argv = ["archsim", *words]
        silent = os.dup(1), os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            from archsim.cli.main import main

            main()
        except SystemExit:
            pass
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(silent[0], 1)
        os.dup2(silent[1], 2)
        os.chdir(before)


def main() -> None:
    """Interrupt one call after another."""
    # a job in the background ignores it, and so would we
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    warm(words)
    sys.addaudithook(hook)
    code, text, seen = call(folder / "whole", words, -1)
    lines = [{"moment": -1, "code": code, "err": text}]
    for moment in range(seen):
        code, text, _ = call(folder / str(moment), words, moment)
        lines.append({"moment": moment, "code": code, "err": text})
    print(*map(json.dumps, lines), sep="\n")


if __name__ == "__main__":
    main()
