"""Products without the units that a whole batch lacks: those of one step, or of all where the same
units are kept at every step.

With D the units kept, of a product y [M, N] = x [M, K] · w [K, N]:

    FP   y  = x[:, D] · w[D]          K shrinks to |D|
    BP   dx[:, D] = dy · w[D]ᵀ        the columns of the output shrink to |D|
    WG   dw[D] += x[:, D]ᵀ · dy       the rows of the output shrink to |D|; steps are added up

A step that keeps no unit has no product.  The product of FP says which units it keeps of a row
(`MatMul.kept`), for machines that gather them; to others its rows have the kept units alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workloads.kept_units import KeptUnits
from workloads.layers import Conv2d, MatMul, VectorWork
from workloads.training.dropout import Site
from workloads.training.pass_layer import Array, Pass, PassLayer, Tensors, swapped
from workloads.training.rules import vector


@dataclass(frozen=True, kw_only=True)
class Compacted(PassLayer):
    """rows: of the step, of all steps' rows.  kept: units, in ascending order."""

    of: MatMul
    layer: MatMul
    rows: slice
    kept: NDArray[np.int64] = field(repr=False, compare=False)

    @property
    def of_all_steps(self) -> bool:
        """Whether its rows are those of every step."""
        return self.rows == slice(0, self.of.m)

    def _read(self, tensors: Tensors) -> Array:
        """x[:, D]."""
        return tensors.given("x")[:, self.rows][:, :, self.kept]


@dataclass(frozen=True, kw_only=True)
class CompactedForward(Compacted):
    """y = x[:, D] · w[D]."""

    def ifmap(self, tensors: Tensors) -> Array:
        return self._read(tensors)

    def weight(self, tensors: Tensors) -> Array:
        return tensors.given("w")[:, self.kept]

    def part(self, gradient: Array) -> Array:
        return gradient[:, self.rows]

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[:, self.rows] = ofmap


@dataclass(frozen=True, kw_only=True)
class CompactedInput(Compacted):
    """dx[:, D] = dy · w[D]ᵀ."""

    def ifmap(self, tensors: Tensors) -> Array:
        return tensors.given("dy")[:, self.rows]

    def weight(self, tensors: Tensors) -> Array:
        return swapped(tensors.given("w")[:, self.kept])

    def part(self, gradient: Array) -> Array:
        return gradient[:, self.rows][:, :, self.kept]

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[:, self.rows, self.kept] = ofmap


@dataclass(frozen=True, kw_only=True)
class CompactedWeight(Compacted):
    """dw[D] += x[:, D]ᵀ · dy: what `put` is given is added to what other steps gave."""

    def ifmap(self, tensors: Tensors) -> Array:
        return swapped(self._read(tensors))

    def weight(self, tensors: Tensors) -> Array:
        return tensors.given("dy")[:, self.rows]

    def part(self, gradient: Array) -> Array:
        return gradient[:, self.kept]

    def put(self, ofmap: Array, gradient: Array) -> None:
        gradient[:, self.kept] += ofmap


def compacted(layer: MatMul, site: Site, kind: Pass) -> tuple[Compacted, ...]:
    """A pass of a layer.  Case 3: LAYER/0, LAYER/BP0, LAYER/WG0, …, one a step, in the order of
    time, of BP and WG backwards; case 4: one, of all steps."""
    if site.dropout.repeats:
        whole = slice(0, layer.m)
        return _made(layer, kind, [("", whole, site.kept[0], layer.steps)])
    rows = site.batch
    parts = [(str(t), slice(t * rows, (t + 1) * rows), kept, 1)
             for t, kept in enumerate(site.kept)]  # fmt: skip
    return _made(layer, kind, parts if kind == "FP" else parts[::-1])


def _of_rows(layer: MatMul, kept: NDArray[np.int64]) -> KeptUnits | None:
    """What a machine that gathers is told; None where rows are read as they lie."""
    return None if len(kept) == layer.k else KeptUnits.of(layer.k, kept.tolist())


def _made(
    layer: MatMul, kind: Pass, parts: list[tuple[str, slice, NDArray[np.int64], int]]
) -> tuple[Compacted, ...]:
    found: list[Compacted] = []
    for number, rows, kept, steps in parts:
        if not len(kept):
            continue
        height, units, width = rows.stop - rows.start, len(kept), layer.n
        known = found[0].layer.name if found else ""
        if kind == "FP":
            name = f"{layer.name}/{number}" if number else layer.name
            product = MatMul(name=name, m=height, n=width, k=units, steps=steps,
                             weight_of=layer.weight_of or known,
                             kept=_of_rows(layer, kept))  # fmt: skip
            found.append(CompactedForward(kind=kind, of=layer, layer=product, rows=rows, kept=kept))
        elif kind == "BP":
            product = MatMul(name=f"{layer.name}/BP{number}", m=height, n=units, k=width,
                             steps=steps, weight_of=layer.name)  # fmt: skip
            found.append(CompactedInput(kind=kind, of=layer, layer=product, rows=rows, kept=kept))
        else:
            product = MatMul(name=f"{layer.name}/WG{number}", m=units, n=width, k=height,
                             shared_weight=False)  # fmt: skip
            found.append(CompactedWeight(kind=kind, of=layer, layer=product, rows=rows, kept=kept))
    return tuple(found)


def dropping(name: str, site: Site, kind: Pass) -> VectorWork:
    """What dropping takes: each element that is kept is multiplied by the scale.

    Cases 3 and 4 make what is kept of a whole row (`docs/contracts/gather.md`); 1 and 2 write the
    zeros too.
    """
    kept = site.kept_elements
    made = kept if site.dropout.compacts else site.elements
    if kind == "FP":
        return vector(f"{name}/dropout", "Dropout", site.elements, made, kept)
    return vector(f"{name}/BP_dropout", "DropoutGrad", made, site.elements, kept)


def added_up(layer: Conv2d | MatMul, parts: tuple[PassLayer, ...]) -> Iterator[VectorWork]:
    """The additions of the steps' gradients of a weight; nothing where one layer makes it."""
    if len(parts) > 1:
        made = sum(one.layer.ofmap_elements for one in parts)
        whole = layer.weight_elements
        yield vector(f"{layer.name}/WG_sum", "Add", made, whole, max(made - whole, 0))


__all__ = ["Compacted", "added_up", "compacted", "dropping"]
