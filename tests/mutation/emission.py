"""Verilog of a design with a fault in it, of which only the modules that the fault is in are made.

While the sound design is emitted, the lines are noted that run for each module of its hierarchy.  A
fault in a function touches the modules for which that function ran; all others are as they were.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import Any

from tests.mutation.equality import shown_equal
from tests.mutation.operators import Mutant
from tests.mutation.sources import module_of, mutated_side, source_of

Key = tuple[str, str, str]
"""A module of the hierarchy: the component's Python module, its class, its parameters."""

TOP: Key = ("", "top", "")
_MODULE = re.compile(r"^module (\\\S+|\w+) ?\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"^  wire (?:.* )?(?:input|output) .*$", re.MULTILINE)


def key_of(kind: Any, parameters: dict[str, Any]) -> Key:
    """The same for a class and for the one that a fresh import makes of it."""
    return kind.__module__, kind.__qualname__, repr(sorted(parameters.items()))


@dataclass
class Made:
    """A module as the sound design has it."""

    kind: Any
    parameters: dict[str, Any]
    shared: Any
    text: str = ""
    lines: dict[str, set[int]] = field(default_factory=dict)
    """By Python module, those that ran for it, and not for a module within it."""

    def runs(self, module: str, first: int, last: int) -> bool:
        """Whether one of the lines ran for it."""
        return any(first <= line <= last for line in self.lines.get(module, ()))


@dataclass(frozen=True, kw_only=True)
class Faulty:
    """What a fault changes: RTLIL of modules, by name; and ready-made Verilog (memories) that is
    not as before."""

    changed: dict[str, str]
    sources: dict[str, str]

    @property
    def same_sources(self) -> bool:
        """Whether all that is ready-made is as before."""
        return not self.sources


class Emission:
    """The sound design's RTLIL and Verilog, by module.

    traced: lines that run are noted, without which no fault can be put in.
    """

    def __init__(self, design: Any, *, traced: bool = True) -> None:
        self.design = design
        self.made: dict[Key, Made] = {}
        self.sources: dict[str, str] = {}
        self._emit(traced=traced)

    @cached_property
    def modules(self) -> dict[str, str]:
        """Verilog by module."""
        return verilog_modules("\n".join(one.text for one in self.made.values()))

    def _emit(self, *, traced: bool) -> None:
        from rtl import hierarchy
        from rtl.hierarchy import Library

        emission, stack = self, [Made(None, {}, None)]
        self.made[TOP] = stack[0]

        class Noting(Library):
            def _converted(self, kind: Any, parameters: dict[str, Any]) -> Any:
                stack.append(Made(kind, parameters, None))
                stack[-1].shared = shared = super()._converted(kind, parameters)
                stack[-1].text = self.texts[shared.name]
                emission.made[key_of(kind, parameters)] = stack.pop()
                return shared

        library = Noting()
        with opened(hierarchy, library), _lines_noted(stack) if traced else nullcontext():
            self.made[TOP].text = top_text(self.design)
        self.sources = dict(library.sources)

    @property
    def lines(self) -> dict[str, set[int]]:
        """By Python module, all lines that ran."""
        found: dict[str, set[int]] = {}
        for one in self.made.values():
            for module, lines in one.lines.items():
                found.setdefault(module, set()).update(lines)
        return found

    def verilog(self, faulty: Faulty | None = None) -> str:
        """All modules, some of them as a fault makes them."""
        changed = {} if faulty is None else verilog_modules("\n".join(faulty.changed.values()))
        sources = self.sources | ({} if faulty is None else faulty.sources)
        return "\n".join([*sources.values(), *(self.modules | changed).values()])

    @property
    def texts(self) -> dict[str, str]:
        """RTLIL by module."""
        return {"top" if key == TOP else one.shared.name: one.text
                for key, one in self.made.items()}  # fmt: skip

    def touched(self, mutant: Mutant) -> set[Key]:
        """The modules for which the function that the fault is in runs."""
        first, last = function_of(mutant)
        return {key for key, one in self.made.items() if one.runs(mutant.module, first, last)}

    def with_fault(self, mutant: Mutant) -> Faulty | None:
        """The design with the fault, which is put in already; None where no letter changes."""
        touched = self.touched(mutant)
        if not touched:
            return None
        before, (texts, sources) = self.texts, self._remade(touched)
        changed = {name: text for name, text in texts.items() if text != before.get(name)}
        known = changed.keys() & before.keys()
        if touched != set(self.made) and any(
            _ports(changed[name]) != _ports(before[name]) for name in known
        ):  # its parents see other ports
            texts, sources = self._remade(set(self.made))
            changed = {name: text for name, text in texts.items() if text != before.get(name)}
        others = {name: text for name, text in sources.items() if self.sources.get(name) != text}
        return Faulty(changed=changed, sources=others) if changed or others else None

    def shown_equal(self, faulty: Faulty) -> bool:
        """Whether the solver shows that every changed module does as before."""
        before = self.texts
        after = before | faulty.changed
        other = {name for name in faulty.changed
                 if _ports(before.get(name, "")) != _ports(after[name])}  # fmt: skip
        around = {name for name, text in after.items()
                  if any(f"cell \\{inner} " in text for inner in other)}  # fmt: skip
        # Modules of other ports are shown to be equal with those that they are in.
        names = (faulty.changed.keys() | around) - other
        return faulty.same_sources and all(shown_equal(name, before, after) for name in names)

    def _remade(self, touched: set[Key]) -> tuple[dict[str, str], dict[str, str]]:
        """RTLIL and ready-made Verilog of the touched modules, by name, and of new ones."""
        hierarchy = importlib.import_module("rtl.hierarchy")
        made = self.made

        class Reusing(hierarchy.Library):  # pyright: ignore[reportUntypedBaseClass]
            """Says what it knows of the modules that are not touched."""

            def module(self, kind: Any, parameters: dict[str, Any]) -> Any:
                key = key_of(kind, parameters)
                if key in made and key not in touched:
                    return made[key].shared
                return super().module(kind, parameters)

            def _free_name(self, kind: Any) -> str:
                if self.names:
                    return self.names.pop()
                name = f"{super()._free_name(kind)}_fault"
                return name + "_" * sum(one.rstrip("_") == name for one in self.texts)

            def _converted(self, kind: Any, parameters: dict[str, Any]) -> Any:
                known = made.get(key_of(kind, parameters))
                self.names = [known.shared.name] if known else []
                return super()._converted(kind, parameters)

        library: Any = Reusing()
        library.names = []
        texts: dict[str, str] = {}
        with opened(hierarchy, library):
            if TOP in touched:
                texts["top"] = top_text(self.design)
            for key in touched - {TOP}:
                kind: Any = importlib.import_module(key[0])
                for name in key[1].split("."):
                    kind = getattr(kind, name)
                library.module(kind, made[key].parameters)
        return self._known_by_text(texts | library.texts), library.sources

    def _known_by_text(self, texts: dict[str, str]) -> dict[str, str]:
        """Modules of new parameters that are, but for their names, as ones of the sound design are
        taken to be those."""
        named = {text.replace(f"\\{name}\n", "\\\n"): name for name, text in self.texts.items()}
        for new in texts.keys() - self.texts.keys():
            same = named.get(texts[new].replace(f"\\{new}\n", "\\\n"))
            if same is not None:
                del texts[new]
                cell, known = f"cell \\{new} ", f"cell \\{same} "
                texts = {name: text.replace(cell, known) for name, text in texts.items()}
        return texts


@contextmanager
def opened(hierarchy: Any, library: Any) -> Iterator[None]:
    """Modules that are placed are those of the library."""
    token = hierarchy._library.set(library)
    try:
        yield
    finally:
        hierarchy._library.reset(token)


def top_text(design: Any) -> str:
    """RTLIL of the core, in the library that is open."""
    from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]

    from rtl.registry import core_of

    return rtlil.convert(core_of(design), name="top", emit_src=False)


def verilog_modules(rtlil_text: str) -> dict[str, str]:
    """Verilog of RTLIL, by module."""
    from amaranth.back.verilog import (
        _convert_rtlil_text,  # pyright: ignore[reportAttributeAccessIssue]
    )

    if not rtlil_text:
        return {}
    return {found[1]: found[0] for found in _MODULE.finditer(_convert_rtlil_text(rtlil_text))}


def _ports(text: str) -> set[str]:
    return set(_PORT.findall(text))


@contextmanager
def _lines_noted(stack: list[Made]) -> Iterator[None]:
    """Lines of the files that faults are put into, for the module on top of the stack."""
    modules: dict[str, str] = {}

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            module = modules[frame.f_code.co_filename]
            stack[-1].lines.setdefault(module, set()).add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in modules:
            name = module_of(file)
            modules[file] = name if mutated_side(name, "rtl") else ""
        return line if modules[file] else None

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)


def function_of(mutant: Mutant) -> tuple[int, int]:
    """First and last line of the function that the fault is in, or of the whole file."""
    text = source_of(mutant.module).read_text(encoding="utf-8")
    around = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= mutant.line <= (node.end_lineno or node.lineno)
    ]
    return max(around, default=(0, 1 << 30))
