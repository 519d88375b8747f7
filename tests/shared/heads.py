"""Heads of tables, as the glossary has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"

HEAD_COLUMNS = ("head", "head in a table", "in figures", "word")
"""Columns of the glossary's tables that name what stands over columns elsewhere."""


def named_in(page: str) -> Iterator[str]:
    """The words and heads of the glossary's tables."""
    columns: list[int] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = [at for at, cell in enumerate(cells) if cell in HEAD_COLUMNS]
        else:
            yield from (one.strip() for at in columns for one in cells[at].split(", "))
            yield from (cells[at] for at in columns)


@cache
def glossary() -> frozenset[str]:
    """All that the glossary names."""
    return frozenset(named_in(GLOSSARY.read_text(encoding="utf-8"))) - {"", "---"}


def unnamed(head: str) -> list[str]:
    """The parts of a head that the glossary does not name: none, of one that a reader can find.

    A head of two lines has two parts; what stands in brackets is a unit or a direction;
    a number is a value of what the title names.
    """
    from archsim.codecs.known import codecs

    parts = [re.sub(r" \([^)]*\)$", "", part) for part in head.split("\n")]
    kinds = ("total", "weights", "activations")
    return [
        part
        for part in parts
        if part not in glossary()
        and part not in codecs()
        and not (len(parts) == 2 and part in kinds)
        and not re.fullmatch(r"[A-Z](/A)?|\d+(\.\d+)?", part)
    ]


FIRST_HEAD = {"add_column": 0, "names_column": 1, "text_column": 1, "_table": 1}
"""By function that makes columns, its first argument that is a head."""


def written_in(source: str) -> set[str]:
    """Heads that a module writes out: where it makes a column, and where it loops to make some."""
    if not any(name in source for name in FIRST_HEAD):
        return set()
    tree = ast.parse(source)
    made = [
        one
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := _called(node)) in FIRST_HEAD
        for one in node.args[FIRST_HEAD[name] :]
    ]
    loops = [
        node.iter
        for node in ast.walk(tree)
        if isinstance(node, ast.For)
        and any(isinstance(one, ast.Call) and _called(one) in FIRST_HEAD for one in ast.walk(node))
    ]
    texts = [node for node in [*made, *loops] if isinstance(node, ast.Constant | ast.Tuple)]
    return {
        str(one.value)
        for node in texts
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")
