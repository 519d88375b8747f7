"""One training step of a network: forward, gradients of activations and of weights, update.

    training_passes(network)   the matrix layers of the three passes, as `PassLayer`s
    training_network(network)  the whole step as a network, that any machine is given

The order is that of the computation: forward; then from the last node back, what it does to its
gradient, WG, BP; then the optimiser, stochastic gradient descent with momentum and weight decay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

from workloads.flow import Node
from workloads.layers import Conv2d, Layer, MatMul, Network, VectorWork
from workloads.sparsity import Densities
from workloads.training.activity import Activity, Supports
from workloads.training.backward import Backward
from workloads.training.compacted import added_up, dropping
from workloads.training.dropout import Dropout, Site, sites
from workloads.training.kept import kept_values
from workloads.training.parts import pass_layers
from workloads.training.pass_layer import Pass, PassLayer
from workloads.training.rules import NORMALISATION_FORWARD, PER_ELEMENT, operations, vector
from workloads.training.weight_gradient import Form
from workloads.training_record import Training

UPDATE_OPERATIONS = 6
"""For each trained value, with momentum μ, rate η and decay λ: v ← μ v + (g + λ w); w ← w − η v."""

OPTIMISER_COPIES = 1
"""v."""

SCALED = {"BatchNormalization": (2, 1), "LayerNormalization": (2, -1), "RMSNormalization": (1, -1)}
"""Trained values for each place along an axis."""


@dataclass(frozen=True)
class TrainingStep:
    """A network's step.  form: of WG (`weight_gradient`); activity: None where no zeros are known;
    dropout: of its recurrent layers, None where nothing is dropped.

    Raises WorkloadError for an activity of tensors of another network.
    """

    backward: Backward
    form: Form = "product"
    activity: Activity | None = None
    dropout: Dropout | None = None

    @cached_property
    def by_name(self) -> dict[str, PassLayer]:
        """The matrix layers of the passes."""
        return {one.layer.name: one for one in self.passes}

    @cached_property
    def owner(self) -> dict[str, Node]:
        """The node that each forward layer computes."""
        return {name: node for node in self.backward.network.flow for name in node.layers}

    @cached_property
    def densities(self) -> dict[str, Densities]:
        """Of the matrix layers of the passes; nothing where no zeros are known."""
        found = dict[str, Densities]()
        if self.activity is not None:
            supports = Supports(self.backward, self.activity)
            found = {one.layer.name: supports.of(one) for one in self.passes}
        for one in self.passes:
            site = self.sites.get(one.of.name)
            if site is not None and not site.dropout.compacts:
                share = site.density
                back = one.kind == "BP"
                found[one.layer.name] = Densities(output=share) if back else Densities(ifmap=share)
        return found

    @cached_property
    def sites(self) -> dict[str, Site]:
        """What forward layers read with units dropped, by the layer's name.  Raises WorkloadError
        as `workloads.training.dropout.sites`."""
        return {} if self.dropout is None else sites(self.backward, self.dropout)

    def parts(self, kind: Pass, layer: Conv2d | MatMul) -> tuple[PassLayer, ...]:
        """The layers of a pass of a forward layer."""
        return pass_layers(kind, layer, self.sites.get(layer.name), self.form)

    @cached_property
    def passes(self) -> tuple[PassLayer, ...]:
        """Matrix layers, in the order of their computation."""
        network = self.backward.network
        forward = (part for one in network.matrix_layers for part in self.parts("FP", one))
        back = (one for node in self.backward.backwards for one in self.of(node))
        return (*forward, *back)

    def of(self, node: Node) -> tuple[PassLayer, ...]:
        """WG and BP of a node's matrix layers."""
        found: list[PassLayer] = []
        for layer in reversed(self.backward.matrix(node)):
            second = isinstance(layer, MatMul) and not layer.shared_weight
            if self.backward.trains(node) or second:
                found.extend(self.parts("WG", layer))
            if self._wants_input(node, layer):
                found.extend(self.parts("BP", layer))
        return tuple(found)

    def _wants_input(self, node: Node, layer: Conv2d | MatMul) -> bool:
        """Through time, a recurrent layer asks for gradients of its own states."""
        recurrent = isinstance(layer, MatMul) and (layer.steps > 1 or "/steps" in layer.name)
        return self.backward.wanted(node) or (recurrent and self.backward.trains(node))

    @cached_property
    def network(self) -> Network:
        """The whole step."""
        forward = self.backward.network
        layers: list[tuple[str, Layer]] = [("FP", one) for one in self._forward()]
        for node in self.backward.backwards:
            layers += [("BP", one) for one in self._before(node)]
            layers += [(one.kind, one.layer) for one in self.of(node)]
            layers += [("WG", one) for one in self._sums(node)]
            layers += [("BP", one) for one in self._undropped(node)]
            layers += [("WG", one) for one in self._bias(node)]
        layers.append(("update", self._update()))
        return Network(
            name=f"{forward.name}:training",
            layers=tuple(layer for _, layer in layers),
            source="; ".join(self._said()),
            densities=self.densities,
            skipped=forward.skipped,
            training=self._record({layer.name: kind for kind, layer in layers}),
        )

    def _said(self) -> Iterable[str]:
        yield self.backward.network.source
        if self.activity is not None:
            yield self.activity.source
        if self.dropout is not None:
            yield self.dropout.said

    def _sums(self, node: Node) -> Iterable[VectorWork]:
        """Additions of what the steps of a product give to the gradient of its weight."""
        if self.backward.trains(node):
            for layer in self.backward.matrix(node):
                yield from added_up(layer, self.parts("WG", layer))

    def _undropped(self, node: Node) -> Iterable[VectorWork]:
        """Gradients through what was dropped."""
        for layer in self.backward.matrix(node):
            if layer.name in self.sites and self._wants_input(node, layer):
                yield dropping(layer.name, self.sites[layer.name], "BP")

    def _forward(self) -> Iterable[Layer]:
        """The forward layers, with what is dropped before them, and with the normalisations that
        are folded for inference."""
        layers = self.backward.layers
        placed = {name for node in self.backward.network.flow for name in node.layers}
        for node in self.backward.network.flow:
            for name in node.layers:
                layer = layers[name]
                if not isinstance(layer, VectorWork):
                    if name in self.sites:
                        yield dropping(name, self.sites[name], "FP")
                    yield from (part.layer for part in self.parts("FP", layer))
                    continue
                unfolded = node.operator == "BatchNormalization"
                yield _normalised(node, name) if unfolded else layer
            if node.normalised:
                yield _normalised(node, f"{node.name}/batch_norm")
        yield from (one for one in self.backward.network.layers if one.name not in placed)

    def _before(self, node: Node) -> Iterable[VectorWork]:
        """Vector work on the gradient of what a node made, until it is that of its operator."""
        elements, readers = prod(node.shape), len(self.backward.readers[node.name])
        if readers > 1:
            count = (readers - 1) * elements
            yield vector(f"{node.name}/BP_sum", "Add", readers * elements, elements, count)
        if node.relu:
            count = PER_ELEMENT["Relu"] * elements
            yield vector(f"{node.name}/BP_relu", "ReluGrad", elements, elements, count)
        if node.normalised:
            count = PER_ELEMENT["BatchNormalization"] * elements
            name = f"{node.name}/BP_batch_norm"
            yield vector(name, "BatchNormalizationGrad", 2 * elements, elements, count)
        recurrent = node.operator in ("LSTM", "GRU", "RNN")
        if self.backward.matrix(node) and not recurrent:
            return
        count = operations(node, at_end=self.backward.ends(node))
        if count and (self.backward.wanted(node) or self.backward.trains(node)):
            yield vector(f"{node.name}/BP", f"{node.operator}Grad", elements, elements, count)

    def _bias(self, node: Node) -> Iterable[VectorWork]:
        """Sums of gradients for the biases that are trained."""
        for layer in self.backward.matrix(node):
            if layer.bias and self.backward.trains(node) and not node.normalised:
                read = layer.ofmap_elements
                made = layer.n if isinstance(layer, MatMul) else layer.filters
                yield vector(f"{layer.name}/WG_bias", "ReduceSum", read, made, read)

    @cached_property
    def trained_elements(self) -> int:
        """Weights, biases, and what normalisations scale and shift by."""
        return sum(self._trained(node) for node in self.backward.network.flow)

    def _trained(self, node: Node) -> int:
        if node.operator in SCALED and node.name in self.backward.learning:
            copies, axis = SCALED[node.operator]
            return copies * node.shape[axis]
        if not self.backward.trains(node):
            return 0
        found = 2 * node.shape[1] if node.normalised else 0
        for layer in self.backward.matrix(node):
            own = isinstance(layer, Conv2d) or (layer.shared_weight and not layer.weight_of)
            found += layer.weight_elements if own else 0
            filters = layer.n if isinstance(layer, MatMul) else layer.filters
            found += filters if layer.bias and not node.normalised else 0
        return found

    def _update(self) -> VectorWork:
        count = self.trained_elements
        kept = 1 + OPTIMISER_COPIES
        return vector("update", "SGD", (kept + 1) * count, kept * count, UPDATE_OPERATIONS * count)

    def _record(self, passes: dict[str, str]) -> Training:
        elements, flags = kept_values(self.backward)
        flags += sum({one.name: one.flags.size for one in self.sites.values()}.values())
        return Training(
            passes=passes,
            weight_elements=self.backward.network.weight_elements,
            trained_elements=self.trained_elements,
            kept_elements=elements,
            kept_flag_bits=flags,
            optimiser_copies=OPTIMISER_COPIES,
            step=self,
        )


def _normalised(node: Node, name: str) -> VectorWork:
    elements = prod(node.shape)
    count = NORMALISATION_FORWARD * elements
    return vector(name, "BatchNormalization", elements, elements, count)


def training_step(
    network: Network,
    *,
    frozen: Iterable[str] = (),
    form: Form = "product",
    activity: Activity | None = None,
    dropout: Dropout | None = None,
) -> TrainingStep:
    """The step of a network whose flow is known.  frozen: nodes whose weights stay as they are.
    dropout: of its recurrent layers.

    Raises WorkloadError as `Backward`, and for a node whose gradient is not defined, when it is
    asked for.
    """
    return TrainingStep(Backward(network, frozenset(frozen)), form, activity, dropout)


def training_passes(
    network: Network, *, frozen: Iterable[str] = (), form: Form = "product"
) -> tuple[PassLayer, ...]:
    """The matrix layers of FP, WG and BP.  Raises WorkloadError as `training_step`."""
    return training_step(network, frozen=frozen, form=form).passes


def training_network(
    network: Network,
    *,
    frozen: Iterable[str] = (),
    form: Form = "product",
    activity: Activity | None = None,
    dropout: Dropout | None = None,
) -> Network:
    """The whole step as a network, with the densities that follow from an activity and of dropout.

    Raises WorkloadError as `training_step`, and for dropout where nothing is recurrent.
    """
    step = training_step(network, frozen=frozen, form=form, activity=activity, dropout=dropout)
    return step.network


__all__ = [
    "OPTIMISER_COPIES",
    "UPDATE_OPERATIONS",
    "TrainingStep",
    "training_network",
    "training_passes",
    "training_step",
]
