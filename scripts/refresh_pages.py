"""Write into the pages what the commands and snippets that they show print now.

    python scripts/refresh_pages.py

A line of a page gives way to the printed line that differs from it in figures alone; where there is
none, the page is to be written anew by hand.  `tests/docs/test_commands.py` tells what is outdated.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shared"))

from command_files import typed  # noqa: E402
from documented import Shown, commands, snippets  # noqa: E402

REMARK = re.compile(r"^(print\(.*\)  # )(.*)$", re.MULTILINE)


def form(line: str) -> str:
    """A line without its figures, and without what its length follows from."""
    return " ".join(re.sub(r"[\d.,]*\d", "#", re.sub("─+", "─", line)).split())


def renewed(shown: str, printed: str) -> str:
    """What a page shows, with the figures of what is printed.  Raises `SystemExit` if none fits."""
    lines = {form(line): line.rstrip() for line in printed.splitlines()}
    kept = [line for line in shown.splitlines() if line.strip() != "…" and form(line) not in lines]
    if kept:
        raise SystemExit(f"nothing like this is printed: {kept[0]}")
    return "".join(f"{lines.get(form(line), line)}\n" for line in shown.splitlines())


def changes() -> Iterator[tuple[Shown, str, str]]:
    """What stands on a page, and what shall."""
    for one in commands():
        if one.output:
            with tempfile.TemporaryDirectory() as folder:
                done = typed(one.text, Path(folder))
            done.check_returncode()
            yield one, one.output, renewed(one.output, done.stdout)
    for one in snippets():
        if REMARK.search(one.text):
            done = subprocess.run(
                [sys.executable, "-P", "-c", one.text], capture_output=True, text=True, check=True
            )
            yield one, one.text, _remarked(one.text, done.stdout)


def _remarked(text: str, printed: str) -> str:
    """A snippet with what it prints behind each `print` that has a remark."""
    lines = iter(printed.splitlines())
    made: list[str] = []
    for line in text.splitlines():
        out = next(lines) if line.startswith("print(") else ""
        made.append(REMARK.sub(lambda found, out=out: found[1] + out, line))
    return "".join(f"{line}\n" for line in made)


def main() -> None:
    """Change the pages that are outdated, and say which."""
    for one, old, new in changes():
        if old != new:
            page = ROOT / one.page
            page.write_text(page.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
            print(f"{one.page}: {one.text.splitlines()[0]}")


if __name__ == "__main__":
    main()
