"""Where faults are put: the lines that a design's RTL, or its model, runs through."""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.mutation.operators import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]

RTL = (
    "rtl.core.*", "rtl.memories.*", "rtl.boveda", "rtl.systolic", "rtl.tensorcore", "rtl.vsq",
    "rtl.scnn", "rtl.sparsetrain",
)  # fmt: skip
MODEL = (
    "archsim.arithmetic.*", "archsim.codecs.*", "archsim.layer.*", "archsim.machines.*",
    "archsim.memories.*", "archsim.memory.*", "archsim.tiled.*", "archsim.numbers",
    "archsim.blocks", "archsim.gather", "archsim.ports",
)  # fmt: skip
LEFT_OUT = (
    "archsim.tiled.choice", "archsim.tiled.tiling", "archsim.tiled.tiling_check",
    "archsim.tiled.tiling_estimate", "archsim.tiled.tile_fit", "archsim.tiled.tile_time",
    "archsim.tiled.block_check", "archsim.tiled.components", "archsim.machines.*components",
    "archsim.tiled.model", "archsim.tiled.timing", "archsim.tiled.occupancy",
    "archsim.tiled.activity", "archsim.tiled.timeline", "archsim.machines.scnn.model",
    "archsim.machines.scnn.simulation", "archsim.machines.scnn.activity",
    "archsim.tiled.side_by_side", "archsim.blocks", "archsim.layer.operand_check",
    "archsim.tiled.near*", "archsim.tiled.bound*", "archsim.machines.scnn.bound",
    "archsim.machines.scnn.choice", "archsim.machines.sparsetrain.cutting",
    "archsim.machines.sparsetrain.estimate",
)  # fmt: skip
"""Not mutated: which of the legal tilings is taken, what hardware costs, what is refused, and what
is told of a network.  Any legal tiling is computed alike by model and RTL, so that no comparison of
both could tell."""

CALLS = 60


@contextmanager
def lines_run(wanted: Callable[[str], bool]) -> Iterator[dict[str, set[int]]]:
    """By file, the lines that Python runs meanwhile in the files that are wanted.

    Of a function's many calls the first ones are looked at.
    """
    found: dict[str, set[int]] = defaultdict(set)
    looked: dict[str, bool] = {}
    calls: dict[int, int] = defaultdict(int)  # by id: a code's hash is worked out anew each time
    kept: list[CodeType] = []

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_filename].add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        name = code.co_filename
        if name not in looked:
            looked[name] = wanted(name)
        if not looked[name]:
            return None
        calls[id(code)] += 1
        if calls[id(code)] == 1:
            kept.append(code)
        return line if calls[id(code)] <= CALLS else None

    sys.settrace(call)
    try:
        yield found
    finally:
        sys.settrace(None)


def module_of(file: str) -> str:
    """The dotted name of a file of the project; empty for others."""
    try:
        inside = Path(file).resolve().relative_to(ROOT)
    except ValueError:
        return ""
    return ".".join(inside.with_suffix("").parts).removesuffix(".__init__")


def within(module: str, patterns: tuple[str, ...]) -> bool:
    """Whether a module is one of those that are named, `*` standing for any part."""
    from fnmatch import fnmatchcase

    return any(fnmatchcase(module, pattern) for pattern in patterns)


def mutated_side(module: str, side: str) -> bool:
    """Whether faults of a side, "rtl" or "model", are put into a module."""
    if side == "rtl":
        return within(module, RTL)
    return within(module, MODEL) and not within(module, LEFT_OUT)


def _of_the_model(module: str) -> bool:
    return mutated_side(module, "model")


def mutants_run_by(
    run: Callable[[], object], mutated: Callable[[str], bool] = _of_the_model
) -> list[Mutant]:
    """All mutants of the lines that `run` runs through, module by module, of those mutated.

    Kernels run as Python meanwhile, so that of them too only these lines count.
    """
    with kernels_as_python(), lines_run(lambda file: mutated(module_of(file))) as lines:
        run()
    return mutants_of({module_of(file): numbers for file, numbers in lines.items()})


@contextmanager
def kernels_as_python() -> Iterator[None]:
    """Meanwhile no kernel's compiled code runs."""
    from archsim.kernels import Kernel

    every: list[Any] = [one for one in gc.get_objects() if isinstance(one, Kernel)]
    before = [one._run for one in every]
    for one in every:
        one._run = one.part.function
    try:
        yield
    finally:
        for one, run in zip(every, before, strict=True):
            one._run = run


def mutants_of(lines: dict[str, set[int]]) -> list[Mutant]:
    """All mutants of these lines of modules."""
    found: list[Mutant] = []
    for module in sorted(lines):
        text = source_of(module).read_text(encoding="utf-8")
        found += mutants(module, text, frozenset(lines[module]))
    return found


def source_of(module: str) -> Path:
    """The file of a module of the project."""
    file = ROOT / Path(*module.split("."))
    return file / "__init__.py" if file.is_dir() else file.with_suffix(".py")


@cache
def _lines(module: str) -> list[str]:
    path = source_of(module)
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def line_of(mutant: Mutant) -> str:
    """What the line of a fault says, without the white space around it; "" if it is not there."""
    lines = _lines(mutant.module)
    return lines[mutant.line - 1].strip() if mutant.line <= len(lines) else ""


def number_alike(module: str, line: int) -> int:
    """Of the lines of a module that say the same as this one, which it is, from 1 on."""
    says = [one.strip() for one in _lines(module)[:line]]
    return says.count(says[-1]) if says else 0


def column_of(mutant: Mutant) -> int:
    """Where in its line a fault begins, of what `line_of` says; 0 if that is not there."""
    if not line_of(mutant):
        return 0
    data = source_of(mutant.module).read_bytes()
    begin = data.rfind(b"\n", 0, mutant.begin) + 1
    return len(data[begin : mutant.begin].lstrip())
