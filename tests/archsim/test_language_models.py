"""Decoding steps on machines: as long as their bytes take to cross, where these rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Call

from archsim import simulate
from archsim.machine.registry import load_design, with_settings
from workloads.named import network_named


@pytest.mark.parametrize("workload", ["llama3-8b:decode=2048", "mixtral-8x7b:decode=8192"])
def test_decoding_takes_as_long_as_its_bytes(workload: str) -> None:
    design = with_settings(load_design("cloud-128"), ["off_chip.bytes_per_cycle=64"])
    network = network_named(workload)
    assert network.kv_cache is not None
    least = (network.weight_elements + network.kv_cache.elements) / 64
    assert least <= simulate(design, network).cycles <= 1.02 * least


def test_a_batch_reads_its_matrices_once_and_its_caches_each() -> None:
    one, four = (network_named(f"tinyllama:decode=512,batch={batch}") for batch in (1, 4))
    assert one.kv_cache is not None and four.kv_cache is not None
    moved = [simulate("edge-16", network).bytes_moved["weight"] for network in (one, four)]
    assert moved[1] - moved[0] == 3 * one.kv_cache.elements
    assert four.kv_cache.elements == 4 * one.kv_cache.elements


@pytest.mark.parametrize(
    ("design", "bits", "fill"), [("edge-16", 8, 1), ("cloud-128", 8, 2), ("vsq-5nm", 4.125, 1)]
)
def test_the_cache_is_kept_read_and_appended(design: str, bits: float, fill: int) -> None:
    """In the machine's own width, a vector's share of its scale included; words of 128 lanes are
    half empty where a head has 64 elements, but for those of the scores."""
    result = simulate(design, network_named("gpt2:decode=256,batch=2"))
    found, kept = result.kv_cache, 2 * 12 * 12 * 64 * 256 * 2
    assert found is not None and (found.elements, found.appended_elements) == (kept, kept // 256)
    assert found.footprint_bytes == kept * bits / 8 == 256 * found.appended_bytes
    assert found.read_bytes == found.footprint_bytes * (1 + fill) / 2
    assert json.loads(result.to_json())["kv_cache"]["read_bytes"] == found.read_bytes
    assert simulate(design, network_named("squeezenet1.1")).kv_cache is None


def test_commands_ask_for_a_phase(archsim: Call, tmp_path: Path) -> None:
    plain = archsim("run", "edge-16", "gpt2:decode=64", "--batch", 2, "--timing-only")
    kept = 2 * 12 * 12 * 64 * 64 * 2
    wanted = f"KV cache: {kept:,} bytes kept off the chip; {kept:,} read, {kept // 64:,} appended"
    assert wanted in plain.out
    said = archsim("run", "edge-16", "gpt2:decode=64", "--batch", 2, "--timing-only", "--json")
    result = json.loads(said.out)
    assert said.code == 0 and result["network"] == "gpt2"
    assert "decoding at a context of 64 tokens, 2 sequences" in result["network_source"]
    assert "layer11/ffn/down" in archsim("show", "gpt2:decode=64", "--wide").out
    assert archsim("run", "edge-16", "bert-base:tokens=7", "--timing-only").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gpt2:decode=2048"], "at most 1,024 tokens, not 2,048"),
        (["gpt2:decode=8,batch=2", "--batch", "3"], "said twice"),
        (["gpt2:decode=8", "--dim", "n=1"], "--dim is for ONNX files"),
        (["lama:decode=8"], "did you mean tinyllama"),
        (["folder/config.json"], "No such file"),
        (["other.onnx:decode=8"], "only built-in networks and language models take decode"),
    ],
)
def test_what_cannot_be_asked(archsim: Call, words: list[str], said: str) -> None:
    answer = archsim("run", "edge-16", *words, "--timing-only")
    assert answer.code == 2 and said in answer.err.replace("\n", " ")
