"""What `archsim compress` compresses: the tensors of a network, or an array from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from archsim.array_files import load_npy
from archsim.cli.choose import Workload, WorkloadOptions, load_workload
from archsim.compression import StoredTensor, drawn, has_relu, tensors_of
from archsim.errors import InputError, nearest, require
from workloads.layers import Conv2d, MatMul
from workloads.names import printable
from workloads.onnx_operands import ModelOperands, Request
from workloads.operands import Operands, synthetic
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
    values, name = load_npy(path), printable(path.name)
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
        layer=name,
        kind="activations",
        values=values,
        aligned_axes=max(values.ndim - 1, 0) if aligned_axes is None else aligned_axes,
        signed=bool((values < 0).any()),
        origin="real",
    )
    return Source(name=name, tensors=iter([tensor]), layers=1, says=says)


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
    if options.operands == "real" or (options.operands == "auto" and work.model is not None):
        return _of_model(work, bits, kept)
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


def _of_model(work: Workload, bits: int, kept: Sequence[Conv2d | MatMul]) -> Source:
    """Weights of the model; its activations on a real input, or drawn ones without."""
    name, options = work.network.name, work.options
    require(
        options.density == 1 or work.feeds is None,
        f"--density is of drawn tensors, and {name} has real ones; say --operands synthetic",
    )
    if work.model is None or (work.feeds is None and options.operands == "real"):
        raise InputError(
            f"{name} has shapes only: real tensors need an ONNX file with --input FILE.npz, "
            "or a packaged network (`archsim list workloads`)"
        )
    feeds = None if work.feeds is None else work.feeds()
    request = Request(
        bits=bits,
        draw=_drawing(work, bits),
        dims=options.dim_values,
        skip_unsupported=options.skip_unsupported,
    )
    operands = ModelOperands(work.model, feeds, request)
    says = "all real: weights, and activations of one input"
    if feeds is None:
        says = (
            f"weights of the model; activations drawn ({options.distribution}, density "
            f"{options.density:g}, seed {options.seed}), as no --input is given"
        )
    tensors = (one for layer in kept for one in _tensors(layer, operands(layer)))
    return Source(
        name=name,
        tensors=tensors,
        layers=len(kept),
        says=f"{says}; {SCHEME}, {bits} bits; a quantised file's integers as they are",
    )


def _drawing(work: Workload, bits: int) -> Callable[[Conv2d | MatMul], Operands]:
    """What draws the operands of a layer: activations behind a ReLU are not negative."""
    positive, options = has_relu(work.network), work.options
    first = work.network.matrix_layers[0].name

    def draw(layer: Conv2d | MatMul) -> Operands:
        drawn = synthetic(
            layer,
            bits=bits,
            density=options.density,
            distribution=options.distribution,
            seed=options.seed,
        )
        return (
            replace(drawn, ifmap=np.abs(drawn.ifmap)) if positive and layer.name != first else drawn
        )

    return draw


def _tensors(layer: Conv2d | MatMul, operands: Operands) -> list[StoredTensor]:
    found = tensors_of(layer, operands, "real")
    origins = [operands.weight_origin] * (len(found) - 1) + [operands.ifmap_origin]
    return [
        replace(tensor, origin="drawn") if origin == "drawn" else tensor
        for tensor, origin in zip(found, origins, strict=True)
    ]
