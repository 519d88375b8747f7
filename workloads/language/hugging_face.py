"""A language model from the `config.json` that Hugging Face's Transformers keep with its weights.

Read as the models of Transformers read it.  Sizes must be said; what else a file does not say has
the default of its `model_type`'s configuration class there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from workloads.errors import WorkloadError, unknown_name
from workloads.language.model import Attention, Experts, LanguageModel

LARGEST_FILE = 1 << 20
"""Bytes of a configuration: the largest known are some 10 KiB."""

_ACTIVATIONS: dict[str, Any] = {
    "silu": "Swish", "swish": "Swish", "relu": "Relu", "gelu": "Gelu", "gelu_new": "Gelu",
    "gelu_fast": "Gelu", "gelu_pytorch_tanh": "Gelu", "gelu_python": "Gelu",
}  # fmt: skip


class _Fields:
    """The entries of a configuration; each must be of the type that is asked for."""

    def __init__(self, name: str, entries: Mapping[str, Any]) -> None:
        self.name = name
        self._entries = entries

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 1."""
        value = self._entries.get(key)
        value = default if value is None else value
        if value is None:
            raise WorkloadError(f"{self.name}: {key} is missing")
        if type(value) is not int or value < 1:
            raise WorkloadError(f"{self.name}: {key} must be positive, not {value!r:.60}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._entries.get(key, default)
        if type(value) is not bool:
            raise WorkloadError(f"{self.name}: {key} must be true or false, not {value!r:.60}")
        return value

    def window(self, *, default: int | None, used: bool) -> int:
        """`sliding_window`, 0 where there is none or `use_sliding_window` forbids it."""
        if not self.flag("use_sliding_window", default=used):
            return 0
        value = self._entries.get("sliding_window", default)
        return 0 if value is None else self.count("sliding_window", value)

    def share(self, keys: tuple[str, ...], default: float) -> float:
        """A number from 0 to 1, by the first of its names that is there."""
        value = next((self._entries[key] for key in keys if key in self._entries), default)
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise WorkloadError(f"{self.name}: {keys[0]} must be from 0 to 1, not {value!r:.60}")
        return float(value)

    def activation(self, *keys: str, default: str) -> Any:
        value = next((self._entries[key] for key in keys if self._entries.get(key)), default)
        if value not in _ACTIVATIONS:
            raise unknown_name(f"activation of {self.name}", str(value)[:60], list(_ACTIVATIONS))
        return _ACTIVATIONS[value]

    def refuse(self, key: str, values: tuple[Any, ...], why: str) -> None:
        """Raise WorkloadError where an entry is there and none of `values`."""
        if key in self._entries and self._entries[key] not in values:
            raise WorkloadError(f"{self.name}: {key} {self._entries[key]!r:.60} is {why}")


def read_config(path: Path) -> LanguageModel:
    """The model of a `config.json`, named after its folder.

    Raises WorkloadError for a file that cannot be read, is none, or of an architecture that is not
    known (it lists the nearest).
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror}") from error
    if len(text) > LARGEST_FILE:
        raise WorkloadError(f"{path}: a configuration must be below {LARGEST_FILE:,} bytes")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"{path}: no JSON: {str(error)[:80]}") from error
    folder = path.resolve().parent.name
    stem = path.stem if path.stem != "config" else folder
    return from_config(entries, name=stem or "model", source=str(path))


def from_config(entries: Any, *, name: str, source: str) -> LanguageModel:
    """The model of a configuration that has been read.  Raises WorkloadError."""
    if not isinstance(entries, dict):
        raise WorkloadError(f"{source}: a configuration must be an object, not {entries!r:.60}")
    known = cast("dict[str, Any]", entries)
    kind = known.get("model_type")
    if not isinstance(kind, str):
        raise WorkloadError(f"{source}: model_type is missing")
    if kind not in _READERS:
        raise unknown_name(f"architecture of {source}", kind[:60], sorted(_READERS))
    return _READERS[kind](_Fields(source, known), name, source)


def _gpt2(own: _Fields, name: str, source: str) -> LanguageModel:
    hidden, heads = own.count("n_embd"), own.count("n_head")
    positions = own.count("n_positions")
    return LanguageModel(
        name=name,
        source=source,
        hidden=hidden,
        inner=own.count("n_inner", 4 * hidden),
        blocks=own.count("n_layer"),
        vocabulary=own.count("vocab_size"),
        positions=positions,
        position_table=positions,
        attention=Attention(
            heads=heads, key_heads=heads, head_width=_split(own, hidden, heads), fused=True,
            bias=True, output_bias=True,
        ),
        norm="LayerNormalization",
        activation=own.activation("activation_function", default="gelu_new"),
        gated=False,
        inner_bias=True,
        tied=own.flag("tie_word_embeddings", default=True),
    )  # fmt: skip


def _opt(own: _Fields, name: str, source: str) -> LanguageModel:
    hidden, heads = own.count("hidden_size"), own.count("num_attention_heads")
    own.refuse("word_embed_proj_dim", (hidden,), "not modelled where it is not hidden_size")
    own.refuse("do_layer_norm_before", (True,), "not modelled")
    bias = own.flag("enable_bias", default=True)
    positions = own.count("max_position_embeddings")
    return LanguageModel(
        name=name,
        source=source,
        hidden=hidden,
        inner=own.count("ffn_dim"),
        blocks=own.count("num_hidden_layers"),
        vocabulary=own.count("vocab_size"),
        positions=positions,
        position_table=positions + 2,  # OPT's table begins two rows before the first position
        attention=Attention(
            heads=heads, key_heads=heads, head_width=_split(own, hidden, heads), bias=bias,
            output_bias=bias,
        ),
        norm="LayerNormalization",
        activation=own.activation("activation_function", default="relu"),
        gated=False,
        inner_bias=bias,
        tied=own.flag("tie_word_embeddings", default=True),
    )  # fmt: skip


def _gpt_neox(own: _Fields, name: str, source: str) -> LanguageModel:
    hidden, heads = own.count("hidden_size"), own.count("num_attention_heads")
    width, bias = _split(own, hidden, heads), own.flag("attention_bias", default=True)
    return LanguageModel(
        name=name,
        source=source,
        hidden=hidden,
        inner=own.count("intermediate_size"),
        blocks=own.count("num_hidden_layers"),
        vocabulary=own.count("vocab_size"),
        positions=own.count("max_position_embeddings"),
        attention=Attention(
            heads=heads, key_heads=heads, head_width=width, fused=True, bias=bias,
            output_bias=bias, rotary=int(width * own.share(("rotary_pct",), 0.25)),
        ),
        norm="LayerNormalization",
        activation=own.activation("hidden_act", default="gelu"),
        gated=False,
        inner_bias=True,
        parallel=own.flag("use_parallel_residual", default=True),
        tied=own.flag("tie_word_embeddings", default=False),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Descendant:
    """What tells a descendant of Llama from it; numbers that a file may leave out."""

    bias: bool = False
    head_norm: bool = False
    fused: bool = False
    experts: Experts | None = None
    inner: int | None = None
    tied: bool = False
    activation: str = "silu"
    width: int | None = None
    window: int = 0


_LLAMA = _Descendant()


def _llama(own: _Fields, name: str, source: str, kind: _Descendant = _LLAMA) -> LanguageModel:
    """What Llama's descendants share."""
    hidden, heads = own.count("hidden_size"), own.count("num_attention_heads")
    width = own.count("head_dim", kind.width or (hidden // heads if hidden % heads == 0 else None))
    rotary = int(width * own.share(("partial_rotary_factor",), 1.0))
    return LanguageModel(
        name=name,
        source=source,
        hidden=hidden,
        inner=kind.inner or own.count("intermediate_size"),
        blocks=own.count("num_hidden_layers"),
        vocabulary=own.count("vocab_size"),
        positions=own.count("max_position_embeddings"),
        attention=Attention(
            heads=heads,
            key_heads=own.count("num_key_value_heads", heads),
            head_width=width,
            window=kind.window,
            rotary=rotary,
            bias=own.flag("attention_bias", default=kind.bias),
            output_bias=not kind.bias and own.flag("attention_bias", default=False),
            head_norm=kind.head_norm,
            fused=kind.fused,
        ),
        experts=kind.experts,
        inner_bias=own.flag("mlp_bias", default=False),
        gate_fused=kind.fused,
        activation=own.activation("hidden_activation", "hidden_act", default=kind.activation),
        tied=own.flag("tie_word_embeddings", default=kind.tied),
    )


def _mistral(own: _Fields, name: str, source: str) -> LanguageModel:
    return _llama(own, name, source, _Descendant(window=own.window(default=4096, used=True)))


def _mixtral(own: _Fields, name: str, source: str) -> LanguageModel:
    count, chosen = own.count("num_local_experts"), own.count("num_experts_per_tok")
    window = own.window(default=None, used=True)
    return _llama(
        own, name, source, _Descendant(experts=Experts(count=count, chosen=chosen), window=window)
    )


def _qwen2(own: _Fields, name: str, source: str) -> LanguageModel:
    own.refuse("use_sliding_window", (False,), "not modelled: only some blocks would have it")
    return _llama(own, name, source, _Descendant(bias=True))


def _qwen3(own: _Fields, name: str, source: str) -> LanguageModel:
    own.refuse("use_sliding_window", (False,), "not modelled: only some blocks would have it")
    return _llama(own, name, source, _Descendant(head_norm=True))


def _qwen3_moe(own: _Fields, name: str, source: str) -> LanguageModel:
    own.refuse("use_sliding_window", (False,), "not modelled: only some blocks would have it")
    own.refuse("decoder_sparse_step", (1,), "not modelled: every block must have experts")
    own.refuse("mlp_only_layers", ([], None), "not modelled: every block must have experts")
    experts = Experts(count=own.count("num_experts"), chosen=own.count("num_experts_per_tok"))
    inner = own.count("moe_intermediate_size")
    return _llama(own, name, source, _Descendant(head_norm=True, experts=experts, inner=inner))


def _phi3(own: _Fields, name: str, source: str) -> LanguageModel:
    window = own.window(default=None, used=True)
    return _llama(own, name, source, _Descendant(fused=True, window=window))


def _gemma(own: _Fields, name: str, source: str) -> LanguageModel:
    return _llama(
        own, name, source, _Descendant(tied=True, activation="gelu_pytorch_tanh", width=256)
    )


def _split(own: _Fields, hidden: int, heads: int) -> int:
    if hidden % heads:
        raise WorkloadError(f"{own.name}: {heads} heads must share {hidden} elements evenly")
    return hidden // heads


_READERS: dict[str, Callable[[_Fields, str, str], LanguageModel]] = {
    "gemma": _gemma,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "opt": _opt,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
}


__all__ = ["from_config", "read_config"]
