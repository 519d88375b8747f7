"""What a decoder-only language model is made of, and how many parameters that makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workloads.checks import not_negative, positive
from workloads.errors import WorkloadError
from workloads.limits import check_limit


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Of one block: `heads` queries share the keys and values of `key_heads`.

    head_width: elements of a query, key or value.  window: a token attends to at most so many, the
    last ones; 0 for all.  rotary: elements of a head whose positions are rotated in.  fused: one
    projection makes queries, keys and values.  bias: of that projection, output_bias of the other.
    head_norm: queries and keys are normalised head by head.
    """

    heads: int
    key_heads: int
    head_width: int
    window: int = 0
    rotary: int = 0
    fused: bool = False
    bias: bool = False
    output_bias: bool = False
    head_norm: bool = False

    def __post_init__(self) -> None:
        positive("attention", heads=self.heads, key_heads=self.key_heads, width=self.head_width)
        not_negative("attention", window=self.window, rotary=self.rotary)
        if self.heads % self.key_heads:
            raise WorkloadError(
                f"attention: heads must be a multiple of the {self.key_heads} that have keys and "
                f"values, not {self.heads}"
            )

    @property
    def group(self) -> int:
        """Heads that read one key."""
        return self.heads // self.key_heads

    @property
    def query_width(self) -> int:
        """Elements of a token's queries."""
        return self.heads * self.head_width

    @property
    def key_width(self) -> int:
        """Elements of a token's keys; its values have as many."""
        return self.key_heads * self.head_width


@dataclass(frozen=True, kw_only=True)
class Experts:
    """A mixture: of `count` feed-forward networks each token goes through `chosen`."""

    count: int
    chosen: int

    def __post_init__(self) -> None:
        positive("experts", count=self.count, chosen=self.chosen)
        if self.chosen > self.count:
            raise WorkloadError(
                f"experts: a token can go through at most the {self.count} there are, "
                f"not {self.chosen}"
            )


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """A stack of equal blocks of attention and feed-forward network between two tables.

    hidden, inner: width of a token between blocks, and inside of a feed-forward network.
    positions: tokens that a sequence may have.  position_table: rows of a table of learned
    positions, 0 where there is none.  norm: the operator; norms: of a block.  gated: the
    feed-forward network multiplies two projections, of which `activation` is of the first;
    gate_fused: one product makes both.  tied: the table of the input is that of the logits.
    Raises WorkloadError.
    """

    name: str
    source: str
    hidden: int
    inner: int
    blocks: int
    vocabulary: int
    positions: int
    attention: Attention
    experts: Experts | None = None
    position_table: int = 0
    norm: Literal["LayerNormalization", "RMSNormalization"] = "RMSNormalization"
    norms: int = 2
    activation: Literal["Swish", "Gelu", "Relu"] = "Swish"
    gated: bool = True
    gate_fused: bool = False
    inner_bias: bool = False
    parallel: bool = False
    tied: bool = False
    logits_bias: bool = False

    def __post_init__(self) -> None:
        positive(
            self.name, hidden=self.hidden, inner=self.inner, blocks=self.blocks,
            vocabulary=self.vocabulary, positions=self.positions,
        )  # fmt: skip
        check_limit("layers", self.blocks, f"{self.name}: blocks")

    @property
    def parameters(self) -> int:
        """Every trained number: matrices, tables, biases and normalisations' scales."""
        block = self._attention + self._feed_forward + self.norms * self._norm
        tables = self.vocabulary * self.hidden * (1 if self.tied else 2)
        tables += self.position_table * self.hidden + self.vocabulary * self.logits_bias
        return tables + self.blocks * block + self._norm

    @property
    def cache_elements(self) -> int:
        """Keys and values that one token leaves for those after it, in all blocks."""
        return 2 * self.blocks * self.attention.key_width

    @property
    def _norm(self) -> int:
        return self.hidden * (2 if self.norm == "LayerNormalization" else 1)

    @property
    def _attention(self) -> int:
        own = self.attention
        made = own.query_width + 2 * own.key_width
        biases = made * own.bias + self.hidden * own.output_bias
        norms = 2 * own.head_width * own.head_norm
        return self.hidden * (made + own.query_width) + biases + norms

    @property
    def _feed_forward(self) -> int:
        products = 3 if self.gated else 2
        biases = (self.inner * (products - 1) + self.hidden) * self.inner_bias
        one = products * self.hidden * self.inner + biases
        if self.experts is None:
            return one
        return self.experts.count * (one + self.hidden)


__all__ = ["Attention", "Experts", "LanguageModel"]
