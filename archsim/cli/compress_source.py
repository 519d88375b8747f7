"""What `archsim compress` compresses: the tensors of a network, or an array from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.cli.choose import Workload, WorkloadOptions, load_workload
from archsim.compression import StoredTensor, drawn, has_relu, tensors_of
from archsim.errors import InputError, nearest, require
from workloads.layers import Conv2d, MatMul
from workloads.operands import from_onnx
from workloads.quantize import SCHEME, quantize_symmetric


@dataclass(frozen=True, kw_only=True)
class Source:
    """Tensors as they come, of how many layers, and what is said of them."""

    name: str
    tensors: Iterator[StoredTensor]
    layers: int
    says: str


def array_source(path: Path, bits: int, aligned_axes: int | None) -> Source:
    """The array of an .npy file, channels last; real numbers are quantised to `bits`."""
    values = _load(path)
    says = "integers as they are"
    if values.dtype.kind == "f":
        require(values.size > 0, f"{path} must hold values, not the shape {values.shape}")
        values, _ = quantize_symmetric(values, bits)
        says = f"real numbers quantised: {SCHEME}, {bits} bits"
    require(
        values.dtype.kind in "iu",
        f"{path} must hold integers or real numbers, not {values.dtype}",
    )
    tensor = StoredTensor(
        layer=path.name,
        kind="activations",
        values=values,
        aligned_axes=max(values.ndim - 1, 0) if aligned_axes is None else aligned_axes,
        signed=bool((values < 0).any()),
        origin="real",
    )
    return Source(name=path.name, tensors=iter([tensor]), layers=1, says=says)


def _load(path: Path) -> npt.NDArray[Any]:
    try:
        values: Any = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not an .npy file of numbers: {error}") from error
    require(isinstance(values, np.ndarray), f"{path} holds several arrays; give an .npy file")
    return values


def network_source(name: str, bits: int, options: WorkloadOptions, wanted: Sequence[str]) -> Source:
    """The tensors of a network's matrix layers, or of those that are wanted.

    Raises InputError for layers that it does not have, and for real tensors where it has none.
    """
    work = load_workload(name, options)
    layers = work.network.matrix_layers
    names = [layer.name for layer in layers]
    for one in wanted:
        require(one in names, f"{work.network.name} has no layer {one!r}; {nearest(one, names)}")
    kept = [layer for layer in layers if layer.name in wanted or not wanted]
    require(bool(kept), f"{work.network.name} has no matrix layers")
    if options.operands == "real" or (options.operands == "auto" and work.feeds is not None):
        return _real(work, bits, kept)
    return _drawn(work, bits, kept)


def _drawn(work: Workload, bits: int, kept: Sequence[Conv2d | MatMul]) -> Source:
    network, options = work.network, work.options
    names = {layer.name for layer in kept}
    tensors = drawn(
        network,
        bits=bits,
        density=options.density,
        distribution=options.distribution,
        seed=options.seed,
        only=names,
    )
    says = (
        f"all drawn ({options.distribution}, density {options.density:g}, seed {options.seed}), "
        "none of a trained network"
    )
    if has_relu(network):
        says += "; activations behind the first layer are not negative, as from a ReLU"
    return Source(name=network.name, tensors=tensors, layers=len(kept), says=says)


def _real(work: Workload, bits: int, kept: Sequence[Conv2d | MatMul]) -> Source:
    name, options = work.network.name, work.options
    require(
        options.density == 1,
        f"--density is of drawn tensors, and {name} has real ones; say --operands synthetic",
    )
    if work.model is None or work.feeds is None:
        raise InputError(
            f"{name} has shapes only: real tensors need an ONNX file with --input FILE.npz, "
            "or a packaged network (`archsim list workloads`)"
        )
    operands = from_onnx(work.model, work.feeds(), bits=bits, dims=options.dim_values)
    found = [layer for layer in kept if layer.name in operands]
    missing = [layer.name for layer in kept if layer.name not in operands]
    require(bool(found), f"{name}: {', '.join(missing)} have no operands in the graph")
    says = f"all real: weights, and activations of one input; {SCHEME}, {bits} bits"
    if missing:
        says += f"; without {', '.join(missing)}, whose operands are no tensors of the graph"
    tensors = (one for layer in found for one in tensors_of(layer, operands[layer.name], "real"))
    return Source(name=name, tensors=tensors, layers=len(found), says=says)
