"""A child process that runs calls of `archsim`, each in a fork of its own with bounded resources.

The child imports everything once; a fork for each call then costs milliseconds, and what a call
does to its memory, its caches or its own life is gone with it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

MIB = 1 << 20

WALL = 6
"""Seconds that may pass for each of processor time: the machine may be shared."""


@dataclass(frozen=True)
class Ended:
    """How a call ended.  code: negative of a signal; seconds: of processor time; mib: at most."""

    code: int
    out: str
    err: str
    seconds: float
    mib: int

    @property
    def fault(self) -> str:
        """What is wrong with this end; "" for a good one or for one line and exit code 2."""
        if self.code < 0:
            return f"signal {-self.code}"
        if "Traceback" in self.err or self.code not in (0, 2):
            return f"exit code {self.code}"
        if not all(text.replace("\n", "").isprintable() for text in (self.err, self.out)):
            return "prints what cannot be shown"
        said = [line for line in self.err.splitlines() if not line.startswith(PASSING)]
        if self.code == 2 and (len(said) != 1 or not said[0].startswith("archsim: ")):
            return "is not one line"
        return ""


PASSING = ("archsim: warning:", "archsim: compiling")
"""Lines on stderr beside the one of a refusal."""


class BoundedChild:
    """A context in which calls run.  memory_mib: beyond what the imports take, of address space;
    seconds: of processor time; file_bytes: that a file may be written to.
    """

    def __init__(
        self, *, memory_mib: int = 3072, seconds: int = 20, file_bytes: int | None = None
    ) -> None:
        self._limits = {"memory_mib": memory_mib, "seconds": seconds, "file_bytes": file_bytes}

    def __enter__(self) -> Self:
        self._child = _child()
        return self

    def __exit__(self, *_: object) -> None:
        """The child stays, for the next."""

    def archsim(
        self,
        *words: object,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        stdout: str | None = None,
        **limits: int | None,
    ) -> Ended:
        """`archsim WORDS` in a folder; limits: other ones than the context's.

        environment: variables that are set beside ours; stdout: a file that it goes to.
        """
        asked = {"environment": dict(environment or {}), "stdout": stdout}
        return self._ask({"words": [str(word) for word in words], **asked}, cwd, limits)

    def python(self, code: str, *, cwd: Path, **limits: int | None) -> Ended:
        """Python code, whose bad input is told as the command line tells it."""
        return self._ask({"code": code}, cwd, limits)

    def _ask(self, what: dict[str, Any], cwd: Path, limits: dict[str, int | None]) -> Ended:
        assert self._child.stdin is not None and self._child.stdout is not None
        asked = {**self._limits, **limits, **what, "cwd": str(cwd)}
        self._child.stdin.write(json.dumps(asked) + "\n")
        self._child.stdin.flush()
        return Ended(**json.loads(self._child.stdout.readline()))


@cache
def _child() -> subprocess.Popen[str]:
    """One for all tests of a process: what it imports costs more than most calls."""
    child = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    atexit.register(child.communicate)
    return child


def _serve() -> None:
    """The child: a request a line, an answer a line."""
    _import_everything()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(json.dumps(_in_a_fork(json.loads(line))) + "\n")
        answers.flush()


LIBRARIES = (
    "jinja2", "matplotlib.backends.backend_svg", "onnx.checker", "onnx.inliner", "onnx.reference",
    "onnx.shape_inference", "onnxruntime", "pandas", "rich.table", "tomli_w", "typer._adapters",
)  # fmt: skip
"""What calls import late."""


def _import_everything() -> None:
    """What a call imports where it needs it, too: else each fork imports it again."""
    import pkgutil
    from importlib import import_module

    import archsim
    import energy_models
    import rtl
    from archsim.cli.verbs import command_of, verbs

    for name in LIBRARIES:
        import_module(name)
    for package in (archsim, energy_models, rtl):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                with suppress(ImportError):
                    import_module(module.name)
    for name in verbs():
        command_of(name)


def _in_a_fork(asked: dict[str, Any]) -> dict[str, Any]:
    pipes = [os.pipe(), os.pipe()]  # no files: a limit of their sizes is not for what is printed
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nobody types: who reads there reads nothing
        for place, (_, write) in enumerate(pipes, 1):
            os.dup2(write, place)
        os.closerange(3, 100)
        _run(asked)
    for _, write in pipes:
        os.close(write)
    texts = _read_both([read for read, _ in pipes], child, WALL * asked["seconds"])
    _, status, usage = os.wait4(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": texts[0],
        "err": texts[1],
        "seconds": usage.ru_utime + usage.ru_stime,
        "mib": usage.ru_maxrss >> 10,
    }


def _read_both(ends: list[int], child: int, seconds: float) -> list[str]:
    """What comes from two pipes until both end; a child that takes longer is killed."""
    import select
    import signal
    import time

    texts = {end: bytearray() for end in ends}
    open_ones = set(ends)
    late = time.monotonic() + seconds
    while open_ones:
        ready = select.select(list(open_ones), [], [], max(late - time.monotonic(), 0.1))[0]
        if not ready and time.monotonic() >= late:
            os.kill(child, signal.SIGKILL)
        for end in ready:
            data = os.read(end, 1 << 16)
            texts[end] += data[: max(0, 4 * MIB - len(texts[end]))]
            if not data:
                open_ones.discard(end)
                os.close(end)
    return [text.decode("utf-8", "backslashreplace") for text in texts.values()]


def _run(asked: dict[str, Any]) -> None:
    """In the fork, which ends here."""
    import traceback

    from archsim.cli.main import main

    code = 1
    try:
        os.chdir(asked["cwd"])
        os.environ.update(asked.get("environment", {}))
        if asked.get("stdout"):
            os.dup2(os.open(asked["stdout"], os.O_WRONLY), 1)
        _bound(asked)
        sys.argv = ["archsim", *asked.get("words", ())]
        if "code" in asked:
            code = _run_code(asked["code"])
        else:
            main()
            code = 0
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 0 if exit.code is None else 1
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        traceback.print_exc()
        code = 1
    os._exit(code)


def _run_code(code: str) -> int:
    """Exit code; an error of the project is one line."""
    from archsim.errors import InputError
    from energy_models.errors import EnergyError
    from workloads.errors import WorkloadError
    from workloads.names import printable

    try:
        exec(compile(code, "<code>", "exec"), {})
    except (InputError, WorkloadError, EnergyError) as error:
        print(f"archsim: {printable(' '.join(str(error).split()), 2000)}", file=sys.stderr)
        return 2
    return 0


def _bound(asked: dict[str, Any]) -> None:
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + asked["memory_mib"] * MIB
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if asked["file_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["file_bytes"], asked["file_bytes"]))


if __name__ == "__main__":
    _serve()
