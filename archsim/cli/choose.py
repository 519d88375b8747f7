"""From the words on the command line to a network and its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from archsim.core.numerics import Drawing, Intake
from archsim.errors import InputError, nearest, require
from archsim.simulate import Source
from workloads.builtin import builtin, networks
from workloads.layers import Network
from workloads.onnx_model import load_model
from workloads.operands import Operands, from_onnx
from workloads.packaged import packaged, packaged_names
from workloads.sparse import prune_convolutions

if TYPE_CHECKING:
    import onnx

OperandChoice = Literal["auto", "real", "synthetic", "none"]


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions:
    """What a user can say of a workload beside its name."""

    dims: tuple[str, ...] = ()
    skip_unsupported: bool = False
    operands: OperandChoice = "auto"
    density: float = 1.0
    prune: float | None = None
    distribution: Literal["uniform", "normal"] = "uniform"
    seed: int = 0
    input_file: Path | None = None

    def __post_init__(self) -> None:
        require(
            0 < self.density <= 1,
            f"--density must be above 0 and at most 1, not {self.density:g}",
        )
        require(
            self.prune is None or 0 < self.prune <= 1,
            f"--prune must be above 0 and at most 1, not {self.prune}",
        )
        require(self.seed >= 0, f"--seed must not be negative, not {self.seed}")

    @property
    def dim_values(self) -> dict[str, int]:
        """The dynamic dimensions given as NAME=SIZE."""
        values: dict[str, int] = {}
        for text in self.dims:
            name, _, size = text.partition("=")
            if not (name and size.isascii() and size.isdigit() and int(size) > 0):
                raise InputError(f"--dim takes NAME=SIZE with a positive size, not {text!r}")
            values[name] = int(size)
        return values


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A network, its model where there is one, and what feeds it."""

    network: Network
    model: onnx.ModelProto | Path | None = None
    feeds: Callable[[], dict[str, Any]] | None = None
    options: WorkloadOptions = field(default_factory=WorkloadOptions)

    def operands(self, intake: Intake) -> Source | Mapping[str, Operands] | None:
        """Where the operands of each layer for such a core come from; None for timing only."""
        options = self.options
        choice = options.operands
        if choice == "auto":
            choice = "real" if self.feeds is not None else "synthetic"
        if choice == "none":
            return None
        require(
            choice == "real" or options.prune is None,
            f"--prune is of real weights, and those of {self.network.name} are drawn: "
            "say --density",
        )
        if choice == "synthetic":
            drawing = Drawing(
                density=options.density, distribution=options.distribution, seed=options.seed
            )
            return lambda layer: intake.synthetic(layer, drawing)
        require(
            options.density == 1,
            f"--density is of synthetic operands, and {self.network.name} has real ones; "
            "say --operands synthetic",
        )
        if self.model is None or self.feeds is None:
            raise InputError(
                f"{self.network.name} has shapes only: real operands need an ONNX file with "
                f"--input FILE.npz, or one of: {', '.join(packaged_names())}"
            )
        model = self.model
        if options.prune is not None:
            model = prune_convolutions(load_model(model), options.prune)
        found = from_onnx(model, self.feeds(), bits=intake.source_bits, dims=options.dim_values)
        if options.prune is None:
            return found
        remark = f", weights of convolutions pruned to {options.prune:g}"
        return {name: replace(one, scheme=one.scheme + remark) for name, one in found.items()}


def load_workload(name: str, options: WorkloadOptions) -> Workload:
    """A built-in network, a trained one from an installed package, or an ONNX file."""
    from workloads.onnx_import import import_onnx

    shapes_only = name in networks()
    if shapes_only or name in packaged_names():
        require(options.input_file is None, f"--input is for ONNX files; {name} is built in")
    if shapes_only:
        require(not options.dims, f"--dim is for ONNX files; {name} is built in")
        return Workload(network=builtin(name), options=options)
    if name in packaged_names():
        entry = packaged(name)
        model = entry.model()
        dims, skip = options.dim_values, options.skip_unsupported
        network = import_onnx(model, name=name, dims=dims, skip_unsupported=skip)
        return Workload(network=network, model=model, feeds=entry.input, options=options)
    path = Path(name)
    if path.suffix != ".onnx" and not path.exists():
        known = [*networks(), *packaged_names()]
        raise InputError(f"no workload {name!r}; {nearest(name, known)} (or give an ONNX file)")
    network = import_onnx(path, dims=options.dim_values, skip_unsupported=options.skip_unsupported)
    feeds = _file_feeds(options.input_file) if options.input_file else None
    return Workload(network=network, model=path, feeds=feeds, options=options)


def _file_feeds(path: Path) -> Callable[[], dict[str, Any]]:
    """The arrays of an .npz file, by input name."""

    def load() -> dict[str, Any]:
        try:
            arrays: Any = np.load(path, allow_pickle=False)
            if not isinstance(arrays, NpzFile):
                raise InputError(f"{path} holds one array; an .npz names each input's array")
            with arrays:
                return {str(key): arrays[key] for key in arrays.files}
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, EOFError, BadZipFile) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is not an .npz file of input arrays: {error}") from error

    return load
