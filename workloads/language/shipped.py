"""The language models which come with the package: their sizes, not their weights."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from workloads.errors import unknown_name
from workloads.language.hugging_face import from_config
from workloads.language.model import LanguageModel

_FOLDER = Path(__file__).parent / "configs"

_SOURCES = {
    "gpt2": "Radford et al.: Language Models are Unsupervised Multitask Learners, 2019, table 2, "
    "the smallest (openai-community/gpt2)",
    "llama3-8b": "Grattafiori et al.: The Llama 3 Herd of Models, arXiv:2407.21783, table 3; "
    "Llama 3 as released in April 2024, 8,192 tokens (meta-llama/Meta-Llama-3-8B)",
    "mixtral-8x7b": "Jiang et al.: Mixtral of Experts, arXiv:2401.04088, table 1 "
    "(mistralai/Mixtral-8x7B-v0.1)",
    "tinyllama": "Zhang et al.: TinyLlama: An Open-Source Small Language Model, arXiv:2401.02385, "
    "table 2, 1.1B (TinyLlama/TinyLlama-1.1B-Chat-v1.0)",
}


@cache
def language_models() -> tuple[str, ...]:
    """Their names, sorted."""
    return tuple(sorted(_SOURCES))


def language_model(name: str) -> LanguageModel:
    """One of them.  Raises WorkloadError for another name (it lists the nearest)."""
    if name not in _SOURCES:
        raise unknown_name("language model", name, language_models())
    entries = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return replace(from_config(entries, name=name, source=name), source=_SOURCES[name])


__all__ = ["language_model", "language_models"]
