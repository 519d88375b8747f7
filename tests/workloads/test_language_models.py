"""Language models: published parameters, counted MACs, configurations refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.errors import WorkloadError
from workloads.language import (
    Attention,
    Experts,
    LanguageModel,
    decode,
    language_model,
    language_models,
    prefill,
    read_config,
)
from workloads.language.hugging_face import from_config
from workloads.layers import MatMul
from workloads.named import network_named

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
    "max_position_embeddings": 32,
}  # fmt: skip

PUBLISHED: dict[str, tuple[int, dict[str, Any]]] = {
    # parameters as `model.num_parameters()` of Transformers and the models' cards give them
    "gpt2-xl": (1_557_611_200, {
        "model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
        "vocab_size": 50257}),
    "opt-1.3b": (1_315_758_080, {
        "model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24,
        "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048,
        "word_embed_proj_dim": 2048}),
    "pythia-6.9b": (6_857_302_016, {
        "model_type": "gpt_neox", "hidden_size": 4096, "intermediate_size": 16384,
        "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50432,
        "max_position_embeddings": 2048, "rotary_pct": 0.25}),
    "llama2-7b": (6_738_415_616, {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
        "max_position_embeddings": 4096}),
    "mistral-7b": (7_241_732_096, {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096}),
    "qwen2-0.5b": (494_032_768, {
        "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
        "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
        "vocab_size": 151936, "max_position_embeddings": 131072, "tie_word_embeddings": True}),
    "qwen2-7b": (7_615_616_512, {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 152064, "max_position_embeddings": 131072}),
    "qwen3-8b": (8_190_735_360, {
        "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "head_dim": 128,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 151936, "max_position_embeddings": 40960, "attention_bias": False}),
    "qwen3-30b-a3b": (30_532_122_624, {
        "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
        "moe_intermediate_size": 768, "head_dim": 128, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "num_experts": 128,
        "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 40960,
        "attention_bias": False, "decoder_sparse_step": 1, "mlp_only_layers": []}),
    "phi-3-mini": (3_821_079_552, {
        "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 32064, "max_position_embeddings": 4096, "sliding_window": 2047}),
    "gemma-2b": (2_506_172_416, {
        "model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "head_dim": 256,
        "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1,
        "vocab_size": 256000, "max_position_embeddings": 8192}),
}  # fmt: skip

SHIPPED = {
    "gpt2": 124_439_808,
    "llama3-8b": 8_030_261_248,
    "mixtral-8x7b": 46_702_792_704,
    "tinyllama": 1_100_048_384,
}


def made(**changes: Any) -> LanguageModel:
    return from_config({**LLAMA, **changes}, name="model", source="model")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_parameters(name: str) -> None:
    parameters, entries = PUBLISHED[name]
    assert from_config(entries, name=name, source=name).parameters == parameters


def test_shipped_parameters() -> None:
    found = {name: language_model(name).parameters for name in language_models()}
    assert found == SHIPPED


def test_mixtral_has_13_billion_active_parameters() -> None:
    """As its paper says, section 1: 13B of 47B for a token; the table of the input is looked up."""
    model = language_model("mixtral-8x7b")
    read = decode(model, 1).weight_elements
    assert round((read + model.vocabulary * model.hidden) / 1e9, 1) == 12.9


def test_a_token_of_llama_reads_its_matrices_and_its_cache() -> None:
    network = decode(language_model("llama3-8b"), 8192)
    # all parameters but the table of the input (128,256 x 4,096) and 65 normalisations
    assert network.weight_elements == 8_030_261_248 - 128_256 * 4096 - 65 * 4096
    assert network.kv_cache is not None
    assert network.kv_cache.elements == 2 * 32 * 8 * 128 * 8192  # 1.07 GB in fp16
    assert network.kv_cache.appended == 2 * 32 * 8 * 128
    read = sum(
        layer.weight_elements
        for layer in network.matrix_layers
        if layer.name in network.kv_cache.readers
    )
    assert read == network.kv_cache.elements


small = st.integers(1, 4)


@st.composite
def models(draw: Any) -> LanguageModel:
    keys = draw(small)
    chosen = draw(small)
    return LanguageModel(
        name="drawn",
        source="drawn",
        hidden=draw(st.integers(1, 40)),
        inner=draw(st.integers(1, 50)),
        blocks=draw(small),
        vocabulary=draw(st.integers(1, 90)),
        positions=64,
        attention=Attention(
            heads=keys * draw(small), key_heads=keys, head_width=draw(st.integers(1, 9)),
            window=draw(st.sampled_from([0, 0, 5])), rotary=draw(st.integers(0, 3)),
            fused=draw(st.booleans()), bias=draw(st.booleans()), head_norm=draw(st.booleans()),
        ),
        experts=draw(
            st.sampled_from([None, None, Experts(count=chosen + draw(small), chosen=chosen)])
        ),
        activation=draw(st.sampled_from(["Swish", "Gelu", "Relu"])),
        gated=draw(st.booleans()),
        gate_fused=draw(st.booleans()),
        parallel=draw(st.booleans()),
        position_table=draw(st.sampled_from([0, 64])),
    )  # fmt: skip


@given(model=models(), tokens=st.integers(1, 64), batch=small, one=st.booleans())
def test_macs_are_those_of_the_matrices_and_of_attention(
    model: LanguageModel, tokens: int, batch: int, one: bool
) -> None:
    network = (decode if one else prefill)(model, tokens, batch=batch)
    own, rows = model.attention, batch if one else batch * tokens
    attention = model.hidden * (2 * own.query_width + 2 * own.key_width)
    feed = (3 if model.gated or model.gate_fused else 2) * model.hidden * model.inner
    if model.experts:
        feed = model.experts.chosen * feed + model.hidden * model.experts.count
    weights = rows * model.blocks * (attention + feed)
    logits = batch * model.vocabulary * model.hidden
    seen = min(tokens, own.window) if one and own.window else tokens
    products = 2 * rows * own.query_width * seen * model.blocks
    assert network.macs == weights + logits + products
    names = {layer.name for layer in network.layers}
    assert network.kv_cache is not None and set(network.kv_cache.readers) <= names


@given(model=models(), tokens=st.integers(1, 9), batch=small)
def test_a_mixture_spreads_its_tokens(model: LanguageModel, tokens: int, batch: int) -> None:
    network = prefill(model, tokens, batch=batch)
    rows = [
        layer.m for layer in network.matrix_layers
        if isinstance(layer, MatMul) and "layer0/expert" in layer.name and "down" in layer.name
    ]  # fmt: skip
    if model.experts is None:
        assert not rows
        return
    assert sum(rows) == batch * tokens * model.experts.chosen
    assert len(rows) == min(model.experts.count, sum(rows))
    assert max(rows) - min(rows) <= 1
    fewest = prefill(model, tokens, batch=batch, experts=model.experts.chosen)
    assert fewest.macs == network.macs and fewest.weight_elements <= network.weight_elements


def test_names_ask_for_a_phase(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA))
    model = read_config(file)
    assert model.name == tmp_path.name
    assert network_named(f"{file}:decode=9,batch=3").layers == decode(model, 9, batch=3).layers
    assert network_named(str(file)).layers == prefill(model, 32).layers  # all of its positions
    assert network_named("gpt2").layers == prefill(language_model("gpt2"), 512).layers
    assert "at a context of 9 tokens, 3 sequences" in network_named("gpt2:decode=9,batch=3").source
    assert network_named("bert-base:tokens=128").macs == network_named("bert-base-128").macs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt2:decode=1025", "a sequence has at most 1,024 tokens, not 1,025"),
        ("gpt2:decode=0", "tokens|context must be positive, not 0"),
        ("gpt2:prefill=8,decode=8", "prefill or decode, not both"),
        ("gpt2:decode=8,decode=9", "decode is said twice"),
        ("gpt2:context=8", "asked for prefill, decode, batch, experts, not for context"),
        ("gpt2:decode=-1", "NAME:KEY=NUMBER"),
        ("gpt2:decode=" + 5000 * "9", "NAME:KEY=NUMBER"),
        ("gpt2:decode=8,experts=2", "no experts"),
        ("mixtral-8x7b:decode=8,experts=3", "1 token can go to 2 … 2 experts together, not 3"),
        ("gpt3:decode=8", "nearest: gpt2"),
        ("resnet50:tokens=8", "no parameter is named 'tokens'"),
        ("squeezenet-imagenet:batch=2", "only built-in networks and language models take batch"),
    ],
)
def test_what_cannot_be_asked(text: str, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        network_named(text)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "lama"}, "nearest: .*llama"),
        ({"model_type": None}, "model_type is missing"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": 2.5}, "hidden_size must be positive, not 2.5"),
        ({"num_attention_heads": -4}, "must be positive, not -4"),
        ({"num_attention_heads": True}, "must be positive, not True"),
        ({"num_key_value_heads": 3}, "multiple of the 3"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "head_dim is missing"),
        ({"num_hidden_layers": 10**9}, "layers"),
        ({"vocab_size": 10**30}, "vocabulary must be at most"),
        ({"hidden_act": "cosine"}, "activation"),
        ({"attention_bias": "no"}, "must be true or false"),
        ({"partial_rotary_factor": 2}, "from 0 to 1"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "not modelled"),
    ],
)
def test_configurations_that_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        prefill(made(**changes), 4)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"model_type": 3}'])
def test_files_that_are_no_configurations(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(WorkloadError, match=r"config\.json"):
        read_config(file)
    with pytest.raises(WorkloadError, match="No such file"):
        read_config(tmp_path / "other.json")
