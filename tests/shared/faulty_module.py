"""A module of the project with a fault put into its source, beside the untouched one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

Fault = tuple[str, str]
"""What the source says, and what it says instead."""


def faulty_module(module: ModuleType, folder: Path, *faults: Fault) -> ModuleType:
    """The module loaded anew from a copy in `folder`; every fault must be found in it."""
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    for fault in faults:
        assert fault[0] in text, f"{module.__name__} no longer says {fault[0]!r}"
        text = text.replace(*fault)
    name = f"faulty_{module.__name__.rpartition('.')[2]}"
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    sys.modules[name] = copy
    spec.loader.exec_module(copy)
    return copy
