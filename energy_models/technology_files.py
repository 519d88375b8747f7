"""Which technologies there are: files of the package, and those that installed packages add.

`energy_models` knows no plug-ins; who does lets it have their files by `take_others`
(`archsim.technologies`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from energy_models.errors import EnergyError, nearest

FOLDER = Path(__file__).parent / "technologies"
"""Of the files in the package."""


class Others(Protocol):
    """Technologies of other packages."""

    @property
    def names(self) -> tuple[str, ...]:
        """None of `shipped_names`."""
        ...

    def path(self, name: str) -> Path:
        """The file of one.  Raises `EnergyError` where its package is broken."""
        ...


_others: list[Others] = []


def take_others(others: Others) -> None:
    """Let the technologies of other packages be named too, from now on."""
    _others[:] = [others]


def shipped_names() -> list[str]:
    """Of the technologies in the package."""
    return [path.stem for path in sorted(FOLDER.glob("*.toml"))]


def technology_names() -> list[str]:
    """Of all technologies, those of other packages last."""
    return [*shipped_names(), *(name for others in _others for name in others.names)]


def named_file(name: str) -> Path:
    """The file of a technology with a name.  Raises `EnergyError` for other names."""
    if name in shipped_names():
        return FOLDER / f"{name}.toml"
    known = technology_names()
    if name not in known:
        raise EnergyError(f"no technology {name!r}; {_alike(name, known)}")
    return _others[0].path(name)


def file_of(name_or_path: str) -> Path:
    """The file of a name, or of a path.  Raises `EnergyError` for what is neither."""
    path = Path(name_or_path)
    is_file = path.suffix == ".toml" or path.exists()
    return path if is_file and name_or_path not in technology_names() else named_file(name_or_path)


def _alike(name: str, known: list[str]) -> str:
    """A hint at those of the same node; at all where there is none: 28nm is not nearly 180nm."""
    same = [one for one in known if re.findall(r"\d+", one) == re.findall(r"\d+", name)]
    return nearest(name, same) if same else f"known: {', '.join(known)}"


__all__ = [
    "FOLDER",
    "Others",
    "file_of",
    "named_file",
    "shipped_names",
    "take_others",
    "technology_names",
]
