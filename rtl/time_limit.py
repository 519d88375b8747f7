"""A command that ends where a loop of the model does not.

An RTL run is bounded by cycles. The model is not: a loop in compiled code that never ends hears no
signal. So a second thread looks at how long a case has taken, and ends the process.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType

SECONDS = 600.0
"""Of processor time, that a case may take before it is said not to end; the longest known take a
minute, of which compilation is most."""

LOOKED_AT = 0.5
"""Seconds between two looks."""


class TimeLimit:
    """While it is open, no case takes longer: `case` begins one.

    with TimeLimit() as limit:
        limit.case("case 3 of seed 0")
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = SECONDS if seconds is None else seconds
        self._what, self._since = "", float("inf")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> TimeLimit:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def case(self, what: str) -> None:
        """From now on this one takes its time."""
        self._what, self._since = what, time.process_time()

    def rest(self) -> None:
        """Until the next case whatever goes on may last."""
        self._since = float("inf")

    def _look(self) -> None:
        while not self._over.wait(LOOKED_AT):
            if time.process_time() - self._since > self.seconds:
                told = f"{self._what} has taken {self.seconds:g} s of processor time and not ended"
                print(f"model and RTL differ: {told}", file=sys.stderr, flush=True)
                os._exit(1)


__all__ = ["TimeLimit"]
