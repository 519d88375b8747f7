"""A network by its name, or from its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workloads.builtin import builtin, networks
from workloads.errors import unknown_name
from workloads.layers import Network
from workloads.names import printable
from workloads.packaged import packaged, packaged_names

__all__ = ["network_named", "network_names"]


def network_names() -> tuple[str, ...]:
    """Of the built-in networks and of the trained ones, whether their packages are there or not."""
    return (*networks(), *packaged_names())


def network_named(name: str) -> Network:
    """A built-in network, a trained one of an installed package, or that of an ONNX or TFLite file.

    Raises `WorkloadError` for any other name (it lists the nearest), and as `import_onnx` does.
    """
    if name in networks():
        return builtin(name)
    known = name in packaged_names()
    path = Path(name)
    if not known and path.suffix not in (".onnx", ".tflite") and not path.is_file():
        raise unknown_name("network", name, network_names())
    from workloads.onnx_import import import_onnx

    if path.suffix == ".tflite":
        from workloads.tflite_model import read_tflite

        return replace(import_onnx(read_tflite(path, name=path.stem)), source=printable(str(path)))
    return import_onnx(packaged(name).model(), name=name) if known else import_onnx(path)
