"""Progress and consoles."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from workloads.counts import counted
from workloads.names import printable

if TYPE_CHECKING:
    from archsim.machine.model import MachineModel
    from archsim.machine.option import Options

LONGEST_LINE = 2000
"""Characters of a line that names somebody's files."""

PIPE_COLUMNS = 10_000
"""No table is so wide: in a pipe or a file nothing is wrapped or cut off."""


class _Rate(ProgressColumn):
    """How many of how many, how many a second, and the seconds that are left; nothing unknown."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("")
        parts = [f"{task.completed:,.0f} of {task.total:,.0f}"]
        if task.speed:
            parts.append(f"{task.speed:,.3g}/s")
        if task.time_remaining is not None:
            minutes, seconds = divmod(round(task.time_remaining), 60)
            parts.append(f"{minutes}:{seconds:02} left")
        return Text(", ".join(parts))


def shown(text: str) -> str:
    """A line with names in it that may be of anything, such as files', as it can be printed."""
    return printable(text, LONGEST_LINE)


def say(text: str) -> None:
    """A line for people, on stderr."""
    print(shown(text), file=sys.stderr)


def phase(bar: Progress, what: str) -> None:
    """Another part of the work begins, of a length that is not known yet."""
    bar.reset(bar.task_ids[0], description=shown(what))
    bar.tasks[0].total = None  # to rich's own methods None says: as it was


@contextmanager
def progress_bar(description: str, *, quiet: bool = False) -> Generator[Progress]:
    """A progress bar on stderr; silent when stderr is not a terminal."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TimeElapsedColumn(),
        _Rate(),
        console=console,
        expand=True,
        disable=quiet or not console.is_terminal,
        transient=True,
    ) as progress:
        progress.add_task(shown(description), total=None)
        yield progress


def announce_compilation(
    model: MachineModel, options: Options, *, many: bool = False, quiet: bool = False
) -> None:
    """Say on stderr, while it happens, that kernels are compiled, which only a first run does.

    Of those that every run of the machine needs it says so wherever stderr goes, of others where it
    is a terminal.  options: of the run; many: of designs at once.
    """
    from archsim.kernels import ahead, announce_to, not_compiled

    expected = not_compiled(model.kernels(options, many=many))
    ahead.expect(expected)
    names = [one.name.rpartition(".")[2] for one in expected]
    if names and not quiet:
        count = counted(len(names), "kernel")
        said = f"archsim: compiling {count}, once (5 to 20 s each): {', '.join(names)}"
        print(said, file=sys.stderr, flush=True)

    def tell(name: str) -> None:
        """Of a kernel that was not foreseen."""
        short = name.rpartition(".")[2]
        if short not in names and not quiet and sys.stderr.isatty():
            print(f"archsim: compiling a kernel, once: {short}", file=sys.stderr, flush=True)

    announce_to(tell)


def output_console(*, wide: bool = False) -> Console:
    """Stdout: as wide as the terminal, or as wide as need be if asked, in a pipe or in a file."""
    console = Console(highlight=False, markup=False)
    if console.is_terminal and not wide:
        return console
    return Console(highlight=False, markup=False, width=PIPE_COLUMNS)
