"""Layers and networks as shapes: what is to be computed, without values.

Counting rules, used by every layer:

* a MAC is one multiplication with its accumulation; a bias costs none;
* padding is computed like data, as the published MAC totals do;
* elements count each tensor once, however often a machine reads it; `*_bytes(bits)` rounds a
  tensor up to whole bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from workloads.checks import countable, named, not_negative, positive
from workloads.errors import WorkloadError, unknown_name
from workloads.flow import Node
from workloads.kept_units import KeptUnits
from workloads.kv_cache import KvCache
from workloads.limits import check_limit
from workloads.pooling import Feed
from workloads.sparsity import DENSE, Densities
from workloads.tensor_bytes import TensorBytes
from workloads.training_record import Training


@dataclass(frozen=True, kw_only=True)
class Conv2d(TensorBytes):
    """A two-dimensional convolution (cross-correlation, as every framework has it).

    Tensors: ifmap [N, C, H, W], weight [K, C/groups, R, S], ofmap [N, K, P, Q]. Depthwise is
    groups == channels. P = (H + pads - dilation * (R - 1) - 1) // stride + 1, and Q likewise.
    `relu` is a ReLU which directly follows and is fused. Raises WorkloadError.
    """

    name: str
    channels: int
    filters: int
    ifmap_height: int
    ifmap_width: int
    kernel_height: int
    kernel_width: int
    stride_height: int = 1
    stride_width: int = 1
    pad_top: int = 0
    pad_left: int = 0
    pad_bottom: int = 0
    pad_right: int = 0
    dilation_height: int = 1
    dilation_width: int = 1
    groups: int = 1
    batch: int = 1
    bias: bool = False
    relu: bool = False

    def __post_init__(self) -> None:
        named("a layer's", self.name)
        values = {k: v for k, v in vars(self).items() if k not in ("name", "bias", "relu")}
        not_negative(self.name, **{k: v for k, v in values.items() if k.startswith("pad_")})
        positive(self.name, **{k: v for k, v in values.items() if not k.startswith("pad_")})
        for side in ("channels", "filters"):
            if values[side] % self.groups:
                raise WorkloadError(
                    f"{self.name}: {side} must be a multiple of groups {self.groups}, "
                    f"not {values[side]}"
                )
        self._check_fit("height", self._span_height, self._padded_height)
        self._check_fit("width", self._span_width, self._padded_width)
        countable(self.name, MACs=self.macs, **{"ifmap elements": self.ifmap_elements})

    def _check_fit(self, side: str, span: int, padded: int) -> None:
        if span > padded:
            raise WorkloadError(
                f"{self.name}: dilated kernel {side} must be at most the padded ifmap {side} "
                f"{padded}, not {span}"
            )

    @property
    def _span_height(self) -> int:
        return self.dilation_height * (self.kernel_height - 1) + 1

    @property
    def _span_width(self) -> int:
        return self.dilation_width * (self.kernel_width - 1) + 1

    @property
    def _padded_height(self) -> int:
        return self.ifmap_height + self.pad_top + self.pad_bottom

    @property
    def _padded_width(self) -> int:
        return self.ifmap_width + self.pad_left + self.pad_right

    @property
    def ofmap_height(self) -> int:
        """P, rows of the ofmap."""
        return (self._padded_height - self._span_height) // self.stride_height + 1

    @property
    def ofmap_width(self) -> int:
        """Q, columns of the ofmap."""
        return (self._padded_width - self._span_width) // self.stride_width + 1

    @property
    def macs(self) -> int:
        """N * K * P * Q * (C / groups) * R * S."""
        taps = self.channels // self.groups * self.kernel_height * self.kernel_width
        return self.ofmap_elements * taps

    @property
    def ifmap_elements(self) -> int:
        """N * C * H * W, without padding."""
        return self.batch * self.channels * self.ifmap_height * self.ifmap_width

    @property
    def weight_elements(self) -> int:
        """K * (C / groups) * R * S, without bias."""
        taps = self.kernel_height * self.kernel_width
        return self.filters * (self.channels // self.groups) * taps

    @property
    def ofmap_elements(self) -> int:
        """N * K * P * Q."""
        return self.batch * self.filters * self.ofmap_height * self.ofmap_width


@dataclass(frozen=True, kw_only=True)
class MatMul(TensorBytes):
    """`batch` independent products: ofmap [b, M, N] = ifmap [b, M, K] @ weight [b, K, N].

    `shared_weight`: one weight [1, K, N] (fully connected); the network's batch is then folded
    into M, and `batch` is 1. Otherwise each element of the batch has its own second operand
    (attention). `weight_of` names the layer whose weight this one uses again; a network counts such
    a weight once. `steps`: the rows are those of so many products, M / steps each, of which each
    begins when the one before has ended, as those of a recurrent layer do. `kept`: in memory a row
    of the ifmap has more units, of which these are the K. Raises WorkloadError.
    """

    name: str
    m: int
    n: int
    k: int
    batch: int = 1
    shared_weight: bool = True
    bias: bool = False
    relu: bool = False
    weight_of: str = ""
    steps: int = 1
    kept: KeptUnits | None = None

    def __post_init__(self) -> None:
        named("a layer's", self.name)
        positive(self.name, m=self.m, n=self.n, k=self.k, batch=self.batch, steps=self.steps)
        if self.m % self.steps or (self.steps > 1 and not self.shared_weight):
            raise WorkloadError(
                f"{self.name}: {self.steps} steps must share the weight, and {self.m} rows be as "
                f"many in each"
            )
        if self.shared_weight and self.batch != 1:
            raise WorkloadError(
                f"{self.name}: batch must be 1 where the weight is shared (fold it into m), "
                f"not {self.batch}"
            )
        self._check_kept()
        countable(self.name, MACs=self.macs)

    def _check_kept(self) -> None:
        if self.kept is None:
            return
        if self.kept.count != self.k:
            raise WorkloadError(
                f"{self.name}: k must be the {self.kept.count} units kept of a row, not {self.k}"
            )
        if not self.shared_weight:
            raise WorkloadError(
                f"{self.name}: products of rows of kept units must share the weight"
            )

    @property
    def macs(self) -> int:
        """batch * M * N * K."""
        return self.batch * self.m * self.n * self.k

    @property
    def ifmap_elements(self) -> int:
        """batch * M * K."""
        return self.batch * self.m * self.k

    @property
    def weight_elements(self) -> int:
        """batch * K * N (batch is 1 where the weight is shared), without bias."""
        return self.batch * self.k * self.n

    @property
    def ofmap_elements(self) -> int:
        """batch * M * N."""
        return self.batch * self.m * self.n


@dataclass(frozen=True, kw_only=True)
class VectorWork:
    """Work beside the matrix products: pooling, element-wise, normalisation, data movement.

    `operations` counts elementary scalar operations by the rule in `workloads.vector_work`;
    it is 0 where elements only move. `input_elements` are the elements read, constants
    excepted. Raises WorkloadError.
    """

    name: str
    operator: str
    input_elements: int
    output_elements: int
    operations: int

    def __post_init__(self) -> None:
        named("a layer's", self.name)
        named("an operator's", self.operator)
        countable(
            self.name,
            input_elements=self.input_elements,
            output_elements=self.output_elements,
            operations=self.operations,
        )

    @property
    def macs(self) -> int:
        """0: vector work is never mapped to the array."""
        return 0


Layer = Conv2d | MatMul | VectorWork


@dataclass(frozen=True, kw_only=True)
class Network:
    """Layers in the order in which they are computed.

    `source` says where the shapes come from; `skipped` lists the operators left out on demand,
    each as "node: operator". `feeds` says which convolution's ofmap is another one's ifmap, where
    that is known; `kv_cache` what a language model keeps; `densities`, by the layer's name, how
    sparse it is where that is known without values; `flow` what its operators read and make, in
    order, empty where that is not known; `training` what a training step keeps. Raises
    WorkloadError if two layers share a name, and for densities of no layer.
    """

    name: str
    layers: tuple[Layer, ...]
    source: str
    skipped: tuple[str, ...] = ()
    feeds: tuple[Feed, ...] = ()
    kv_cache: KvCache | None = None
    densities: Mapping[str, Densities] = field(default_factory=dict[str, Densities], hash=False)
    flow: tuple[Node, ...] = ()
    training: Training | None = None

    def __post_init__(self) -> None:
        named("a network's", self.name)
        check_limit("layers", len(self.layers), f"{self.name}: layers")
        twice = _first_repeated(layer.name for layer in self.layers)
        if twice is not None:
            raise WorkloadError(f"{self.name}: layer names must be unique, not {twice!r} twice")
        known = {layer.name for layer in self.matrix_layers} if self.densities else ()
        for name in self.densities:
            if name not in known:
                raise unknown_name("matrix layer", name, sorted(known))

    def densities_of(self, layer: Conv2d | MatMul) -> Densities:
        """Of one of its layers; dense where nothing is known."""
        return self.densities.get(layer.name, DENSE)

    @property
    def macs(self) -> int:
        """MACs of all layers."""
        return sum(layer.macs for layer in self.layers)

    @property
    def weight_elements(self) -> int:
        """Trained matrix elements, each once: no biases, no normalisation, no look-up tables.

        A product of two computed operands (`shared_weight` is false) has none. Of a training step
        they are those of its forward layers.
        """
        if self.training is not None:
            return self.training.weight_elements
        return sum(
            layer.weight_elements
            for layer in self.matrix_layers
            if isinstance(layer, Conv2d) or (layer.shared_weight and not layer.weight_of)
        )

    @cached_property
    def matrix_layers(self) -> tuple[Conv2d | MatMul, ...]:
        """The layers which an array computes: convolutions and matrix products."""
        return tuple(layer for layer in self.layers if not isinstance(layer, VectorWork))


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
