"""The tensors of a network, or an array, and the bits that each codec takes for them.

Weights are [K, R, S, C], units the K filters; activations [N, H, W, C], units the bricks of
C channels.  Of a matrix product weights are [b, N, K] and activations [b, M, K], units the lines of
K.  Activations are those that a layer reads: a tensor that two layers read counts twice.  A second
operand that is computed itself (attention) counts as activations; a weight that is used again
counts once.  Weights have a sign; activations without negative values are stored without one.

Drawn values stand for those of networks of which there are only shapes: normal, 3 sigma at the
largest value, scattered zeros; where the network has a ReLU, activations behind the first layer
are their magnitudes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from archsim.codecs.boveda import BovedaFormat, Footprint, footprint
from archsim.codecs.known import codecs
from workloads.layers import Conv2d, MatMul, Network, VectorWork
from workloads.operands import Operands, synthetic
from workloads.threads import in_threads

Kind = Literal["weights", "activations"]
KINDS: tuple[Kind, ...] = ("weights", "activations")


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredTensor:
    """Integers [..., channels] to be stored; the first aligned_axes axes number the units.

    origin: whether they are of a real network, or drawn.
    """

    layer: str
    kind: Kind
    values: npt.NDArray[np.signedinteger[Any]]
    aligned_axes: int
    signed: bool
    origin: Literal["real", "drawn"]


@dataclass(frozen=True, kw_only=True)
class TensorBits:
    """What a tensor takes: bits by codec; `boveda` is that of the format asked for."""

    layer: str
    kind: Kind
    shape: tuple[int, ...]
    signed: bool
    origin: str
    bits: dict[str, int]
    boveda: Footprint

    @property
    def values(self) -> int:
        return self.boveda.values

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "values": self.values}


def drawn(
    network: Network,
    *,
    bits: int,
    density: float = 1.0,
    distribution: Literal["uniform", "normal"] = "normal",
    seed: int = 0,
    only: Container[str] | None = None,
) -> Iterator[StoredTensor]:
    """Tensors of all layers, or of `only` some, one layer at a time (module docstring).

    Raises WorkloadError for a density outside 0 to 1.
    """
    positive = has_relu(network)
    for number, layer in enumerate(network.matrix_layers):
        if only is not None and layer.name not in only:
            continue
        operands = synthetic(
            layer, bits=bits, density=density, distribution=distribution, seed=seed
        )
        if number and positive:
            operands = replace(operands, ifmap=np.abs(operands.ifmap))
        yield from tensors_of(layer, operands, "drawn")


def has_relu(network: Network) -> bool:
    """Whether a layer is followed by a ReLU, fused or not."""
    return any(
        layer.operator == "Relu" if isinstance(layer, VectorWork) else layer.relu
        for layer in network.layers
    )


def tensors_of(
    layer: Conv2d | MatMul, operands: Operands, origin: Literal["real", "drawn"]
) -> list[StoredTensor]:
    """Weights and activations of a layer."""
    weight, ifmap = operands.weight, operands.ifmap
    if isinstance(layer, Conv2d):
        weight, ifmap, axes = weight.transpose(0, 2, 3, 1), ifmap.transpose(0, 2, 3, 1), (1, 3)
    else:
        weight, axes = weight.transpose(0, 2, 1), (2, 2)
    computed = isinstance(layer, MatMul) and not layer.shared_weight
    stored = partial(StoredTensor, layer=layer.name, origin=origin)
    found: list[StoredTensor] = []
    if not (isinstance(layer, MatMul) and layer.weight_of):
        found.append(
            stored(
                kind="activations" if computed else "weights",
                values=np.ascontiguousarray(weight),
                aligned_axes=axes[0],
                signed=not computed or bool((weight < 0).any()),
            )
        )
    found.append(
        stored(
            kind="activations",
            values=np.ascontiguousarray(ifmap),
            aligned_axes=axes[1],
            signed=bool((ifmap < 0).any()),
        )
    )
    return found


def measure(tensor: StoredTensor, form: BovedaFormat) -> TensorBits:
    """Bits of every codec; `form` is taken with the sign of the tensor.

    Raises InputError for values that do not fit.
    """
    values, axes = tensor.values, tensor.aligned_axes
    own = footprint(values, replace(form, signed=tensor.signed), aligned_axes=axes)
    known = codecs()
    names = [name for name in known if name != "boveda"]

    def count(name: str) -> int:
        given = values, form.container_bits, tensor.signed, axes, form.group
        return known[name].bits(*given)

    bits = dict(zip(names, in_threads(count, names), strict=True))
    counted = {name: own.total_bits if name == "boveda" else bits[name] for name in known}
    return TensorBits(
        layer=tensor.layer,
        kind=tensor.kind,
        shape=values.shape,
        signed=tensor.signed,
        origin=tensor.origin,
        bits=counted,
        boveda=own,
    )


@dataclass(frozen=True, kw_only=True)
class Total:
    """Tensors together: how many values, bits by codec, and Boveda's by kind."""

    values: int
    bits: dict[str, int]
    boveda: Footprint

    def bits_per_value(self, codec: str) -> float:
        return self.bits[codec] / self.values

    def of_raw(self, codec: str) -> float:
        """Bits over those of the containers as they are."""
        return self.bits[codec] / self.bits["raw"]

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def total(tensors: Sequence[TensorBits]) -> Total:
    """Of at least one tensor."""
    own = tensors[0].boveda
    for tensor in tensors[1:]:
        own += tensor.boveda
    bits = {name: sum(tensor.bits[name] for tensor in tensors) for name in tensors[0].bits}
    return Total(values=own.values, bits=bits, boveda=own)


def totals(tensors: Sequence[TensorBits]) -> dict[str, Total]:
    """By kind, as far as there are such, and of all if there is more than one kind."""
    by_kind = {kind: [one for one in tensors if one.kind == kind] for kind in KINDS}
    found: dict[str, Total] = {kind: total(some) for kind, some in by_kind.items() if some}
    return found if len(found) == 1 else {**found, "total": total(tensors)}
