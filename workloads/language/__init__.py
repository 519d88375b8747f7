"""Decoder-only language models: from a `config.json` to the layers of a prefill or a decoding."""

from workloads.language.hugging_face import read_config
from workloads.language.model import Attention, Experts, LanguageModel
from workloads.language.network import decode, prefill
from workloads.language.shipped import language_model, language_models

__all__ = [
    "Attention",
    "Experts",
    "LanguageModel",
    "decode",
    "language_model",
    "language_models",
    "prefill",
    "read_config",
]
