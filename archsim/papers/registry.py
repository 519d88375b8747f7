"""The papers by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module

from archsim.errors import InputError
from archsim.papers.figures import Comparison, Progress, read_paper, silent

MODULES: Mapping[str, str] = {
    "tpu": "archsim.papers.tpu",
    "scnn": "archsim.papers.scnn",
    "scnn-area": "archsim.papers.scnn_area",
    "eyeriss": "archsim.papers.eyeriss",
    "mac-area": "archsim.papers.mac_area",
    "vsquant": "archsim.papers.vsquant",
    "boveda": "archsim.papers.boveda",
}
"""Name of a paper, and of its data file, to the module whose `compare()` makes its table."""


def papers() -> dict[str, str]:
    """The titles of the papers, by name."""
    return {name: str(read_paper(name)["title"]) for name in MODULES}


def compare(name: str, progress: Progress = silent) -> Comparison:
    """A paper's table with ours beside it.  Raises `InputError` for an unknown name."""
    if name not in MODULES:
        close = difflib.get_close_matches(name, MODULES, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(MODULES)}"
        raise InputError(f"no paper {name!r}; {hint}")
    module = import_module(MODULES[name])
    table = module.compare(progress)
    if not isinstance(table, Comparison):
        raise TypeError(f"{MODULES[name]}.compare() must answer with a Comparison")
    return table
