"""A network's name with what is asked of it: `llama3-8b:decode=8192,batch=4`.

A word of `FLAGS` stands without a number: `resnet18:training,batch=4`.
"""

from __future__ import annotations

import re

from workloads.errors import WorkloadError

FLAGS = ("training", "recurrent")
"""What is asked for by its word alone; its number is 1."""

_WORD = "|".join(FLAGS)
_ASKED = re.compile(
    rf"(?P<name>.+):(?P<settings>[^:/\\]*=[^:/\\]*|(?:{_WORD})(?:,(?:{_WORD}))*)", re.DOTALL
)
_SETTING = re.compile(r"(?P<key>[a-z_]+)=(?P<value>\d{1,19})", re.ASCII)


def requested(text: str) -> tuple[str, dict[str, int]]:
    """The name and its settings, none if no `:KEY=NUMBER,…` follows.  Raises WorkloadError."""
    found = _ASKED.fullmatch(text)
    if found is None:
        return text, {}
    settings: dict[str, int] = {}
    for part in found["settings"].split(","):
        word = part.strip()
        setting = _SETTING.fullmatch(f"{word}=1" if word in FLAGS else word)
        if setting is None:
            raise WorkloadError(
                f"{found['name'][:60]}: a network takes NAME:KEY=NUMBER,KEY=NUMBER, "
                f"not {part[:60]!r}: numbers are whole, without a sign, of at most 19 digits"
            )
        if setting["key"] in settings:
            raise WorkloadError(f"{found['name'][:60]}: {setting['key']} is said twice")
        settings[setting["key"]] = int(setting["value"])
    return found["name"], settings


__all__ = ["FLAGS", "requested"]
