"""Pages are filled in here: every page has the frame, styles and macros of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template

_OURS = Path(__file__).parent


def template_of(folder: Path, name: str) -> Template:
    """A page's template, from its own folder, with what it includes from there or from this one.

    All that it is filled with becomes text, but for what it calls safe; a name that it is not
    given is an error.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from archsim.report.theme import DARK, LIGHT

    environment = Environment(
        loader=FileSystemLoader([folder, _OURS]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name, globals={"light": LIGHT, "dark": DARK})


__all__ = ["template_of"]
