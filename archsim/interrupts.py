"""Ctrl-C and its like: heard once, for certain, and not while a file takes its place."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Ctrl-C; what `kill` and `timeout` send; a terminal that is closed.  Systems lack some."""

AGAIN_SECONDS = 0.25
"""Compiled modules drop exceptions here and there, while they are loaded above all: so it is said
again, until it is heard."""


class Ended(BaseException):
    """Somebody asked this command to end.  No library takes it for a fault of its own.

    number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """As a shell says it: 130 after Ctrl-C."""
        return 128 + self.number


class _Asked:
    """The signal that was sent."""

    number: int | None = None


class _Holds(threading.local):
    """How many steps of a thread hold it back."""

    count = 0


_holds = _Holds()


def _ask(number: int, _frame: FrameType | None) -> None:
    """Whoever asks twice asks for the same."""
    if _Asked.number is None:
        _Asked.number = number
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
    _tell()


def _tell(*_: object) -> None:
    """Raise `Ended`, unless that is held back, or what it ends is being cleaned up already."""
    if _Asked.number is not None and not _holds.count and not _ending():
        raise Ended(_Asked.number)


def _ending() -> bool:
    """Whether an `Ended` is on its way: we are in what is done on account of it."""
    error = sys.exception()
    while error is not None and not isinstance(error, Ended):
        error = error.__context__
    return error is not None


def _drop_ours(dropped: Any) -> None:
    """What compiled modules drop is said again: Python need not tell of it."""
    if not isinstance(dropped.exc_value, Ended):
        sys.__unraisablehook__(dropped)


@contextmanager
def ending_by_signals() -> Generator[None]:
    """Signals of `ENDING` that are not ignored raise `Ended` meanwhile; main threads alone hear."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {name: _ask for name in ENDING if hasattr(signal, name)}
    handlers |= {"SIGALRM": _tell} if hasattr(signal, "SIGALRM") else {}
    before = {
        number: signal.signal(number, handler)
        for name, handler in handlers.items()
        if signal.getsignal(number := getattr(signal, name)) not in (signal.SIG_IGN, None)
    }
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # all is done by then
    hook, sys.unraisablehook = sys.unraisablehook, _drop_ours
    try:
        yield
    finally:
        sys.unraisablehook = hook
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        _Asked.number = None
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Generator[None]:
    """Nothing ends the few steps in here, which belong together; a signal is heard behind them."""
    _holds.count += 1
    try:
        yield
    finally:
        _holds.count -= 1
    _tell()


@contextmanager
def heard() -> Generator[None]:
    """Within `held`, steps that may take their time and may be ended.

    So that what is made before them is known, and cleared up behind them, whatever comes between:

        with held():
            made = make()
            try:
                with heard():
                    fill(made)
            finally:
                clear_up(made)
    """
    _holds.count -= 1
    try:
        _tell()
        yield
    finally:
        _holds.count += 1
