"""Speed-ups of SCNN as it is, and with a cause of loss taken away.

What needs another core or other zeros is measured on a sample of a layer's filters, as a ratio;
DNNsim's count is of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from archsim.machines.scnn.design import SCNN_DNNSIM, SCNN_ISCA17, Scnn
from archsim.papers.scnn_layers import SparseLayer, measure, sampled
from archsim.papers.scnn_tally import Tally, total
from workloads.sparse import MEASURED_CLUSTERING
from workloads.threads import in_threads

Bars = Mapping[str, Tally]
"""A bar of figures 9 and 10 to what its layers took."""

MEMORIES = 16
"""Times the published IARAM and OARAM, enough for all layers but VGG-16's first."""

_NO_CONFLICTS: dict[str, Any] = {"banks": 1024, "bank_entries": 1}
_LARGE: dict[str, Any] = {
    "iaram_bytes": MEMORIES * SCNN_ISCA17.iaram_bytes,
    "oaram_bytes": MEMORIES * SCNN_ISCA17.oaram_bytes,
}


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """A cause of loss taken away: a name, a core and the clustering of zeros.

    large: its memories are `MEMORIES` times the published ones.  bare: of its cycles only the pairs
    count (`Tally.bare_speedup`).
    """

    name: str
    design: Scnn = SCNN_ISCA17
    clustering: float = 0.0
    large: bool = False
    bare: bool = False

    @property
    def changes_cycles(self) -> bool:
        """Whether it must be timed by itself."""
        return self.large or bool(self.clustering) or self.design != SCNN_ISCA17

    def tally(self, sparse: SparseLayer) -> Tally:
        """A layer's, scaled from that of a sample of its filters."""
        part = sampled(sparse)
        found = timed(self.design, part, self.clustering)
        if self.large and found.passes > part.layer.groups:
            found = timed(replace(self.design, **_LARGE), part, self.clustering)
        return found.scaled(sparse.layer.filters / part.layer.filters)

    def speedup(self, tally: Tally) -> float:
        return tally.bare_speedup if self.bare else tally.speedup


PLAIN = WhatIf(name="as it is")

WHAT_IFS = (
    WhatIf(name="zeros clustered", clustering=MEASURED_CLUSTERING),
    WhatIf(name="no bank conflicts", design=replace(SCNN_ISCA17, **_NO_CONFLICTS)),
    WhatIf(name=f"memories of {MEMORIES}×", large=True),
    WhatIf(name="pairs alone", bare=True),
    WhatIf(name="as DNNsim counts", design=SCNN_DNNSIM),
    WhatIf(name="all", clustering=MEASURED_CLUSTERING, large=True, bare=True),
)

QUEUES = tuple(
    WhatIf(name=f"queues of {places}", design=replace(SCNN_ISCA17, bank_queue=places))
    for places in (1, 2, 4, 8)
)
"""Places of each bank's queue; 1: none."""


@cache
def timed(design: Scnn, sparse: SparseLayer, clustering: float = 0.0) -> Tally:
    """`measure`, once."""
    return measure(design, sparse, clustering)


def side_by_side(run: Callable[[SparseLayer], Tally], layers: Sequence[SparseLayer]) -> list[Tally]:
    """Two layers at a time: one is drawn and coded while the other's pairs are counted."""
    return in_threads(run, layers, most=2)


def bars(layers: tuple[SparseLayer, ...], what: WhatIf = PLAIN, *, sample: bool = False) -> Bars:
    """What the layers of each bar took; from a sample of filters, if asked."""

    def one(sparse: SparseLayer) -> Tally:
        return what.tally(sparse) if sample else timed(what.design, sparse, what.clustering)

    found: dict[str, list[Tally]] = {}
    for sparse, tally in zip(layers, side_by_side(one, layers), strict=True):
        found.setdefault(sparse.bar, []).append(tally)
    return {bar: total(parts) for bar, parts in found.items()}


def would_be(layers: tuple[SparseLayer, ...], what: WhatIf) -> dict[str, float]:
    """The speed-up of each bar, and of "all".

    Of another core or other zeros it is ours, times a ratio measured on a sample of filters.  The
    one that is counted as DNNsim does is counted whole.
    """
    if what.design.counts_as_dnnsim:
        counted = with_all(bars(layers, what))
        return {bar: what.speedup(tally) for bar, tally in counted.items()}
    ours = with_all(bars(layers))
    if not what.changes_cycles:
        return {bar: what.speedup(tally) for bar, tally in ours.items()}
    plain = with_all(bars(layers, sample=True))
    other = with_all(bars(layers, what, sample=True))
    return {bar: ours[bar].speedup * what.speedup(other[bar]) / plain[bar].speedup for bar in ours}


def shares_would_be(layers: tuple[SparseLayer, ...], what: WhatIf) -> dict[str, dict[str, float]]:
    """Utilisation and idle cycles of each bar, per cent; of none if the cycles are the same.

    Ours, times a ratio measured on a sample of filters.
    """
    if not what.changes_cycles:
        return {}
    ours, plain = bars(layers), bars(layers, sample=True)
    other = bars(layers, what, sample=True)
    counted = {bar for bar in ours if all(one[bar].pairs > 0 for one in (ours, plain, other))}
    return {
        bar: {
            name: getattr(ours[bar], name) * getattr(other[bar], name) / getattr(plain[bar], name)
            for name in ("utilization", "idle")
            if getattr(plain[bar], name) > 0
        }
        for bar in counted
    }


def with_all(found: Bars) -> Bars:
    return {**found, "all": total(found.values())}


__all__ = [
    "MEMORIES",
    "PLAIN",
    "QUEUES",
    "WHAT_IFS",
    "Bars",
    "WhatIf",
    "bars",
    "shares_would_be",
    "side_by_side",
    "timed",
    "with_all",
    "would_be",
]
