"""Operands of a training step, drawn: one mask a tensor, the same in every pass that meets it.

A tensor behind a ReLU has the density of an activity, scattered or in clusters as
`workloads.sparse` draws them; where a pooling without overlap lies behind it whose density is known
too, both are met.  The gradient of a tensor is 0 where its value behind a ReLU is, and at all but
the winners of a max pooling; behind a normalisation it is dense.  Weights are dense.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.flow import Node
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, Origin, check_elements, ofmap_shape, operand_shapes
from workloads.pooling import MaxPool
from workloads.quantize import Integers, check_bits, requantize_parameters, storage
from workloads.sparse import sparse_activations
from workloads.training.activity import KEEPS_ZEROS, PASSES_ZEROS, Activity, Supports
from workloads.training.pass_layer import Array, PassLayer, Tensors
from workloads.training.pool_gradient import seen, to_winners, winners
from workloads.training.step import TrainingStep

Flags = NDArray[np.bool_]

HELD = 4
"""Tensors, and masks of gradients, that are kept for the layers that follow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnStep:
    """The operands of a step's layers: called with a layer of `step.network`.

    activity: in place of the step's own.  The same seed gives the same values, in any order of
    asking.  Raises WorkloadError for a layer of another network, and for tensors too large.
    """

    step: TrainingStep
    activity: Activity
    bits: int = 8
    seed: int = 0
    _held: dict[tuple[str, str], Array] = field(
        default_factory=dict[tuple[str, str], Array], repr=False
    )

    origin: ClassVar[Origin] = "drawn"

    def __post_init__(self) -> None:
        check_bits(self.bits)

    def __call__(self, layer: Conv2d | MatMul) -> Operands:
        part = self.step.by_name.get(layer.name)
        if part is None or part.layer != layer:
            raise WorkloadError(f"{layer.name} is no layer of {self.step.network.name}")
        check_elements(layer)
        check_elements(part.of)
        tensors = self._tensors(part)
        ifmap, weight = part.ifmap(tensors), part.weight(tensors)
        found = _operands(layer, ifmap, weight, self._needed(part), self._scheme)
        return replace(found, weight_origin=self.origin, ifmap_origin=self.origin)

    @property
    def _scheme(self) -> str:
        return (
            f"drawn for training, {self.bits} bits, clustering {self.activity.clustering:g}, seed "
            f"{self.seed}; {self.activity.source}"
        )

    @cached_property
    def _supports(self) -> Supports:
        return Supports(self.step.backward, self.activity)

    def _tensors(self, part: PassLayer) -> Tensors:
        x_shape, w_shape = operand_shapes(part.of)
        return Tensors(
            x=self._dropped(part, self._ifmap(part).reshape(x_shape)),
            w=self._dense(f"{part.of.name} w", w_shape),
            dy=None if part.kind == "FP" else self._ofmap_gradient(part.of),
        )

    def _dropped(self, part: PassLayer, x: Integers) -> Integers:
        """x without the units that dropout takes."""
        site = self.step.sites.get(part.of.name)
        return x if site is None else x * site.mask.reshape(x.shape)

    def _ifmap(self, part: PassLayer) -> Integers:
        """x of a forward layer."""
        read = self._read(part)
        if read:
            return self.values(read)
        return self._dense(f"{part.of.name} x", operand_shapes(part.of)[0])

    def _read(self, part: PassLayer) -> str:
        """The tensor that is the layer's ifmap; empty where it is none, or one of several."""
        node = self.step.owner[part.of.name]
        alone = len(self.step.backward.matrix(node)) == len(node.reads) == 1
        if not alone:
            return ""
        made = self.step.backward.nodes.get(node.reads[0])
        same = made is not None and prod(made.shape) == part.of.ifmap_elements
        return node.reads[0] if same else ""

    def _needed(self, part: PassLayer) -> Flags | None:
        """Which outputs of a layer of BP anyone reads."""
        read, site = self._read(part), self.step.sites.get(part.of.name)
        if part.kind == "BP" and site is not None:
            mask = site.mask.reshape(operand_shapes(part.of)[0])
            return None if site.dropout.compacts else part.part(mask)
        if part.kind != "BP" or not read or not self._supports.rectified(read):
            return None
        return part.part((self.values(read) != 0).reshape(operand_shapes(part.of)[0]))

    def _ofmap_gradient(self, layer: Conv2d | MatMul) -> Integers:
        """dy of a forward layer."""
        node, shape = self.step.owner[layer.name], ofmap_shape(layer)
        drawn = self._dense(f"{layer.name} dy", shape)
        dense = node.normalised or len(node.layers) > 1
        return drawn if dense else drawn * self.gradient(node.name).reshape(shape)

    def values(self, tensor: str) -> Integers:
        """Of a tensor of the forward pass that a node makes, in its shape."""
        return self._hold("values", tensor, self._values)

    def gradient(self, tensor: str) -> Flags:
        """Where its gradient may be other than 0."""
        return self._hold("gradient", tensor, self._gradient)

    def _hold(self, what: str, tensor: str, make: Callable[[str], Array]) -> Array:
        key = (what, tensor)
        found = self._held.pop(key, None)
        if found is None:
            found = make(tensor)
        self._held[key] = found
        while len(self._held) > 2 * HELD:
            self._held.pop(next(iter(self._held)))
        return found

    def _values(self, tensor: str) -> Integers:
        node = self.step.backward.nodes[tensor]
        if not self._supports.rectified(tensor):
            return self._dense(tensor, node.shape)
        known = tensor in self.activity.density
        if not known and node.operator == "Concat":
            return np.concatenate([self.values(name) for name in node.reads], axis=1)
        if not known and node.operator == "MaxPool" and node.pool:
            read = self.values(node.reads[0])
            return seen(read, node.pool, np.iinfo(read.dtype).min).max(axis=0)
        if not known and node.operator in KEEPS_ZEROS and self._same_size(node):
            return self.values(node.reads[0]).reshape(node.shape)
        pooled = self._pooled_by(node)
        return self._under(node, pooled) if pooled else self._rectified(node)

    def _same_size(self, node: Node) -> bool:
        return prod(self.step.backward.nodes[node.reads[0]].shape) == prod(node.shape)

    def _rectified(self, node: Node) -> Integers:
        plane = node.shape if len(node.shape) == 4 else (1, prod(node.shape[:-1]), node.shape[-1])
        drawn = sparse_activations(
            plane,
            self._supports.density(node.name),
            clustering=self.activity.clustering,
            bits=self.bits,
            random=self._random(node.name),
            where=node.name,
        )
        return drawn.reshape(node.shape)

    def _pooled_by(self, node: Node) -> Node | None:
        """A max pooling without overlap that alone reads the tensor, of a density of its own."""
        readers = self.step.backward.readers[node.name]
        if len(readers) != 1 or readers[0].name not in self.activity.density:
            return None
        pool = readers[0].pool
        apart = pool is not None and pool.stride == pool.window and pool.pad == (0, 0)
        return readers[0] if apart and readers[0].operator == "MaxPool" else None

    def _under(self, node: Node, pooled: Node) -> Integers:
        """A tensor whose pooling has been drawn: each window with a maximum has it somewhere."""
        assert pooled.pool is not None
        random, top = self._random(node.name), self.values(pooled.name)
        window, shape = pooled.pool.window, node.shape
        won = random.integers(0, prod(window), top.shape)
        first = to_winners(top, won, shape, pooled.pool)
        room = np.repeat(np.repeat(top, window[0], axis=2), window[1], axis=3)
        room = room[:, :, : shape[2], : shape[3]]
        free = np.zeros(shape, storage(self.bits))
        free[:, :, : room.shape[2], : room.shape[3]] = room
        free[first != 0] = 0
        more = round(self._supports.density(node.name) * first.size) - np.count_nonzero(first)
        places = np.flatnonzero(free)
        kept = random.permutation(places)[: max(more, 0)]
        found = first.reshape(-1)
        found[kept] = random.integers(1, free.reshape(-1)[kept], endpoint=True)
        return found.reshape(shape)

    def _gradient(self, tensor: str) -> Flags:
        supports, node = self._supports, self.step.backward.nodes[tensor]
        whole = np.ones(node.shape, np.bool_)
        if supports.rectified(tensor):
            whole = self.values(tensor) != 0
        readers = self.step.backward.readers[tensor]
        if not readers:
            return whole
        passed = np.zeros(node.shape, np.bool_)
        for reader in readers:
            passed |= self._passed(tensor, reader)
        return passed & whole

    def _passed(self, tensor: str, reader: Node) -> Flags:
        """Where a reader passes something back."""
        shape = self.step.backward.nodes[tensor].shape
        if reader.normalised or reader.operator not in PASSES_ZEROS:
            return np.ones(shape, np.bool_)
        found = self.gradient(reader.name)
        if reader.operator == "MaxPool" and isinstance(reader.pool, MaxPool):
            return to_winners(found, winners(self.values(tensor), reader.pool), shape, reader.pool)
        if reader.operator == "Concat":
            sizes = [self.step.backward.nodes[name].shape[1] for name in reader.reads]
            at = reader.reads.index(tensor)
            return found[:, sum(sizes[:at]) : sum(sizes[: at + 1])]
        return found.reshape(shape)

    def _dense(self, name: str, shape: tuple[int, ...]) -> Integers:
        limit, kind = (1 << (self.bits - 1)) - 1, storage(self.bits)
        drawn = self._random(name).integers(-limit, limit, shape, kind)
        drawn += drawn >= 0
        return drawn

    def _random(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])


def _operands(
    layer: Conv2d | MatMul, ifmap: Array, weight: Array, needed: Flags | None, scheme: str
) -> Operands:
    """Contiguous, without bias, scaled so that few outputs saturate."""
    ifmap, weight = np.ascontiguousarray(ifmap), np.ascontiguousarray(weight)
    taps = layer.macs // layer.ofmap_elements
    deviation = sqrt(taps * _mean_square(ifmap) * _mean_square(weight))
    limit = np.iinfo(ifmap.dtype).max
    multiplier, shift = requantize_parameters(
        min(1.0, limit / (3 * deviation)) if deviation else 1.0
    )
    return Operands(
        ifmap=ifmap, weight=weight, bias=None, multiplier=multiplier, shift=shift, scheme=scheme,
        ifmap_scale=1.0, weight_scale=1.0, ofmap_scale=2**shift / multiplier, needed=needed,
    )  # fmt: skip


def _mean_square(x: Array) -> float:
    return float(np.mean(np.square(x, dtype=np.float32))) if x.size else 0.0


__all__ = ["HELD", "DrawnStep"]
