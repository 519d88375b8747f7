"""A training step in NumPy, computed as the layers that machines are given.

Forward tensors, gradients of all of them, gradients of weights: what the passes' layers must give
together, and where captured or own values become operands.  Everything in the type that is given
(float64 for exact comparisons).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from workloads.errors import WorkloadError
from workloads.flow import Node
from workloads.layers import Conv2d, MatMul
from workloads.operands import bias_shape, ofmap_shape, operand_shapes
from workloads.training.pass_layer import Array, PassLayer, Tensors
from workloads.training.pool_gradient import seen, spread, to_winners, winners
from workloads.training.recurrent_values import Direction, directions
from workloads.training.step import TrainingStep
from workloads.training.weight_gradient import windows

EPSILON = 1e-5
"""Added to the variance of a batch normalisation."""


def multiply(layer: Conv2d | MatMul, ifmap: Array, weight: Array) -> Array:
    """A layer's products, summed, in the type of its operands and without bias."""
    if isinstance(layer, MatMul):
        return ifmap @ weight
    groups, filters = layer.groups, layer.filters // layer.groups
    shown = windows(layer, ifmap).reshape(groups, -1, layer.ofmap_elements // layer.filters)
    sums = weight.reshape(groups, filters, -1) @ shown
    shape = (layer.filters, layer.batch, layer.ofmap_height, layer.ofmap_width)
    return sums.reshape(shape).transpose(1, 0, 2, 3)


@dataclass(eq=False)
class Values:
    """Everything of a step, by name: tensors of the forward pass, those before normalisation and
    ReLU behind a matrix layer (`products`), gradients of both, and of weights and biases; what
    recurrent layers keep (`recurrent`)."""

    tensors: dict[str, Array]
    weights: Mapping[str, Array]
    biases: Mapping[str, Array] = field(default_factory=dict[str, Array])
    products: dict[str, Array] = field(default_factory=dict[str, Array])
    gradients: dict[str, Array] = field(default_factory=dict[str, Array])
    product_gradients: dict[str, Array] = field(default_factory=dict[str, Array])
    weight_gradients: dict[str, Array] = field(default_factory=dict[str, Array])
    bias_gradients: dict[str, Array] = field(default_factory=dict[str, Array])
    recurrent: dict[str, tuple[Direction, ...]] = field(
        default_factory=dict[str, tuple["Direction", ...]]
    )


@dataclass(frozen=True)
class Execution:
    """A step with values.  Raises WorkloadError for a node whose values are not computed here."""

    step: TrainingStep
    values: Values

    def forward(self) -> None:
        """All tensors, in order."""
        for node in self.step.backward.network.flow:
            self.values.tensors[node.name] = self._made(node)

    def back(self, gradients: Mapping[str, Array]) -> None:
        """All gradients, from those of the network's ends."""
        self.values.gradients.update(gradients)
        for node in self.step.backward.backwards:
            self._through(node, self.values.gradients[node.name])

    def tensors_of(self, part: PassLayer) -> Tensors:
        """What a pass reads, of values that have been computed."""
        node = self.step.owner[part.of.name]
        return Tensors(
            x=self._shown(node, part.of),
            w=self.values.weights[part.of.name],
            dy=self.values.product_gradients.get(part.of.name),
        )

    def _read(self, node: Node, at: int = 0) -> Array:
        return self.values.tensors[node.reads[at]]

    def _shown(self, node: Node, layer: Conv2d | MatMul) -> Array:
        """What a layer reads, without the units that are dropped."""
        x = self._read(node).reshape(operand_shapes(layer)[0])
        return self._dropped(layer, x)

    def _dropped(self, layer: Conv2d | MatMul, x: Array) -> Array:
        site = self.step.sites.get(layer.name)
        return x if site is None else x * site.mask.reshape(x.shape) * site.scale

    def _made(self, node: Node) -> Array:
        matrix = self.step.backward.matrix(node)
        if node.operator in ("LSTM", "GRU"):
            found = directions(self.step, node, self.values.weights, self.values.biases)
            self.values.recurrent[node.name] = found
            x = self._read(node)
            return np.concatenate([one.forward(x) for one in found], axis=2)
        if len(matrix) > 1 or (matrix and len(node.reads) > 1):
            raise self._unknown(node)
        return self._product(node, matrix[0]) if matrix else self._vector(node)

    def _product(self, node: Node, layer: Conv2d | MatMul) -> Array:
        tensors = Tensors(x=self._shown(node, layer), w=self.values.weights[layer.name])
        made = np.zeros(ofmap_shape(layer), tensors.given("x").dtype)
        for part in self.step.parts("FP", layer):
            part.put(multiply(part.layer, part.ifmap(tensors), part.weight(tensors)), made)
        bias = self.values.biases.get(layer.name)
        if bias is not None:
            made = made + bias.reshape(bias_shape(layer))
        self.values.products[node.name] = made
        if node.normalised:
            made = normalised(made)
        if node.relu:
            made = np.maximum(made, 0)
        return made.reshape(node.shape)

    def _vector(self, node: Node) -> Array:
        x, operator = self._read(node), node.operator
        if operator == "Relu":
            return np.maximum(x, 0)
        if operator == "Clip":
            return np.clip(x, 0, 6)
        if operator == "Add":
            return sum((self.values.tensors[name] for name in node.reads[1:]), x)
        if operator == "Concat":
            return np.concatenate([self.values.tensors[name] for name in node.reads], axis=1)
        if operator == "MaxPool" and node.pool:
            return seen(x, node.pool, -np.inf).max(axis=0)
        if operator == "AveragePool" and node.pool:
            inside = seen(np.ones_like(x), node.pool, 0).sum(axis=0)
            return seen(x, node.pool, 0).sum(axis=0) / inside
        if operator == "GlobalAveragePool":
            return x.mean(axis=(2, 3), keepdims=True)
        if operator == "BatchNormalization":
            return normalised(x)
        if operator == "Reshape":
            return x.reshape(node.shape)
        raise self._unknown(node)

    def _unknown(self, node: Node) -> WorkloadError:
        return WorkloadError(
            f"{self.step.backward.network.name}: values of node {node.name} are not computed here: "
            f"its operator is {node.operator}"
        )

    def _through(self, node: Node, gradient: Array) -> None:
        """A node's gradient to the tensors that it reads."""
        matrix = self.step.backward.matrix(node)
        if node.name in self.values.recurrent:
            self._through_time(node, gradient)
            return
        if matrix:
            self._through_product(node, matrix[0], gradient)
            return
        for at, name in enumerate(node.reads):
            if name in self.step.backward.learning:
                self._add(name, self._passed(node, at, gradient))

    def _through_product(self, node: Node, layer: Conv2d | MatMul, gradient: Array) -> None:
        if node.relu:
            gradient = gradient * (self.values.tensors[node.name] > 0)
        gradient = gradient.reshape(ofmap_shape(layer))
        if node.normalised:
            gradient = normalisation_gradient(self.values.products[node.name], gradient)
        self.values.product_gradients[layer.name] = gradient
        if layer.name in self.values.biases:
            axes = (0, 1) if isinstance(layer, MatMul) else (0, 2, 3)
            self.values.bias_gradients[layer.name] = gradient.sum(axis=axes)
        back: Array | None = None
        for part in self.step.of(node):
            tensors = self.tensors_of(part)
            ofmap = multiply(part.layer, part.ifmap(tensors), part.weight(tensors))
            if part.kind == "WG":
                weight = self.values.weights[layer.name]
                known = self.values.weight_gradients
                part.put(ofmap, known.setdefault(layer.name, np.zeros_like(weight)))
                continue
            back = np.zeros(operand_shapes(layer)[0], gradient.dtype) if back is None else back
            part.put(ofmap, back)
        if back is not None:
            back = self._dropped(layer, back)
            self._add(node.reads[0], back.reshape(self._read(node).shape))

    def _through_time(self, node: Node, gradient: Array) -> None:
        """A recurrent layer's gradients, direction by direction."""
        found = self.values.recurrent[node.name]
        back: Array | None = None
        for one, part in zip(found, np.split(gradient, len(found), axis=2), strict=True):
            given = one.back(part)
            back = given if back is None else back + given
            for product in (one.input, one.state):
                name = product.layer.name
                self.values.weight_gradients[name] = product.dw
                if product.b is not None:
                    self.values.bias_gradients[name] = product.dy.sum(axis=(0, 1))
        if back is not None and self.step.backward.wanted(node):
            self._add(node.reads[0], back)

    def _passed(self, node: Node, at: int, gradient: Array) -> Array:
        x, operator = self._read(node, at), node.operator
        if operator == "Relu":
            return gradient * (x > 0)
        if operator == "Clip":
            return gradient * ((x >= 0) & (x <= 6))
        if operator == "Concat":
            sizes = [self.values.tensors[name].shape[1] for name in node.reads]
            return gradient[:, sum(sizes[:at]) : sum(sizes[: at + 1])]
        if operator == "MaxPool" and node.pool:
            return to_winners(gradient, winners(x, node.pool), x.shape, node.pool)
        if operator == "AveragePool" and node.pool:
            inside = seen(np.ones_like(x), node.pool, 0).sum(axis=0)
            return spread(gradient / inside, x.shape, node.pool)
        if operator == "GlobalAveragePool":
            return np.broadcast_to(gradient / prod(x.shape[2:]), x.shape)
        if operator == "BatchNormalization":
            return normalisation_gradient(x, gradient)
        return gradient.reshape(x.shape)

    def _add(self, name: str, gradient: Array) -> None:
        known = self.values.gradients.get(name)
        self.values.gradients[name] = gradient if known is None else known + gradient


def normalised(x: Array) -> Array:
    """Batch normalisation of [N, C, …] by the batch's own mean and variance, scale 1, shift 0."""
    axes = (0, *range(2, x.ndim))
    mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + EPSILON)


def normalisation_gradient(x: Array, gradient: Array) -> Array:
    """dx = (dy − mean(dy) − x̂ · mean(dy · x̂)) / σ."""
    axes = (0, *range(2, x.ndim))
    deviation = np.sqrt(x.var(axis=axes, keepdims=True) + EPSILON)
    scaled = normalised(x)
    mean = gradient.mean(axis=axes, keepdims=True)
    along = (gradient * scaled).mean(axis=axes, keepdims=True)
    return (gradient - mean - scaled * along) / deviation


__all__ = [
    "EPSILON",
    "Execution",
    "Values",
    "multiply",
    "normalisation_gradient",
    "normalised",
]
