"""A network's name with what is asked of it: `llama3-8b:decode=8192,batch=4`."""

from __future__ import annotations

import re

from workloads.errors import WorkloadError

_ASKED = re.compile(r"(?P<name>.+):(?P<settings>[^:/\\]*=[^:/\\]*)", re.DOTALL)
_SETTING = re.compile(r"(?P<key>[a-z_]+)=(?P<value>\d{1,19})", re.ASCII)


def requested(text: str) -> tuple[str, dict[str, int]]:
    """The name and its settings, none if no `:KEY=NUMBER,…` follows.  Raises WorkloadError."""
    found = _ASKED.fullmatch(text)
    if found is None:
        return text, {}
    settings: dict[str, int] = {}
    for part in found["settings"].split(","):
        setting = _SETTING.fullmatch(part.strip())
        if setting is None:
            raise WorkloadError(
                f"{found['name'][:60]}: a network takes NAME:KEY=NUMBER,KEY=NUMBER, "
                f"not {part[:60]!r}"
            )
        if setting["key"] in settings:
            raise WorkloadError(f"{found['name'][:60]}: {setting['key']} is said twice")
        settings[setting["key"]] = int(setting["value"])
    return found["name"], settings


__all__ = ["requested"]
