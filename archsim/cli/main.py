"""`archsim`: one way to report bad input, and one to end.

Nothing large is imported before Ctrl-C is heard.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from contextlib import suppress
from typing import Any, NoReturn

from archsim.interrupts import Ended, ending_by_signals

BAD_INPUT = 2
INTERRUPTED = 130
OURS = ("archsim", "rtl", "fpga", "training", "workloads", "energy_models")

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of what is printed to a place that takes no more."""

LONGEST_SIZE = 5
"""Digits of a terminal's width or height."""

LONGEST_MESSAGE = 2000
"""Characters; a path or a name in a message may be of any length."""


def _fail(message: str) -> NoReturn:
    """One line on stderr, whatever the message is made of."""
    from workloads.names import printable

    line = printable(" ".join(message.split()), LONGEST_MESSAGE)
    print(f"archsim: {line}", file=sys.stderr)
    sys.exit(BAD_INPUT)


def _is_told(error: Exception) -> bool:
    """Whether a line says it all.  What the error is of is imported by whoever raised it."""
    kinds = (
        ("archsim.errors", "UserError"),
        ("workloads.errors", "WorkloadError"),
        ("energy_models.errors", "EnergyError"),
    )
    known = [getattr(sys.modules.get(module), name, None) for module, name in kinds]
    return isinstance(error, tuple(kind for kind in known if isinstance(kind, type)))


def _warn_in_a_line(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Warnings of ours are for the user, others for programmers: those are left out."""
    if category.__module__.partition(".")[0] in OURS:
        from workloads.names import printable

        line = printable(" ".join(str(message).split()), LONGEST_MESSAGE)
        print(f"archsim: warning: {line}", file=sys.stderr)


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    gc.set_threshold(50_000, 20, 20)  # imports make many objects, which all stay
    warnings.showwarning = _warn_in_a_line
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # a path may have letters that are none
        reconfigure(errors="backslashreplace")
    for name in ("COLUMNS", "LINES"):  # which libraries read as a number, whatever they are
        if not (os.environ.get(name, "").isdecimal() and len(os.environ[name]) <= LONGEST_SIZE):
            os.environ.pop(name, None)
    with ending_by_signals():
        _reported()


def _reported() -> None:
    """Run it; what ends it is told in a line."""
    try:
        _run()
    except Ended as ended:
        ended.__traceback__ = None  # what was entered by half is let go of, and cleans up now
        print("archsim: interrupted; nothing was left half written", file=sys.stderr)
        sys.exit(ended.exit_code)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in OURS:
            raise
        from archsim.cli.verbs import missing_module

        _fail(missing_module(error.name))
    except MemoryError as error:
        _fail(f"not enough memory for this: {error or 'take a smaller layer, design or file'}")
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        if error.filename is None and error.errno not in FULL:
            raise
        _discard_output()
        _fail(f"{error.filename or 'the output'}: {error.strerror}")
    except Exception as error:
        if _is_told(error):
            _fail(str(error))
        from archsim.plugins import blame

        if not (told := blame(error)):
            raise
        _fail(told)


def _run() -> None:
    from archsim.cli.application import application
    from archsim.cli.usage import UsageError, is_help, usage_line

    try:
        code = application()(prog_name="archsim", standalone_mode=False)
    except UsageError as error:
        if not is_help(error):
            _fail(usage_line(error))
        error.show()
        code = BAD_INPUT
    if code == INTERRUPTED:  # which typer makes of a KeyboardInterrupt
        raise Ended(INTERRUPTED - 128)
    if sys.stdout is not None:  # it is where there is no stdout
        sys.stdout.flush()
    sys.exit(code)


def _discard_output() -> None:
    """What stdout still holds, which Python would try to write again when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
