"""Training steps of a network whose flow is known, by PyTorch, with the zeros that occur in them.

Weights begin as He et al.'s, normalisations at scale 1 and shift 0; the descent is stochastic, with
momentum.  A network ends in a Softmax, whose cross-entropy with the labels is the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from training.gradients import torch_module
from workloads.errors import WorkloadError
from workloads.flow import INPUT, Node
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import ofmap_shape, operand_shapes
from workloads.training.backward import Backward
from workloads.training.captured import ifmaps_of

Flags = npt.NDArray[np.bool_]

MOMENTUM = 0.9


class Masks(NamedTuple):
    """Of a step, in the shapes of the layers: ifmaps by tensor, gradients of products by layer."""

    tensors: dict[str, Flags]
    gradients: dict[str, Flags]


class FlowStep:
    """A network's weights, and steps that change them.

    network: forward, of any batch; seed: of the first weights; threads: PyTorch's, with one of them
    the same arguments give the same bits on one machine.  Raises WorkloadError for an operator that
    is not computed here, InputError where PyTorch is not installed.
    """

    def __init__(self, network: Network, *, seed: int, rate: float, threads: int = 1) -> None:
        self.network = network
        self._torch = torch_module()
        self._torch.set_num_threads(threads)
        self._backward = Backward(network)
        for node in network.flow:
            self._require_known(node)
        last = network.flow[-1]
        if last.operator != "Softmax":
            raise WorkloadError(f"{network.name} ends in {last.operator}, not in a Softmax")
        self._leaves = self._begin(np.random.Generator(np.random.Philox(key=[seed, 1])))
        self._descent = self._torch.optim.SGD(self._leaves.values(), lr=rate, momentum=MOMENTUM)
        self._made: dict[str, Any] = {}
        self._products: dict[str, Any] = {}

    def _require_known(self, node: Node) -> None:
        products = self._backward.matrix(node)
        known = node.operator in _COMPUTED and len(products) <= 1 and len(node.reads) > 0
        if not known or (products and len(node.reads) != 1):
            raise WorkloadError(
                f"{self.network.name}: node {node.name} ({node.operator}) is not among what is "
                f"trained for captures: {', '.join(sorted(_COMPUTED))}"
            )

    def _begin(self, draws: np.random.Generator) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for node in self.network.flow:
            for layer in self._backward.matrix(node):
                shape = operand_shapes(layer)[1]
                if isinstance(layer, MatMul):
                    shape = (layer.n, layer.k)
                spread = sqrt(2 / prod(shape[1:]))
                weight = (spread * draws.standard_normal(shape)).astype(np.float32)
                found[f"{node.name}.weight"] = self._leaf(weight)
                if node.normalised:
                    found[f"{node.name}.scale"] = self._leaf(np.ones(shape[0], np.float32))
                found[f"{node.name}.bias"] = self._leaf(np.zeros(shape[0], np.float32))
        return found

    def _leaf(self, values: npt.NDArray[np.float32]) -> Any:
        return self._torch.from_numpy(values).requires_grad_()

    def step(
        self, pictures: npt.NDArray[np.float32], labels: npt.NDArray[Any]
    ) -> tuple[float, float]:
        """One step on pictures [n, colours, height, width]: loss in nats, share classified right.

        The weights are changed, and what `masks` reads is kept.
        """
        torch = self._torch
        self._descent.zero_grad()
        self._products = {}
        self._made = {INPUT: torch.from_numpy(pictures)}
        for node in self.network.flow[:-1]:
            self._made[node.name] = self._compute(node)
        logits = self._made[self.network.flow[-1].reads[0]].flatten(1)
        wanted = torch.from_numpy(np.asarray(labels, np.int64))
        loss = torch.nn.functional.cross_entropy(logits, wanted)
        loss.backward()
        self._descent.step()
        right = (logits.detach().argmax(dim=1) == wanted).float().mean()
        return float(loss.detach()), float(right)

    def masks(self, batch: int) -> Masks:
        """Of the first `batch` pictures of the last step; what has no zeros is left out."""
        tensors: dict[str, Flags] = {}
        gradients: dict[str, Flags] = {}
        for name, layer in ifmaps_of(self.network):
            _keep(tensors, name, self._made[name].detach()[:batch], operand_shapes(layer)[0])
        for layer in self.network.matrix_layers:
            product = self._products[layer.name]
            _keep(gradients, layer.name, product.grad[:batch], ofmap_shape(layer))
        return Masks(tensors, gradients)

    def _compute(self, node: Node) -> Any:
        functional = self._torch.nn.functional
        matrix = self._backward.matrix(node)
        made = self._product(node, matrix[0]) if matrix else self._vector(node)
        return functional.relu(made) if node.relu else made

    def _product(self, node: Node, layer: Conv2d | MatMul) -> Any:
        functional, x = self._torch.nn.functional, self._made[node.reads[0]]
        weight, bias = self._leaves[f"{node.name}.weight"], self._leaves[f"{node.name}.bias"]
        own = None if node.normalised else bias
        if isinstance(layer, MatMul):
            made = functional.linear(x.flatten(1), weight, own)
        else:
            stride = (layer.stride_height, layer.stride_width)
            dilation = (layer.dilation_height, layer.dilation_width)
            sides = (layer.pad_left, layer.pad_right, layer.pad_top, layer.pad_bottom)
            x = functional.pad(x, sides) if any(sides) else x
            made = functional.conv2d(x, weight, own, stride, 0, dilation, layer.groups)
        made.retain_grad()
        self._products[layer.name] = made
        if not node.normalised:
            return made
        scale = self._leaves[f"{node.name}.scale"]
        return functional.batch_norm(made, None, None, scale, bias, training=True)

    def _vector(self, node: Node) -> Any:
        return _COMPUTED[node.operator](self._torch, node, [self._made[one] for one in node.reads])


def _keep(held: dict[str, Flags], name: str, values: Any, shape: tuple[int, ...]) -> None:
    flags = (values != 0).numpy().reshape(shape)
    if not flags.all():
        held[name] = flags


def _pooled(torch: Any, node: Node, x: list[Any]) -> Any:
    pool, functional = node.pool, torch.nn.functional
    assert pool is not None
    settings = {"stride": pool.stride, "padding": pool.pad, "ceil_mode": pool.ceil}
    if node.operator == "MaxPool":
        return functional.max_pool2d(x[0], pool.window, **settings)
    return functional.avg_pool2d(x[0], pool.window, **settings, count_include_pad=False)


def _added(torch: Any, node: Node, x: list[Any]) -> Any:
    return sum(x[1:], x[0])


_COMPUTED: Mapping[str, Any] = {
    "Conv": None,
    "Gemm": None,
    "MaxPool": _pooled,
    "AveragePool": _pooled,
    "Add": _added,
    "Concat": lambda torch, node, x: torch.cat(x, dim=1),
    "Relu": lambda torch, node, x: torch.relu(x[0]),
    "Clip": lambda torch, node, x: x[0].clamp(0, 6),
    "GlobalAveragePool": lambda torch, node, x: x[0].mean(dim=(2, 3), keepdim=True),
    "Dropout": lambda torch, node, x: x[0],
    "Reshape": lambda torch, node, x: x[0].reshape(-1, *node.shape[1:]),
    "Softmax": None,
}
"""Operators, and what computes those that are not products (the last is part of the loss)."""

__all__ = ["MOMENTUM", "FlowStep", "Masks"]
