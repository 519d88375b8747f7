"""Where a placer has put every cell: its file of a placed design, cut down to that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["PLACES", "module_of", "places_of", "write_places"]

PLACES = "floor_plan.json"
"""{"columns": n, "rows": n, "cells": [[module, kind, x, y], …]}."""

_BEL = re.compile(r"X(\d+)/?Y(\d+)/")


def module_of(name: str, cell: Mapping[str, Any]) -> str:
    """The module of the hierarchy that a cell comes from, four levels deep at most."""
    path = str(cell["attributes"].get("hdlname", "")).split() or name.lstrip("\\").split(".")
    inner = [part for part in path[:-1] if "$" not in part]
    return ".".join(inner[:4]) or "top"


def places_of(modules: Mapping[str, Any]) -> dict[str, Any]:
    """Of the modules that nextpnr writes in JSON, its top among them."""
    top = max(modules.values(), key=lambda one: len(one["cells"]))
    cells: list[list[Any]] = []
    for name, cell in top["cells"].items():
        found = _BEL.search(cell["attributes"].get("NEXTPNR_BEL", ""))
        if found is not None:
            cells.append([module_of(name, cell), cell["type"], int(found[1]), int(found[2])])
    return {
        "columns": max(one[2] for one in cells) + 1,
        "rows": max(one[3] for one in cells) + 1,
        "cells": cells,
    }


def write_places(placed: Path, file: Path) -> None:
    """`PLACES` of the file that nextpnr wrote."""
    modules = json.loads(placed.read_text(encoding="utf-8"))["modules"]
    file.write_text(json.dumps(places_of(modules)), encoding="utf-8")
