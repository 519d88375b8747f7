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
    "randbet": "archsim.papers.randbet",
    "sarma-cnn": "archsim.papers.sarma_cnn",
    "sarma-rnn": "archsim.papers.sarma_rnn",
    "tensordash": "archsim.papers.tensordash",
}
"""Name of a paper, and of its data file, to the module whose `compare()` makes its table."""


def papers() -> dict[str, str]:
    """The titles of the papers, by name."""
    return {name: str(read_paper(name)["title"]) for name in MODULES}


SAMPLED = ("randbet",)
"""Papers whose tables are of a sample, of so many images and chips."""


def compare(
    name: str, progress: Progress = silent, *, images: int | None = None, chips: int | None = None
) -> Comparison:
    """A paper's table with ours beside it; images, chips: sizes of a sample, where it is of one.

    Raises `InputError` for an unknown name, and for sizes of what is not sampled.
    """
    if name not in MODULES:
        close = difflib.get_close_matches(name, MODULES, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(MODULES)}"
        raise InputError(f"no paper {name!r}; {hint}")
    module = import_module(MODULES[name])
    sizes = {"images": images, "chips": chips}
    given = [f"--{size}" for size, value in sizes.items() if value is not None]
    if given and name not in SAMPLED:
        raise InputError(f"{given[0]} is for {', '.join(SAMPLED)}, not for {name}")
    table = module.compare(progress, **(sizes if name in SAMPLED else {}))
    if not isinstance(table, Comparison):
        raise TypeError(f"{MODULES[name]}.compare() must answer with a Comparison")
    return table
