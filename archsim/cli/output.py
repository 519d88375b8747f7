"""Progress and consoles."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

PIPE_COLUMNS = 10_000
"""No table is so wide: in a pipe or a file nothing is wrapped or cut off."""


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Generator[Progress]:
    """A progress bar on stderr; silent when stderr is not a terminal."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    ) as progress:
        progress.add_task(description, total=None)
        yield progress


def announce_compilation() -> None:
    """Say why a first run takes longer; like the progress bar, only where stderr is a terminal."""
    from archsim.core.kernel import is_compiled

    console = Console(stderr=True, highlight=False)
    if console.is_terminal and not is_compiled():
        console.print("archsim: compiling the timing kernels (once, about 20 s)")


def output_console() -> Console:
    """Stdout: as wide as the terminal, or as wide as need be where it is a pipe or a file."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_COLUMNS)
