"""Dropout of recurrent networks: what is dropped, and where that makes a product smaller.

The four cases are those of Sarma et al. (arXiv:2106.12089, figure 1): the units that are kept are
drawn for each sequence of the batch or are the same for all of it, and are drawn again at each step
or repeated in time.

    case   within the batch   in time
    1      random             varying
    2      random             repeated
    3      the same           varying
    4      the same           repeated

Dropped is what a recurrent layer reads of the layer below (non-recurrent, NR), what a layer reads
that its network marks (`Node.dropout`), and, where it is asked for, what a recurrent layer reads of
its own state (recurrent, RH).  A unit that is kept is divided by the share that is kept.

Cases 1 and 2 leave zeros, scattered over a product's ifmap.  In cases 3 and 4 all rows of a step
lack the same units: its product shrinks, of FP in K, of BP in the columns of the output, of WG in
its rows (`workloads.training.compacted`).  Case 3 does so step by step, and has to: a product of
all steps has no unit that all of them lack.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.flow import Node
from workloads.layers import Conv2d, MatMul
from workloads.training.backward import Backward
from workloads.training.rules import CELLS

CASES = {
    1: "random within the batch, varying in time",
    2: "random within the batch, repeated in time",
    3: "the same within the batch, varying in time",
    4: "the same within the batch, repeated in time",
}

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Dropout:
    """case: of `CASES`.  percent: of units that are dropped.  recurrent: RH beside NR.

    seed: of the units that are drawn.  Raises WorkloadError for a case that is none, and for rates
    outside 0 to 99 percent.
    """

    case: int
    percent: int
    recurrent: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.case not in CASES:
            known = "; ".join(f"{case} {said}" for case, said in CASES.items())
            raise WorkloadError(f"dropout is one of the cases {known}; not {self.case}")
        percent: Any = self.percent
        if not isinstance(percent, int) or not 0 <= percent <= 99:
            raise WorkloadError(
                f"the rate of dropout is a whole number of percent, 0 to 99, not {percent!r}: "
                "at 100 nothing is left to learn from"
            )

    @property
    def compacts(self) -> bool:
        """Whether products shrink: all of a batch lacks the same units."""
        return self.case in (3, 4)

    @property
    def repeats(self) -> bool:
        """Whether the same units are kept at every step."""
        return self.case in (2, 4)

    @property
    def said(self) -> str:
        """In words, of a network's source."""
        what = "non-recurrent and recurrent" if self.recurrent else "non-recurrent"
        return (
            f"dropout {self.percent} % {what}, case {self.case} ({CASES[self.case]}), "
            f"seed {self.seed}"
        )


@dataclass(frozen=True, kw_only=True)
class Site:
    """What one product reads with units dropped: rows of `batch` sequences at each of `steps`.

    name: by which units are drawn; two directions read the same.  recurrent: of its own state.
    """

    dropout: Dropout
    name: str
    steps: int
    batch: int
    units: int
    recurrent: bool

    @cached_property
    def flags(self) -> Flags:
        """Units that are kept: [steps or 1, batch or 1, units], as the case repeats them."""
        steps = 1 if self.dropout.repeats else self.steps
        batch = 1 if self.dropout.compacts else self.batch
        random = np.random.default_rng([self.dropout.seed, zlib.crc32(self.name.encode())])
        return random.random((steps, batch, self.units)) >= self.dropout.percent / 100

    @property
    def mask(self) -> Flags:
        """[steps, batch, units]."""
        return np.broadcast_to(self.flags, (self.steps, self.batch, self.units))

    @property
    def scale(self) -> float:
        """By which a unit that is kept is multiplied."""
        return 1 / (1 - self.dropout.percent / 100)

    @cached_property
    def kept(self) -> tuple[NDArray[np.int64], ...]:
        """Of cases 3 and 4 the units of each step, or of all steps, in ascending order."""
        return tuple(np.flatnonzero(one[0]) for one in self.flags)

    @property
    def elements(self) -> int:
        """Of what is read, dropped ones included."""
        return self.steps * self.batch * self.units

    @property
    def kept_elements(self) -> int:
        """Those of them that are not dropped."""
        return self.elements // self.flags.size * int(np.count_nonzero(self.flags))

    @property
    def density(self) -> float:
        """The share of them, as it was drawn."""
        return self.kept_elements / self.elements


def sites(backward: Backward, dropout: Dropout) -> dict[str, Site]:
    """Of each matrix layer that reads with units dropped, by its name.

    Raises WorkloadError for a network without recurrent layers, and for sequences that end at
    different steps.
    """
    network, found = backward.network, dict[str, Site]()
    if not any(node.operator in CELLS for node in network.flow):
        raise WorkloadError(
            f"{network.name}: dropout is of recurrent layers ({', '.join(CELLS)}), and it has "
            "none; lstm-zaremba-medium has"
        )
    for node in network.flow:
        for layer in backward.matrix(node):
            if node.operator in CELLS:
                one = _of_cell(backward, node, layer, dropout)
            else:
                one = _of_rows(node, layer, dropout) if node.dropout else None
            if one is not None:
                found[layer.name] = one
    return found


def _of_cell(
    backward: Backward, node: Node, layer: Conv2d | MatMul, dropout: Dropout
) -> Site | None:
    assert isinstance(layer, MatMul)
    steps, rest = node.shape[0], layer.m % node.shape[0]
    *_, part = layer.name.split("/")
    if rest or part not in ("input", "steps"):
        raise WorkloadError(
            f"{backward.network.name}: dropout of {node.name} is not defined: its sequences end at "
            "different steps"
        )
    recurrent = part == "steps"
    if recurrent and not dropout.recurrent:
        return None
    name = layer.name if recurrent else f"{node.name}/input"
    return Site(dropout=dropout, name=name, steps=steps, batch=layer.m // steps, units=layer.k,
                recurrent=recurrent)  # fmt: skip


def _of_rows(node: Node, layer: Conv2d | MatMul, dropout: Dropout) -> Site:
    """Of a layer on [steps, batch, units]."""
    if not isinstance(layer, MatMul) or len(node.shape) != 3 or prod(node.shape[:2]) != layer.m:
        raise WorkloadError(f"dropout of {node.name} is not defined: it reads no steps of a batch")
    return Site(dropout=dropout, name=node.name, steps=node.shape[0], batch=node.shape[1],
                units=layer.k, recurrent=False)  # fmt: skip


__all__ = ["CASES", "Dropout", "Flags", "Site", "sites"]
