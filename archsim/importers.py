"""Networks by name or from files, those of formats that packages add among them.

An entry of the group `archsim.importers` is called as its files end, without the dot ("csv"), and
names a function of the file's path.  It gives a `workloads.Network`, which has shapes only, or an
ONNX model, from which everything is made that is made of an ONNX file: layers, weights, a run.  For
a file that it cannot read it raises `WorkloadError`, one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archsim.errors import InputError
from archsim.plugins import needed, no_call, others, package_of, used
from workloads.errors import WorkloadError
from workloads.layers import Network
from workloads.named import FORMATS, is_network, network_named

if TYPE_CHECKING:
    import onnx

GROUP = "archsim.importers"


def importers() -> Mapping[str, EntryPoint]:
    """The importers that packages add, by what their files end with, not yet loaded."""
    return others(GROUP, FORMATS)


def file_endings() -> tuple[str, ...]:
    """What files of networks end with: ".onnx"."""
    return tuple(f".{one}" for one in (*FORMATS, *importers()))


def is_network_file(name: str) -> bool:
    """Whether a name ends as files of networks do."""
    return Path(name).suffix in file_endings()


def read_file(path: Path) -> Network | onnx.ModelProto | Path:
    """A file's network, its ONNX model, or, of an ONNX file, the path itself.

    Raises `WorkloadError` for a file that cannot be read, and `InputError` where an importer of
    another package is broken, with its name.
    """
    entry = importers().get(path.suffix.removeprefix("."))
    if entry is not None:
        return _imported(entry, path)
    if path.suffix != ".tflite":
        return path
    from workloads.tflite_model import read_tflite

    return read_tflite(path, name=path.stem)


def _imported(entry: EntryPoint, path: Path) -> Any:
    where = f"{path}: {entry.name} ({entry.group}) of package {package_of(entry)}"
    with used(where, InputError, InputError, WorkloadError, OSError):
        found = needed(entry, no_call)(path)
    if not (isinstance(found, Network) or hasattr(found, "graph")):
        what = type(found).__name__
        raise InputError(f"{where} must give a Network or an ONNX model, not {what}")
    return found


def any_network(name: str) -> Network:
    """A built-in network, a trained one, or that of a file of any known format.

    Raises as `workloads.named.network_named`, and as `read_file`.
    """
    path = Path(name)
    if is_network(name) or path.suffix.removeprefix(".") not in importers():
        return network_named(name)
    found = read_file(path)
    if isinstance(found, Network):
        return found
    from workloads.onnx_import import import_onnx

    return import_onnx(found)


__all__ = ["GROUP", "any_network", "file_endings", "importers", "is_network_file", "read_file"]
