"""A network by its name, or from its file.

A built-in network's name may be followed by sizes: `bert-base:tokens=128,batch=8`.  A language
model, built in or of a `config.json`, is asked for `prefill=TOKENS` or `decode=CONTEXT`.  With
`training` it is a step of its training (`workloads.training.asked`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from workloads.builtin import builtin, networks
from workloads.errors import WorkloadError, unknown_name
from workloads.language.network import decode, prefill
from workloads.language.shipped import language_model, language_models
from workloads.layers import Network
from workloads.names import printable
from workloads.packaged import packaged, packaged_names
from workloads.requests import requested
from workloads.training.asked import WORDS, taken_training

__all__ = [
    "FORMATS",
    "has_shapes_only",
    "is_network",
    "network_named",
    "network_names",
    "shapes_named",
]

PROMPT = 512
"""Tokens of the prefill that a language model stands for where nothing is asked of it."""

FORMATS = {
    "onnx": "ONNX models, with their weights",
    "tflite": "TFLite models, likewise",
    "json": "a language model's config.json, without values",
}
"""What files of networks end with, without the dot, and what they are."""

_FILES = tuple(f".{ending}" for ending in FORMATS)


def network_names() -> tuple[str, ...]:
    """Of the built-in networks and of the trained ones, whether their packages are there or not."""
    return (*networks(), *language_models(), *packaged_names())


def is_network(text: str) -> bool:
    """Whether a text names a network, or a file that may hold one."""
    name, _ = requested(text)
    return name in network_names() or Path(name).suffix in _FILES


def has_shapes_only(text: str) -> bool:
    """Whether a text names a network without values: a built-in one or a language model."""
    name, _ = requested(text)
    return name in (*networks(), *language_models()) or Path(name).suffix == ".json"


def shapes_named(text: str, *, batch: int | None = None) -> Network:
    """A network without values, by name or `config.json`, with what is asked of it.

    batch: where the name says none.  Raises WorkloadError.
    """
    name, settings = requested(text)
    if batch is not None:
        if "batch" in settings:
            raise WorkloadError(f"{text}: the batch is said twice: {batch} too")
        settings["batch"] = batch
    asked = taken_training(name, settings)
    if name in networks():
        others = WORDS if asked is not None else ("training",)
        network = builtin(name, parameters=settings, others=others)
        network = replace(network, source=_said(network.source, settings))
        return network if asked is None else asked.step_of(network)
    if asked is not None:
        raise WorkloadError(f"{name}: the training of language models is not known here")
    return _language(name, settings)


def network_named(text: str) -> Network:
    """A built-in network, a trained one of an installed package, or that of a file.

    Raises `WorkloadError` for any other name (it lists the nearest), and as `import_onnx` does.
    """
    if has_shapes_only(text):
        return shapes_named(text)
    name, settings = requested(text)
    known = name in packaged_names()
    path = Path(name)
    if not known and path.suffix not in _FILES and not path.is_file():
        raise unknown_name("network", name, network_names())
    if settings:
        raise WorkloadError(
            f"{name}: only built-in networks and language models take {', '.join(settings)}"
        )
    from workloads.onnx_import import import_onnx

    if path.suffix == ".tflite":
        from workloads.tflite_model import read_tflite

        return replace(import_onnx(read_tflite(path, name=path.stem)), source=printable(str(path)))
    return import_onnx(packaged(name).model(), name=name) if known else import_onnx(path)


def _said(source: str, settings: Mapping[str, int]) -> str:
    return "; ".join([source, *(f"{key} {value}" for key, value in settings.items())])


def _language(name: str, settings: dict[str, int]) -> Network:
    """A language model's prefill or decoding step.  Raises WorkloadError."""
    known = ("prefill", "decode", "batch", "experts")
    for key in settings:
        if key not in known:
            raise WorkloadError(
                f"{name}: a language model is asked for {', '.join(known)}, not for {key}"
            )
    if "prefill" in settings and "decode" in settings:
        raise WorkloadError(f"{name}: say prefill or decode, not both")
    if name in language_models():
        model = language_model(name)
    else:
        from workloads.language.hugging_face import read_config

        model = read_config(Path(name))
    batch, experts = settings.get("batch", 1), settings.get("experts")
    if "decode" in settings:
        return decode(model, settings["decode"], batch=batch, experts=experts)
    tokens = settings.get("prefill", min(PROMPT, model.positions))
    return prefill(model, tokens, batch=batch, experts=experts)
