"""How dense tensors are while a network is trained, and what follows for each pass.

Known of a tensor behind a ReLU is the share of its values that are not zero.  From it follow

* FP, input sparsity: the density of the layer's ifmap;
* BP, output sparsity: the gradient of a tensor behind a ReLU is needed where its value is not 0;
* BP, input sparsity: the gradient of the layer's ofmap has the zeros of the ReLU behind it, and of
  the max pooling behind that, unless a normalisation lies between, whose gradient is dense;
* WG: both operands', of its output everything is needed.

Masks are taken as independent where they meet.  Under a max pooling, a gradient has as many values
as there are windows with a maximum above 0: under one of 2 × 2, at most a quarter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from workloads.errors import WorkloadError, unknown_name
from workloads.flow import Node
from workloads.layers import Network
from workloads.sparse import MEASURED_CLUSTERING
from workloads.sparsity import Densities
from workloads.training.backward import Backward
from workloads.training.pass_layer import PassLayer
from workloads.training.weight_gradient import ConvWeightProduct

KEEPS_ZEROS = ("MaxPool", "AveragePool", "Concat", "Reshape", "LRN", "Transpose", "Identity",
               "Dropout", "Flatten", "Pad", "Squeeze", "Unsqueeze")  # fmt: skip
"""Of tensors that are not negative, these make one whose zeros have no gradient either."""

PASSES_ZEROS = ("Relu", "MaxPool", "Add", "Sub", "Neg", "Concat", "Reshape", "Flatten", "Identity",
                "Dropout", "Transpose", "Squeeze", "Unsqueeze")  # fmt: skip
"""Of a gradient with zeros, these pass one back with as many."""


@dataclass(frozen=True, kw_only=True)
class Activity:
    """density: by tensor, of those behind a ReLU, or a pooling behind one, where it is known; the
    others are dense.  source: where the figures are from.  clustering: of masks that are drawn with
    them (`workloads.sparse`): 0 scatters their zeros.

    Raises WorkloadError for a density or a clustering outside 0 to 1.
    """

    density: Mapping[str, float] = field(hash=False)
    source: str
    clustering: float = MEASURED_CLUSTERING

    def __post_init__(self) -> None:
        if not 0 <= self.clustering <= 1:
            raise WorkloadError(f"clustering must be 0 to 1, not {self.clustering}")
        for name, share in self.density.items():
            if not 0 <= share <= 1:
                raise WorkloadError(f"density of {name} must be 0 to 1, not {share}")

    @staticmethod
    def even(network: Network, density: float) -> Activity:
        """The same density behind every ReLU of a network."""
        names = (node.name for node in network.flow if node.relu or node.operator == "Relu")
        return Activity(
            density=dict.fromkeys(names, density), source=f"density {density:g} behind every ReLU"
        )


@dataclass(frozen=True)
class Supports:
    """Densities of tensors and of their gradients.  Raises WorkloadError for densities of tensors
    that do not lie behind a ReLU."""

    backward: Backward
    activity: Activity

    def __post_init__(self) -> None:
        for name in self.activity.density:
            if not self.rectified(name):
                raise unknown_name("tensor behind a ReLU", name, sorted(self._rectified))

    @cached_property
    def _rectified(self) -> frozenset[str]:
        found: set[str] = set()
        for node in self.backward.network.flow:
            keeps = node.operator in KEEPS_ZEROS and found.issuperset(node.reads)
            if node.relu or node.operator == "Relu" or keeps:
                found.add(node.name)
        return frozenset(found)

    def rectified(self, tensor: str) -> bool:
        """Whether a tensor lies behind ReLUs, so that its zeros have no gradient."""
        return tensor in self._rectified

    def density(self, tensor: str) -> float:
        """Of a tensor's values; 1 where nothing is known.

        Of what is pooled without a figure of its own, that of what is pooled: max pooling makes it
        denser.
        """
        known = self.activity.density.get(tensor)
        if known is not None:
            return known
        if not self.rectified(tensor):
            return 1.0
        node = self.backward.nodes[tensor]
        if node.operator not in KEEPS_ZEROS or node.relu:
            return 1.0
        sizes = [prod(self.backward.nodes[name].shape) for name in node.reads]
        shares = [self.density(name) for name in node.reads]
        return sum(s * d for s, d in zip(sizes, shares, strict=True)) / sum(sizes)

    def needed(self, tensor: str) -> float:
        """Share of the places of a tensor's gradient that are needed."""
        return self.density(tensor) if self.rectified(tensor) else 1.0

    def gradient(self, tensor: str) -> float:
        """Density of a tensor's gradient, where it is needed."""
        cached = self._gradients.get(tensor)
        if cached is None:
            cached = self._gradients[tensor] = self._gradient(tensor)
        return cached

    @cached_property
    def _gradients(self) -> dict[str, float]:
        return {}

    def _gradient(self, tensor: str) -> float:
        readers, shares = self.backward.readers[tensor], list[float]()
        if not readers:
            return self.needed(tensor)
        whole = self.needed(tensor)
        for reader in readers:
            share = self._passed(reader)
            if reader.operator == "MaxPool":
                ratio = prod(reader.shape) / prod(self.backward.nodes[tensor].shape)
                shares.append(min(share * ratio, whole))
            else:
                shares.append(share * whole)
        if whole == 0:
            return 0.0
        absent = prod(1 - share / whole for share in shares)
        return whole * (1 - absent)

    def _passed(self, reader: Node) -> float:
        """Density of what a reader passes back, before zeros of what it reads are left out."""
        if self.backward.matrix(reader) or reader.normalised:
            return 1.0
        return self.gradient(reader.name) if reader.operator in PASSES_ZEROS else 1.0

    def behind(self, node: Node) -> float:
        """Density of the gradient of a matrix layer's ofmap."""
        return 1.0 if node.normalised else self.gradient(node.name)

    def of(self, part: PassLayer) -> Densities:
        """Of a layer of a pass."""
        node = self._owner[part.of.name]
        read = node.reads[0] if node.reads else ""
        x, dy = self.density(read), self.behind(node)
        if len(self.backward.matrix(node)) > 1 or len(node.reads) > 1:
            return Densities()
        if part.kind == "FP":
            return Densities(ifmap=x)
        if part.kind == "BP":
            return Densities(ifmap=dy, output=self.needed(read))
        if isinstance(part, ConvWeightProduct) and not part.windows_first:
            return Densities(ifmap=dy, weight=x)
        return Densities(ifmap=x, weight=dy)

    @cached_property
    def _owner(self) -> dict[str, Node]:
        flow = self.backward.network.flow
        return {name: node for node in flow for name in node.layers}


__all__ = ["KEEPS_ZEROS", "PASSES_ZEROS", "Activity", "Supports"]
