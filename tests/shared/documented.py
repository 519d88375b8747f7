"""Every command and Python snippet that the project shows to a reader, found where it is shown.

Markdown is read by markdown-it-py, a whole CommonMark parser, for a pattern would miss fences in
lists and spans over lines.  What finds and runs snippets of one language (sybil, mktestdocs,
pytest-markdown-docs) knows neither spans of code in tables and prose nor what `--help` prints.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]

PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/**/*.md", "benchmarks/*.md")
"""What is for readers; the changelog tells of what was."""

SOURCES = (
    "archsim",
    "rtl",
    "fpga",
    "training",
    "workloads",
    "energy_models",
    "benchmarks",
    "notebooks",
)
"""Folders of Python whose docstrings are read, those that `--help` prints among them."""

COMMAND = re.compile(
    r"(?:archsim|python|pip|mkdocs|git|cd|\. \.venv/bin/activate|scripts/\w+\.sh)(?= [^ =]|$)"
)
"""How a line or a span begins that somebody could type."""

REMARK = re.compile(r"\s{2,}|\s+#\s")
"""What parts a command of a block from words about it."""


@dataclass(frozen=True)
class Shown:
    """A command, or a snippet of Python, as a page shows it.

    output: what the page shows that it prints, the next block that is of no language; "" if none.
    """

    page: str
    text: str
    output: str = ""


def pages() -> list[Path]:
    """All Markdown for readers."""
    return sorted(path for pattern in PAGES for path in ROOT.glob(pattern))


def tokens_of(path: Path) -> list[Any]:
    """Blocks of a page and, flat behind each, what it holds."""
    blocks = MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))
    return [token for block in blocks for token in (block, *(block.children or ()))]


def commands() -> list[Shown]:
    """Every command of a page, a docstring or `--help`."""
    found: list[Shown] = []
    for path in pages():
        found += _of_page(str(path.relative_to(ROOT)), tokens_of(path))
    for name, doc in docstrings():
        examples = "\n".join(re.findall(r"^\s{2,}\S.*$", doc, re.MULTILINE))
        found += (Shown(name, one) for one in _of_block(examples))
        found += (Shown(name, one) for one in map(_of_span, _spans(doc)) if one)
    return found


def _of_page(name: str, tokens: list[Any]) -> list[Shown]:
    found: list[Shown] = []
    typed: Shown | None = None
    for token in tokens:
        if token.type in ("fence", "code_block") and token.info.strip() != "python":
            block = [Shown(name, one) for one in _of_block(token.content)]
            if not block and typed is not None and token.type == "fence":
                found[found.index(typed)] = Shown(name, typed.text, token.content)
            typed = block[-1] if block and token.type == "fence" else None
            found += block
        elif token.type == "code_inline" and (one := _of_span(token.content)):
            found.append(Shown(name, one))
    return found


def _of_block(text: str) -> Iterator[str]:
    """The commands of a block: continued lines joined, remarks left out."""
    for line in re.sub(r" *\\+\n\s*", " ", text).splitlines():
        command = REMARK.split(line.strip())[0]
        if COMMAND.match(command) and command not in ("archsim", "python"):
            yield command


def _of_span(text: str) -> str:
    """The command that a span is; "" for the name alone of a program or verb, or no command."""
    words = text.replace("\\|", "|").split()
    only_named = len(words) == 1 or (
        len(words) == 2 and words[0] == "archsim" and words[1].isalpha()
    )
    return "" if only_named or not COMMAND.match(" ".join(words)) else " ".join(words)


def _spans(doc: str) -> list[str]:
    return re.findall(r"(?<!`)`([^`]+)`(?!`)", doc)


def docstrings() -> Iterator[tuple[str, str]]:
    """Of every module, class and function, and texts that are constants, with their file."""
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not re.search(r"(?:archsim|python|pip) \S|`--", text):
                continue  # nothing to be found: to parse every file would take seconds
            tree = ast.parse(text)
            name = str(path.relative_to(ROOT))
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield name, ast.get_docstring(node) or ""
            for node in tree.body:
                value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield name, value.value


def named_options() -> set[tuple[str, str]]:
    """Options of `archsim` that pages and docstrings name in spans, with where."""
    spans = [
        (str(path.relative_to(ROOT)), token.content)
        for path in pages()
        for token in tokens_of(path)
        if token.type == "code_inline"
    ]
    spans += [(name, span) for name, doc in docstrings() for span in _spans(doc)]
    return {
        (name, option)
        for name, span in spans
        if re.match(r"(--|archsim )", span) and not name.startswith("benchmarks/")
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span)
    }


FRAGMENTS = (Path("docs/extending.md"),)
"""Pages whose Python is cut from files that other tests run and compare with the page."""


def snippets() -> list[Shown]:
    """Every snippet of Python that stands alone; those of `FRAGMENTS` do not."""
    return [
        Shown(str(path.relative_to(ROOT)), token.content)
        for path in pages()
        if path.relative_to(ROOT) not in FRAGMENTS
        for token in tokens_of(path)
        if token.type == "fence" and token.info.strip() == "python"
    ]
