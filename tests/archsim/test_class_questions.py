"""Nobody outside a machine's or a memory's own room asks for its class.

The question is read from the syntax trees of the packages: `isinstance` and `issubclass`, class
patterns of `match`, `type(x) is`, `type(x).__name__ ==`, `x.__class__`, `__mro__`, a match or look-
up by any of these, a comparison, match or look-up of a design's or a memory's `kind`, a comparison
of anything called a kind with the name of one, and `hasattr`, `getattr` with something for when it
is not there, names in `vars`, `dir` or `__dict__`, of what is called a design, a machine, a memory
or their hardware; `except AttributeError`, and functions that choose by class (`singledispatch`).
Classes are those of designs, of their models and of memories.
`LEFT` has those that are still there; it only ever gets shorter, to nothing.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import archsim
from archsim.machine.design import Design
from archsim.machine.model import MachineModel
from archsim.machine.registry import registered
from archsim.memory import OffChip
from archsim.memory.kinds import kinds as kinds_of
from archsim.memory.seam import PROTOCOLS

ROOT = Path(archsim.__file__).parents[1]
PACKAGES = ("archsim", "rtl", "fpga", "training", "workloads", "energy_models")

KIND, BY_TYPE, BY_ATTRIBUTE = "a kind's name", "by type", "by what it has"

ASKED = re.compile(
    r"(^|_)(design|machine|model|memory|scratchpad|stream|bank|inner|core|rtl|rtl_of|core_of)$"
)
"""What variables, attributes and functions are called that hold or answer a design, its model, a
memory, or the hardware of any."""

MEMORIES = (*(one for access in PROTOCOLS for one in kinds_of(access).values()), OffChip)

LEFT: dict[str, int] = {}
"""Questions by "file: class"."""

DOORS = {
    "rtl/registry.py": "the hardware of a kind is found by its name, as packages register it",
    "rtl/core/memory.py": "what the hardware of a memory may answer, or not, is asked here alone",
    "archsim/machine/registry.py": "designs are found by kind, as packages register them",
    "archsim/capture_file.py": "what a broken file raises as it is read, of whatever kind",
    "workloads/threads.py": "what not every operating system has",
    "archsim/cli/listing.py": "what a warning of a package begins with",
    "archsim/kernels": "tables by the types of values that are compiled; it knows no designs",
}
"""Where a kind's name is looked up, or types are, and why."""


def _machines() -> set[type[Any]]:
    """Classes of designs, but for the one that all of them are."""
    found = {one for design in registered().values() for one in type(design).__mro__}
    models = {
        one for design in registered().values() for one in type(design.machine_model()).__mro__
    }
    answers = {one for one in models if issubclass(one, MachineModel)} - {MachineModel}
    return {one for one in found if issubclass(one, Design)} - {Design} | answers


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


OF_A_CLASS = ("__name__", "__qualname__", "__module__", "__mro__", "__bases__")


def _typed(node: ast.AST) -> ast.expr | None:
    """x of `type(x)`, `type(x).__name__`, `x.__class__`, `x.__class__.__name__`; else None."""
    match node:
        case ast.Attribute(value=inner, attr=attribute) if attribute in OF_A_CLASS:
            return _typed(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="mro")):
            return _typed(inner)
        case ast.Attribute(value=inner, attr="__class__"):
            return inner
        case ast.Call(func=ast.Name(id="type"), args=[inner]):
            return inner
    return None


def _is_held(node: ast.AST) -> bool:
    """Whether what an expression names is a design, a model or a memory, or hardware of one."""
    if isinstance(node, ast.Call):
        return _is_held(node.func)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return ASKED.search(name) is not None


def _is_called_kind(node: ast.AST) -> bool:
    """`kind`, `x.kind`, `x["kind"]`, `x.get("kind")`, and parts of their text."""
    match node:
        case ast.Attribute(attr="kind") | ast.Name(id="kind"):
            return True
        case ast.Subscript(slice=ast.Constant(value="kind")):
            return True
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value="kind"), *_]):
            return True
        case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
            return _is_called_kind(inner)
    return False


def _listed(node: ast.AST) -> ast.expr | None:
    """x of `vars(x)`, `dir(x)`, `x.__dict__`; else None."""
    match node:
        case ast.Call(func=ast.Name(id="vars" | "dir"), args=[inner]):
            return inner
        case ast.Attribute(value=inner, attr="__dict__"):
            return inner
    return None


def _is_kind_of(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "kind" and _is_held(node.value)


def _texts(nodes: list[ast.expr]) -> set[str]:
    constants = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return {one.value for one in constants if isinstance(one.value, str)}


def _compared(sides: list[ast.expr], kinds: set[str], classes: set[str]) -> Iterator[str]:
    """Of a comparison; kinds: of designs; classes: names of those that are not asked for."""
    texts = _texts(sides)
    typed = [one for side in sides if (one := _typed(side)) is not None]
    if typed:
        yield from (name for side in sides for name in _names(side))
        if texts & classes or (texts and any(map(_is_held, typed))):
            yield BY_TYPE
    of_kind = [side for side in sides if _is_called_kind(side)]
    if (texts & kinds and of_kind) or (texts and any(map(_is_kind_of, of_kind))):
        yield KIND
    listed = [one for side in sides[1:] if (one := _listed(side)) is not None]
    if any(map(_is_held, listed)):
        yield BY_ATTRIBUTE


def _matched(node: ast.Match, kinds: set[str]) -> Iterator[str]:
    """Of a `match`."""
    texts = {
        one.value.value
        for case in node.cases
        for one in ast.walk(case.pattern)
        if isinstance(one, ast.MatchValue) and isinstance(one.value, ast.Constant)
    }
    if _is_kind_of(node.subject) or (texts & kinds and _is_called_kind(node.subject)):
        yield KIND
    if (one := _typed(node.subject)) is not None and _is_held(one):
        yield BY_TYPE


def _asked(tree: ast.AST, kinds: set[str], classes: set[str]) -> Iterator[str]:
    """Names of classes that are asked for; KIND where a kind is compared or looked up."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, second]):
                yield from _names(second)
            case ast.Call(func=ast.Name(id="hasattr"), args=[one, *_]) if _is_held(one):
                yield BY_ATTRIBUTE
            case ast.Call(func=ast.Name(id="getattr"), args=[one, ast.Constant(), _]) if _is_held(
                one
            ):
                yield BY_ATTRIBUTE
            case ast.Call(func=ast.Attribute(value=one, attr="startswith" | "endswith")):
                if _is_kind_of(one):
                    yield KIND
            case ast.Call(func=ast.Attribute(attr="get"), args=[one, *_]):
                if _is_kind_of(one):
                    yield KIND
            case ast.Match():
                yield from _matched(node, kinds)
            case ast.ExceptHandler(type=caught) if caught is not None:
                if "AttributeError" in _names(caught):
                    yield BY_ATTRIBUTE
            case ast.Name(id="singledispatch" | "singledispatchmethod"):
                yield BY_TYPE
            case ast.Attribute(attr="singledispatch" | "singledispatchmethod"):
                yield BY_TYPE
            case ast.MatchClass(cls=cls):
                yield from _names(cls)
            case ast.Compare(left=left, comparators=others):
                yield from _compared([left, *others], kinds, classes)
            case ast.Subscript(slice=index) if (one := _typed(index)) is not None:
                if not isinstance(index, ast.Attribute) or _is_held(one):
                    yield BY_TYPE
            case ast.Subscript(slice=index) if _is_kind_of(index):
                yield KIND


def questions(source: str, path: str) -> Counter[str]:
    """Class questions of a file, by "file: class"."""
    rooms = _rooms() | {KIND: "", BY_TYPE: "", BY_ATTRIBUTE: ""}
    kinds = {design.kind for design in registered().values()}
    kinds |= {name for access in PROTOCOLS for name in kinds_of(access)}
    asked = _asked(ast.parse(source), kinds, set(_rooms()))
    return Counter(f"{path}: {name}" for name in asked if name in rooms and rooms[name] != path)


def test_nobody_asks_for_the_class_of_a_design_or_memory() -> None:
    """Fails for a question more, and for one less: the list is then to be shortened."""
    found: Counter[str] = Counter()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(tuple(DOORS)):
                found += questions(path.read_text("utf-8"), name)
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
        "match design.kind:\n    case 'scnn': pass",
        "type(design).__name__ == 'Scnn'",
        "design.__class__ is Scnn",
        "self.design.__class__.__name__ == 'Vsq'",
        "PARTS[design.__class__]",
        "hasattr(design, 'banks')",
        "hasattr(self.ifmap_memory, 'group')",
        "getattr(design, 'banks', None)",
        "self.memory.kind == 'plain'",
        "design.ifmap_memory.kind in ('boveda', 'faulty')",
        "design.kind.startswith('sys')",
        "PARTS[design.kind]",
        "PARTS.get(memory.kind)",
        "found.kind == 'scnn'",
        "type(found).__name__ == 'Scnn'",
        "isinstance(model, TileMachine)",
        "isinstance(design.machine_model(), SparseMachine)",
        "Scnn in type(found).__mro__",
        "type(design).__module__ == 'archsim.machines.scnn.design'",
        "match type(design):\n    case _: pass",
        "match kind:\n    case 'scnn': pass",
        "kind == 'scnn'",
        "kind in ('boveda', 'faulty')",
        "record['kind'] == 'scnn'",
        "record.get('kind') == 'scnn'",
        "design.kind[:4] == 'scnn'",
        "design.kind.lower() == 'scnn'",
        "'banks' in vars(design)",
        "'banks' in dir(self.design)",
        "'banks' in memory.__dict__",
        "hasattr(core_of(design), 'settings')",
        "getattr(design.machine_model(), 'chain', None)",
        "try:\n    design.banks\nexcept AttributeError: pass",
        "@functools.singledispatch\ndef price(design): ...",
    ],
)
def test_every_form_of_the_question_is_seen(source: str) -> None:
    assert questions(source, "archsim/anywhere.py")


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(value, dict)",
        "component.kind == 'sram'",
        "design.kind",
        "type(value).__name__",
        "first.kind == second.kind",
        "design.kind != other.kind",
        "getattr(design, name)",
        "type(error).__name__ == 'HelpError'",
        "TABLE[type(operator).__name__]",
        "getattr(value, 'name', None)",
        "hasattr(signal, 'SIGALRM')",
        "kind == 'sram'",
        "match node.kind:\n    case 'sram': pass",
        "'x' in vars(found)",
        "record['kind'] == 'switch'",
        "try:\n    f()\nexcept ValueError: pass",
    ],
)
def test_other_questions_are_not(source: str) -> None:
    assert not questions(source, "archsim/anywhere.py")


def test_a_class_may_be_asked_for_in_its_room() -> None:
    assert not questions("isinstance(other, Plain)", "archsim/memory/plain.py")
