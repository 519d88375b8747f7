"""The layers of a language model's prefill, and of one step of its decoding.

Every product with trained weights is one MatMul whose rows are the tokens of all sequences.  The
products of attention are one MatMul a sequence and key head, whose rows are the tokens times the
heads that read that key (grouped-query attention), and whose second operand is the KV cache; all of
it is multiplied, as kernels without a skip of what is masked do.  Logits are those of the last
token of each sequence.  A mixture's tokens spread evenly over the experts that they go to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workloads.checks import positive
from workloads.counts import counted
from workloads.errors import WorkloadError
from workloads.kv_cache import KvCache
from workloads.language.model import Experts, LanguageModel
from workloads.layers import Layer, MatMul, Network
from workloads.limits import check_limit
from workloads.vector_work import elementwise, movement, reduction


def prefill(
    model: LanguageModel, tokens: int, *, batch: int = 1, experts: int | None = None
) -> Network:
    """The layers that read a prompt of `tokens`, for `batch` sequences, up to their first logits.

    experts: how many of a mixture the tokens go to together; as many as can be by default.
    Raises WorkloadError for more tokens than the model has positions.
    """
    phase = f"prefill of {counted(tokens, 'token')}"
    return _network(model, phase, _Step(tokens=tokens, context=tokens, batch=batch), experts)


def decode(
    model: LanguageModel, context: int, *, batch: int = 1, experts: int | None = None
) -> Network:
    """The layers that make one token for each of `batch` sequences.

    context: tokens of a sequence, the new one included, whose keys and values are read.
    experts: as of `prefill`.  Raises WorkloadError for a context beyond the model's positions.
    """
    phase = f"decoding at a context of {counted(context, 'token')}"
    return _network(model, phase, _Step(tokens=1, context=context, batch=batch), experts)


@dataclass(frozen=True, kw_only=True)
class _Step:
    """tokens: of a sequence, computed.  context: of a sequence, that these may attend to."""

    tokens: int
    context: int
    batch: int

    @property
    def rows(self) -> int:
        return self.batch * self.tokens


def _network(model: LanguageModel, phase: str, step: _Step, experts: int | None) -> Network:
    positive(model.name, tokens=step.tokens, context=step.context, batch=step.batch)
    if step.context > model.positions:
        raise WorkloadError(
            f"{model.name}: a sequence has at most {model.positions:,} tokens, not {step.context:,}"
        )
    active = _active(model, step, experts)
    check_limit("layers", model.blocks * (30 + 6 * active), f"{model.name}: layers")
    making = _Making(model, step, active)
    span = making.span
    return Network(
        name=model.name,
        layers=tuple(making.layers()),
        source=f"{model.source}; {phase}, {counted(step.batch, 'sequence')}",
        kv_cache=KvCache(
            elements=model.cache_elements * span * step.batch,
            appended=model.cache_elements * step.rows,
            readers=tuple(making.readers),
        ),
    )


def _active(model: LanguageModel, step: _Step, experts: int | None) -> int:
    """How many experts of a mixture the tokens of a step go to; 0 where there is no mixture."""
    own = model.experts
    if own is None:
        if experts is not None:
            raise WorkloadError(f"{model.name}: there are no experts to choose {experts} of")
        return 0
    most = min(own.count, step.rows * own.chosen)
    if experts is None:
        return most
    if not own.chosen <= experts <= most:
        rows = counted(step.rows, "token")
        raise WorkloadError(
            f"{model.name}: {rows} can go to {own.chosen} … {most} experts together, not {experts}"
        )
    return experts


class _Making:
    """Makes the layers; `readers` are then the names of those that read the cache."""

    def __init__(self, model: LanguageModel, step: _Step, active: int) -> None:
        self._model, self._step, self._active = model, step, active
        self.readers: list[str] = []

    @property
    def span(self) -> int:
        """Tokens whose keys and values are kept."""
        window = self._model.attention.window
        return min(self._step.context, window) if window else self._step.context

    @property
    def _seen(self) -> int:
        """Keys that every token of a step is multiplied with: of a prompt all, masked or not."""
        return self._step.context if self._step.tokens > 1 else self.span

    def layers(self) -> Iterator[Layer]:
        model, rows = self._model, self._step.rows
        hidden = (rows, model.hidden)
        yield movement("embed", "Gather", rows * (1 + model.hidden), hidden)
        if model.position_table:
            yield elementwise("embed/positions", "Add", hidden, (hidden, hidden))
        for number in range(model.blocks):
            yield from self._block(f"layer{number}")
        last = (self._step.batch, model.hidden)
        yield reduction("norm", model.norm, last, last)
        yield _product("logits", last, model.vocabulary, bias=model.logits_bias)

    def _block(self, name: str) -> Iterator[Layer]:
        hidden = (self._step.rows, self._model.hidden)
        norm = self._model.norm
        yield reduction(f"{name}/norm1", norm, hidden, hidden)
        yield from self._attention(name)
        if not self._model.parallel:
            yield elementwise(f"{name}/add1", "Add", hidden, (hidden, hidden))
        yield reduction(f"{name}/norm2", norm, hidden, hidden)
        if self._model.experts is None:
            yield from self._feed_forward(f"{name}/ffn", self._step.rows)
        else:
            yield from self._mixture(name, self._model.experts)
        if self._model.parallel:
            yield elementwise(f"{name}/add1", "Add", hidden, (hidden, hidden))
        yield elementwise(f"{name}/add2", "Add", hidden, (hidden, hidden))

    def _attention(self, name: str) -> Iterator[Layer]:
        own, step, hidden = self._model.attention, self._step, self._model.hidden
        rows, read = step.rows, (step.rows, hidden)
        widths = {"query": own.query_width, "key": own.key_width, "value": own.key_width}
        if own.fused:
            widths = {"qkv": sum(widths.values())}
        for part, width in widths.items():
            yield _product(f"{name}/{part}", read, width, bias=own.bias)
        turned = {"query": own.heads, "key": own.key_heads}
        for part, heads in turned.items():
            shape = (rows, heads, own.head_width)
            if own.head_norm:
                yield reduction(f"{name}/{part}_norm", self._model.norm, shape, shape)
            if own.rotary:
                shape = (rows, heads, own.rotary)
                yield elementwise(f"{name}/{part}_rotary", "RotaryEmbedding", shape)
        kept = (rows, 2 * own.key_width)
        yield movement(f"{name}/cache", "TensorScatter", rows * 2 * own.key_width, kept)
        scores = MatMul(
            name=f"{name}/scores",
            batch=step.batch * own.key_heads,
            m=own.group * step.tokens,
            n=self._seen,
            k=own.head_width,
            shared_weight=False,
        )
        yield scores
        shape = (scores.batch, scores.m, scores.n)
        yield elementwise(f"{name}/scale", "Mul", shape)
        if step.tokens > 1:
            yield elementwise(f"{name}/mask", "Add", shape)
        yield reduction(f"{name}/softmax", "Softmax", shape, shape)
        context = MatMul(
            name=f"{name}/context",
            batch=scores.batch,
            m=scores.m,
            n=own.head_width,
            k=scores.n,
            shared_weight=False,
        )
        yield context
        self.readers += [scores.name, context.name]
        yield _product(f"{name}/output", (rows, own.query_width), hidden, bias=own.output_bias)

    def _mixture(self, name: str, own: Experts) -> Iterator[Layer]:
        """The router, the experts that tokens go to, and the weighted sum of what they make."""
        model, rows = self._model, self._step.rows
        chances = (rows, own.count)
        yield _product(f"{name}/router", (rows, model.hidden), own.count)
        yield reduction(f"{name}/router_softmax", "Softmax", chances, chances)
        yield reduction(f"{name}/router_top", "TopK", chances, (rows, own.chosen))
        visits = rows * own.chosen
        for number in range(self._active):
            tokens = visits // self._active + (number < visits % self._active)
            yield from self._feed_forward(f"{name}/expert{number}", tokens)
        made, kept = (visits, model.hidden), (rows, model.hidden)
        yield elementwise(f"{name}/weighted", "Mul", made)
        yield reduction(f"{name}/mixed", "ReduceSum", made, kept)

    def _feed_forward(self, name: str, rows: int) -> Iterator[Layer]:
        model = self._model
        hidden, inner = (rows, model.hidden), (rows, model.inner)
        if model.gate_fused:
            yield _product(f"{name}/gate_up", hidden, 2 * model.inner, bias=model.inner_bias)
        else:
            if model.gated:
                yield _product(f"{name}/gate", hidden, model.inner, bias=model.inner_bias)
            relu = model.activation == "Relu" and not model.gated
            yield _product(f"{name}/up", hidden, model.inner, bias=model.inner_bias, relu=relu)
        if model.gated or model.activation != "Relu":
            yield elementwise(f"{name}/activation", model.activation, inner)
        if model.gated:
            yield elementwise(f"{name}/gated", "Mul", inner, (inner, inner))
        yield _product(f"{name}/down", inner, model.hidden, bias=model.inner_bias)


def _product(
    name: str, read: tuple[int, int], made: int, *, bias: bool = False, relu: bool = False
) -> MatMul:
    return MatMul(name=name, m=read[0], k=read[1], n=made, bias=bias, relu=relu)


__all__ = ["decode", "prefill"]
