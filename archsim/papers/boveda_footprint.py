"""What Boveda and other codecs take for the tensors of a network, in per cent of containers.

Groups of 16 along the channels; units, and with them padding, are those of
`archsim.codecs.boveda`.  Of a layer with fewer channels than a group most of each group is zeros:
it is counted as it is, with its stride folded into channels, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from archsim.codecs.boveda import BovedaFormat, Footprint, footprint
from archsim.codecs.reference_codecs import CODECS
from archsim.compression import Kind
from archsim.papers.boveda_schemes import Scheme
from archsim.papers.boveda_tensors import Name, RealTensor, fold_stride, real_tensors

GROUP = 16

OTHERS = ("shapeshifter", "per-layer", "zero-run", "entropy")
"""The codecs beside Boveda, as `archsim.codecs.reference_codecs` describes them."""

First = Literal["as it is", "folded", "without"]
"""What becomes of a layer with fewer channels than a group."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A tensor's bits: of its containers, of Boveda, and of the other codecs.

    first: whether it is of a layer with fewer channels than a group.
    """

    layer: str
    kind: Kind
    first: bool
    raw_bits: int
    boveda: Footprint
    others: dict[str, int]

    def record(self) -> dict[str, Any]:
        """As plain data; codecs in per cent of the containers."""
        percent = {"boveda": self.boveda.total_bits} | self.others
        return {
            "layer": self.layer,
            "tensor": self.kind,
            "values": self.boveda.values,
            "percent": {name: 100 * bits / self.raw_bits for name, bits in percent.items()},
            "boveda_bits": vars(self.boveda),
        }


@cache
def counted(name: Name, scheme: Scheme, *, pruned: bool, folded: bool) -> tuple[Counted, ...]:
    """All tensors of a network, in the order of its layers."""
    tensors = real_tensors(name, pruned=pruned)
    narrow = {one.layer for one in tensors if one.values.shape[-1] < GROUP}
    return tuple(
        _count(one, scheme, first=one.layer in narrow, folded=folded and one.layer in narrow)
        for one in tensors
    )


def _count(tensor: RealTensor, scheme: Scheme, *, first: bool, folded: bool) -> Counted:
    stored = fold_stride(tensor) if folded else tensor
    values, axes = scheme.integers(stored), tensor.aligned_axes
    form = BovedaFormat(group=GROUP, container_bits=scheme.bits, signed=tensor.signed)
    return Counted(
        layer=tensor.layer,
        kind=tensor.kind,
        first=first,
        raw_bits=tensor.values.size * scheme.bits,
        boveda=footprint(values, form, aligned_axes=axes),
        others={
            codec: CODECS[codec].bits(values, scheme.bits, tensor.signed, axes, GROUP)
            for codec in OTHERS
        },
    )


@dataclass(frozen=True, kw_only=True)
class Share:
    """Tensors together, in per cent of their containers.

    boveda: all bits.  bare: without widths and pointers.  padding: of boveda, the rest of units'
    last rows.  others: by codec.
    """

    boveda: float
    bare: float
    padding: float
    others: dict[str, float]


def share(tensors: Sequence[Counted]) -> Share:
    """Of at least one tensor."""
    raw = sum(one.raw_bits for one in tensors)
    own = tensors[0].boveda
    for one in tensors[1:]:
        own += one.boveda
    bare = replace(own, metadata_bits=0, pointer_bits=0)
    return Share(
        boveda=100 * own.total_bits / raw,
        bare=100 * bare.total_bits / raw,
        padding=100 * own.padding_bits / raw,
        others={codec: 100 * sum(one.others[codec] for one in tensors) / raw for codec in OTHERS},
    )


def chosen(
    name: Name, scheme: Scheme, *, pruned: bool = False, kind: Kind | None = None, first: First
) -> Share:
    """The share of a network's tensors of one kind, or of both."""
    tensors = counted(name, scheme, pruned=pruned, folded=first == "folded")
    kept = [
        one
        for one in tensors
        if kind in (None, one.kind) and not (first == "without" and one.first)
    ]
    return share(kept)


__all__ = ["GROUP", "OTHERS", "Counted", "First", "Share", "chosen", "counted", "share"]
