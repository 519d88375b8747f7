"""A benchmark on the command line: which rows to measure, and how to print them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speed_report import Row

Measure = Callable[[], "Row"]


def chosen(description: str | None, known: Sequence[str] = ()) -> list[str]:
    """Which parts of a script without options are asked for by name; all if none is.

    Ends the process where anything else is asked for: exit code 2.
    """
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    if not known:
        parser.parse_args()
        return []
    _take_names(parser, known)
    what = parser.parse_args().what
    _check_names(parser, known, what)
    return what or list(known)


def _take_names(parser: argparse.ArgumentParser, known: Sequence[str]) -> None:
    what = f"{', '.join(known)}; all if none is given"
    parser.add_argument("what", nargs="*", metavar="WHAT", help=what)


def _check_names(
    parser: argparse.ArgumentParser, known: Sequence[str], what: Sequence[str]
) -> None:
    unknown = [name for name in what if name not in known]
    if unknown:
        parser.error(f"WHAT must be of {', '.join(known)}, not {unknown[0]!r}")


def parser_of(description: str, known: Sequence[str], repeats: int) -> argparse.ArgumentParser:
    """WHAT, --repeats, and --json or --markdown."""
    parser = argparse.ArgumentParser(description=description)
    say = parser.add_argument
    _take_names(parser, known)
    say("--repeats", type=int, default=repeats, help="measurements of which the median is taken")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="figures as JSON on standard output")
    shape.add_argument("--markdown", action="store_true", help="the table as Markdown")
    return parser


def parsed(
    parser: argparse.ArgumentParser, known: Sequence[str], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """The options, checked."""
    options = parser.parse_args(arguments)
    _check_names(parser, known, options.what)
    if options.repeats < 1:
        parser.error(f"--repeats must be positive, not {options.repeats}")
    return options


def measured(options: argparse.Namespace, calls: Mapping[str, Measure]) -> int:
    """Measure and print; 1 if a target is not met, 2 if a package or a tool is missing."""
    from speed_report import environment, print_markdown, print_report

    rows: list[Row] = []
    for name in options.what or calls:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        try:
            rows.append(calls[name]())
        except (ImportError, RuntimeError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
    about = environment()
    if options.json:
        print(json.dumps({"environment": about, "rows": [row.record() for row in rows]}, indent=2))
    elif options.markdown:
        print_markdown(about, rows)
    else:
        print_report(about, rows)
    return 0 if all(row.met for row in rows) else 1
