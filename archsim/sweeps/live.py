"""What a run that writes a study tells others, who cannot read the study meanwhile.

A file beside the study says how far the run is, and what is best so far; it is replaced whole, once
a second at most.  It is news, no data: a sweep goes on where it cannot be written.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from archsim.sweeps.points import Grid
from archsim.sweeps.progress import Progress, Ran
from archsim.sweeps.standing import Standing

if TYPE_CHECKING:
    from archsim.sweeps.study import Study

NEWS = "live.json"
"""Its name in the folder of a study."""

EVERY_SECONDS = 1.0

LARGEST_NEWS = 1 << 24
"""Bytes; what is larger is none of ours."""

VERSION = 1


class News:
    """Of one run, told in the folder of its study."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / NEWS
        self._told = 0.0
        self._about = {
            "version": VERSION,
            "study": name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }

    @property
    def due(self) -> bool:
        """Whether the last news are old."""
        return time.monotonic() - self._told >= EVERY_SECONDS

    def tell(self, state: str, progress: Progress, ran: Ran, standing: Standing) -> None:
        """state: "running", "done", or "ended" where something or somebody ended it."""
        self._told = time.monotonic()
        counts = {"new": ran.new, "refused": ran.refused, "failed": ran.failed}
        record = {
            **self._about,
            "state": state,
            "told": time.time(),
            "done": progress.done,
            "total": progress.total,
            "kept": progress.kept,
            "seconds": progress.seconds,
            **counts,
            "networks": standing.record(),
        }
        part = self._path.with_suffix(".part")
        with suppress(OSError):
            part.write_text(json.dumps(record), encoding="utf-8")
            part.replace(self._path)


def news_of(folder: Path) -> dict[str, Any] | None:
    """What was told last; None where nothing was, or nothing that can be read."""
    path = folder / NEWS
    try:
        if path.stat().st_size > LARGEST_NEWS:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    news = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return news if news.get("version") == VERSION else None


def is_running(news: dict[str, Any]) -> bool:
    """Whether the run that told them goes on: as far as this machine can see."""
    if news.get("state") != "running":
        return False
    pid = news.get("pid")
    if news.get("host") != socket.gethostname() or not isinstance(pid, int) or pid <= 0:
        return time.time() - float(news.get("told", 0)) < 60 * EVERY_SECONDS
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def kept_by(study: Study) -> dict[str, Any]:
    """The same of a study that nobody writes, from all that it keeps."""
    counts = study.counts
    return {
        "study": study.space.name or str(study.path),
        "state": "kept",
        "kept": sum(counts.values()),
        "total": study.space.size,
        "refused": counts.get("refused", 0),
        "failed": counts.get("failed", 0),
        "networks": Standing.of_study(study, Grid(study.space)).record(),
    }


__all__ = ["NEWS", "News", "is_running", "kept_by", "news_of"]
