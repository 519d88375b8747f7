"""Where the points of a study are from, and what tells its space from another."""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np

from archsim.sweeps.packages import packages_of
from archsim.sweeps.points import Grid
from archsim.sweeps.prices import Prices
from archsim.sweeps.space import Space
from archsim.version import VERSION


def digest_of(grid: Grid) -> str:
    """What tells the space of a study."""
    return grid.space.digest(dict(zip(grid.space.network_names, grid.contents, strict=True)))


def provenance_of(grid: Grid, digest: str) -> dict[str, Any]:
    """What a study keeps of where its points are from."""
    import duckdb

    space = grid.space
    return {
        "space": space.record(),
        "digest": digest,
        "archsim": VERSION,
        "packages": packages_of(space),
        "duckdb": duckdb.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": f"{sys.platform} {platform.machine()}",
        "networks": {
            name: {"source": network.source, "content": content, "macs": network.macs}
            for name, network, content in zip(
                space.network_names, grid.networks, grid.contents, strict=True
            )
        },
        "technology": Prices(space).record(),
    }


def difference(known: dict[str, Any], space: Space) -> str:
    """Which parts of two spaces differ, as far as their records tell."""
    old, new = known["space"], space.record()
    differ = [k for k in new if k not in ("name", "requirements") and old.get(k) != new[k]]
    return f" ({', '.join(differ)})" if differ else " (its networks or prices have changed since)"


__all__ = ["difference", "digest_of", "provenance_of"]
