"""Operands of a training step whose zeros are those of a real one.

    tensors     of each ifmap of a matrix layer, by the tensor's name, where its values are not 0
    gradients   of each matrix layer, by its name, where the gradient of its products is not 0

What is in neither is dense.  Values at these places are drawn, as masks alone decide what a machine
can skip; weights are dense.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import Origin, ofmap_shape, operand_shapes
from workloads.quantize import Integers
from workloads.training.activity import Activity, Supports
from workloads.training.backward import Backward
from workloads.training.drawn import DrawnStep
from workloads.training.pass_layer import PassLayer
from workloads.training.step import TrainingStep

Flags = NDArray[np.bool_]


def network_digest(network: Network) -> str:
    """Of a forward network's layers and what its operators read: 64 hexadecimal digits."""
    return hashlib.sha256(repr((network.layers, network.flow)).encode()).hexdigest()


def ifmaps_of(network: Network) -> Iterator[tuple[str, Conv2d | MatMul]]:
    """Tensors that are the one operand of one matrix layer, with a layer that reads each."""
    backward, seen = Backward(network), set[str]()
    for node in network.flow:
        matrix = backward.matrix(node)
        if len(matrix) == len(node.reads) == 1 and node.reads[0] not in seen:
            seen.add(node.reads[0])
            yield node.reads[0], matrix[0]


@dataclass(frozen=True, kw_only=True)
class Capture:
    """A step's masks.  network, digest: of the forward network; source: how they came about.

    tensors: in the shapes of the ifmaps, gradients: of the ofmaps; of one only those with zeros.
    """

    network: str
    digest: str
    source: str
    tensors: Mapping[str, Flags] = field(hash=False)
    gradients: Mapping[str, Flags] = field(hash=False)

    def check(self, network: Network) -> None:
        """Raise WorkloadError unless the masks are of this forward network's step, and of its
        shapes."""
        if self.digest != network_digest(network):
            batch = next((one.batch for one in network.matrix_layers), 0)
            raise WorkloadError(
                f"the capture is of {self.network}, which is another network, or of another "
                f"batch, than {network.name} with batch {batch}"
            )
        shapes = {name: operand_shapes(layer)[0] for name, layer in ifmaps_of(network)}
        made = {one.name: ofmap_shape(one) for one in network.matrix_layers}
        for what, masks, known in (("tensor", self.tensors, shapes),
                                   ("gradient", self.gradients, made)):  # fmt: skip
            for name, mask in masks.items():
                if name not in known:
                    raise WorkloadError(f"{network.name} has no {what} {name[:60]!r} to capture")
                if mask.shape != known[name] or mask.dtype != np.bool_:
                    raise WorkloadError(
                        f"the mask of {what} {name} must be flags of {known[name]}, not "
                        f"{mask.dtype} of {mask.shape}"
                    )

    def activity(self, step: TrainingStep) -> Activity:
        """The densities of tensors behind a ReLU."""
        nothing = Supports(step.backward, Activity(density={}, source=""))
        density = {
            name: float(np.mean(self.tensors[name])) if name in self.tensors else 1.0
            for name, _ in ifmaps_of(step.backward.network)
            if nothing.rectified(name)
        }
        return Activity(density=density, source=self.source)


@dataclass(frozen=True, kw_only=True, eq=False)
class CapturedStep(DrawnStep):
    """The operands of a step's layers with the zeros of a capture."""

    capture: Capture

    origin: ClassVar[Origin] = "given"
    """Where the zeros are from; what lies between decides nothing."""

    @property
    def _scheme(self) -> str:
        return f"{self.bits} bits at captured places, seed {self.seed}; {self.capture.source}"

    def _ifmap(self, part: PassLayer) -> Integers:
        node, shape = self.step.owner[part.of.name], operand_shapes(part.of)[0]
        one = len(self.step.backward.matrix(node)) == len(node.reads) == 1
        read = node.reads[0] if one else ""
        made = read in self.step.backward.nodes
        if made and prod(self.step.backward.nodes[read].shape) == prod(shape):
            return self.values(read)
        return self._masked(f"{part.of.name} x", shape, self.capture.tensors.get(read))

    def _values(self, tensor: str) -> Integers:
        shape = self.step.backward.nodes[tensor].shape
        drawn = self._masked(tensor, shape, self.capture.tensors.get(tensor))
        return np.abs(drawn) if self._supports.rectified(tensor) else drawn

    def _ofmap_gradient(self, layer: Conv2d | MatMul) -> Integers:
        mask = self.capture.gradients.get(layer.name)
        return self._masked(f"{layer.name} dy", ofmap_shape(layer), mask)

    def _masked(self, name: str, shape: tuple[int, ...], mask: Flags | None) -> Integers:
        drawn = self._dense(name, shape)
        return drawn if mask is None else drawn * mask.reshape(shape)


def known_step(step: TrainingStep, capture: Capture) -> TrainingStep:
    """The step with the capture's densities.  Raises WorkloadError as `Capture.check`."""
    capture.check(step.backward.network)
    return replace(step, activity=capture.activity(step))


__all__ = ["Capture", "CapturedStep", "ifmaps_of", "known_step", "network_digest"]
