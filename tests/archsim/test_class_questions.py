"""Nobody outside a machine's or a memory's own room asks for its class.

The question is read from the syntax trees of the packages: `isinstance` and `issubclass`, class
patterns of `match`, `type(x) is`, a look-up by `type(x)` and a comparison of a design's `kind`.
`LEFT` has those that are still there; it only ever gets shorter, to nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.machine.design import Design
from archsim.machine.registry import registered
from archsim.memory import OffChip
from archsim.memory.kinds import kinds
from archsim.memory.seam import PROTOCOLS

ROOT = Path(archsim.__file__).parents[1]
PACKAGES = ("archsim", "rtl", "fpga", "training", "workloads", "energy_models")

KIND, BY_TYPE = "a design's kind", "by type"

COMPILER = ROOT / "archsim" / "kernels"
"""Tables by the types of values that are compiled; it knows no designs."""

MEMORIES = (*(one for access in PROTOCOLS for one in kinds(access).values()), OffChip)

LEFT: dict[str, int] = {}
"""Questions by "file: class"."""


def _machines() -> set[type[Any]]:
    """Classes of designs, but for the one that all of them are."""
    found = {one for design in registered().values() for one in type(design).__mro__}
    return {one for one in found if issubclass(one, Design)} - {Design}


def _rooms() -> dict[str, str]:
    """By name of a class, the file in which it may be asked for."""
    return {one.__name__: f"{one.__module__.replace('.', '/')}.py" for one in _classes()}


def _classes() -> list[type[Any]]:
    return [*sorted(_machines(), key=lambda one: one.__name__), *MEMORIES]


def _names(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr


def _is_type_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def _asked(tree: ast.AST, kinds: set[str]) -> Iterator[str]:
    """Names of classes that are asked for; KIND where a kind is compared."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, second]):
                yield from _names(second)
            case ast.MatchClass(cls=cls):
                yield from _names(cls)
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                if any(_is_type_call(side) for side in sides):
                    yield from (name for side in sides for name in _names(side))
                texts = {
                    one.value
                    for side in sides
                    for one in ast.walk(side)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
                if texts & kinds and any(
                    isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides
                ):
                    yield KIND
            case ast.Subscript(slice=index) if _is_type_call(index):
                yield BY_TYPE


def questions(source: str, path: str) -> Counter[str]:
    """Class questions of a file, by "file: class"."""
    rooms = _rooms() | {KIND: "", BY_TYPE: ""}
    kinds = {design.kind for design in registered().values()}
    asked = _asked(ast.parse(source), kinds)
    return Counter(f"{path}: {name}" for name in asked if name in rooms and rooms[name] != path)


def test_nobody_asks_for_the_class_of_a_design_or_memory() -> None:
    """Fails for a question more, and for one less: the list is then to be shortened."""
    found: Counter[str] = Counter()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if COMPILER in path.parents:
                continue
            found += questions(path.read_text("utf-8"), path.relative_to(ROOT).as_posix())
    assert found == Counter(LEFT)


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(design, CoreDesign)",
        "isinstance(design, (str, scnn.Scnn))",
        "isinstance(design, CoreDesign | Scnn)",
        "issubclass(kind, Systolic)",
        "type(memory) is Boveda",
        "PARTS[type(memory)]",
        "design.kind == 'scnn'",
        "design.kind in ('scnn', 'vsq')",
        "match memory:\n    case Plain(): pass",
    ],
)
def test_every_form_of_the_question_is_seen(source: str) -> None:
    assert questions(source, "archsim/anywhere.py")


@pytest.mark.parametrize(
    "source",
    ["isinstance(value, dict)", "component.kind == 'sram'", "design.kind", "type(value).__name__"],
)
def test_other_questions_are_not(source: str) -> None:
    assert not questions(source, "archsim/anywhere.py")


def test_a_class_may_be_asked_for_in_its_room() -> None:
    assert not questions("isinstance(other, Plain)", "archsim/memory/plain.py")
