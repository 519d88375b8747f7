"""From the words on the command line to a network and its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from archsim.array_files import load_npz
from archsim.errors import InputError, nearest, require, require_seed
from archsim.importers import file_endings, is_network_file, read_file
from archsim.layer.intake import Drawing, Intake
from archsim.simulate import Source
from workloads.digits import whole
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network
from workloads.named import has_shapes_only, network_names, shapes_named
from workloads.names import printable
from workloads.onnx_model import dims_of_inputs, load_model
from workloads.onnx_operands import ModelOperands, Request
from workloads.operands import Operands
from workloads.packaged import packaged, packaged_names
from workloads.requests import requested
from workloads.sparse import prune_convolutions
from workloads.training_record import Training

if TYPE_CHECKING:
    import onnx

    from workloads.training.captured import Capture

LARGEST_BATCH = (1 << 16) - 1
"""The images that a layer's command counts."""

OperandChoice = Literal["auto", "real", "synthetic", "none"]


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions:
    """What a user can say of a workload beside its name.

    as_words: operands are to cross the ports of a core, so that a quantised file's integers, whose
    zero points and scales a core need not have, are quantised again.
    capture: a file of `archsim capture`, whose zeros the operands of a training step have.
    """

    dims: tuple[str, ...] = ()
    batch: int | None = None
    skip_unsupported: bool = False
    operands: OperandChoice = "auto"
    density: float = 1.0
    prune: float | None = None
    distribution: Literal["uniform", "normal"] = "uniform"
    seed: int = 0
    input_file: Path | None = None
    as_words: bool = False
    capture: Path | None = None

    def __post_init__(self) -> None:
        require(
            0 < self.density <= 1,
            f"--density must be above 0 and at most 1, not {self.density:g}",
        )
        require(
            self.prune is None or 0 < self.prune <= 1,
            f"--prune must be above 0 and at most 1, not {self.prune}",
        )
        require_seed(self.seed)
        require(
            self.batch is None or 1 <= self.batch <= LARGEST_BATCH,
            f"--batch must be from 1 to {LARGEST_BATCH}, not {self.batch}",
        )

    @property
    def dim_values(self) -> dict[str, int]:
        """The dynamic dimensions given as NAME=SIZE."""
        values: dict[str, int] = {}
        for text in self.dims:
            name, _, size = text.partition("=")
            number = whole(size)
            if not (name and number):
                raise InputError(f"--dim takes NAME=SIZE with a positive size, not {text[:60]!r}")
            require(name not in values, f"--dim {name[:60]} is said twice")
            values[name] = number
        return values


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A network, its model where there is one, and what feeds it."""

    network: Network
    model: onnx.ModelProto | Path | None = None
    feeds: Callable[[], dict[str, Any]] | None = None
    options: WorkloadOptions = field(default_factory=WorkloadOptions)
    captured: Capture | None = None

    def operands(self, intake: Intake) -> Source | None:
        """Where the operands of each layer for such a core come from; None for timing only."""
        options, choice = self.options, self._choice
        if choice == "none":
            return None
        drawing = Drawing(
            density=options.density, distribution=options.distribution, seed=options.seed
        )
        if choice == "synthetic":
            require(
                options.prune is None,
                f"--prune is of real weights, and those of {self.network.name} are drawn: "
                "say --density",
            )
            if self.network.training is not None:
                return self._of_training(self.network.training, intake.source_bits)
            return lambda layer: intake.synthetic(layer, drawing)
        require(
            options.density == 1 or self.feeds is None,
            f"--density is of synthetic operands, and {self.network.name} has real ones; "
            "say --operands synthetic",
        )
        model, feeds = self._real(choice)
        source = ModelOperands(
            model,
            feeds,
            Request(
                bits=intake.source_bits,
                draw=lambda layer: intake.synthetic(layer, drawing),
                dims=options.dim_values,
                skip_unsupported=options.skip_unsupported,
                as_file=intake.whole_files and not options.as_words,
            ),
        )
        if options.prune is None:
            return source
        remark = f", weights of convolutions pruned to {options.prune:g}"

        def pruned(layer: Conv2d | MatMul) -> Operands:
            found = source(layer)
            return replace(found, scheme=found.scheme + remark)

        return pruned

    @property
    def _choice(self) -> str:
        """real, weights (of the file, with drawn activations), synthetic or none."""
        choice = self.options.operands
        if choice != "auto":
            return choice
        if self.model is None:
            return "synthetic"
        return "real" if self.feeds is not None else "weights"

    def _real(self, choice: str) -> tuple[onnx.ModelProto | Path, dict[str, Any] | None]:
        """The model, pruned if asked, and its inputs; None where activations are drawn."""
        model = self.model
        if model is None or (choice == "real" and self.feeds is None):
            shapes = "shapes only" if model is None else "no input"
            raise InputError(
                f"{self.network.name} has {shapes}: real operands need an ONNX file with "
                f"--input FILE.npz, or one of: {', '.join(packaged_names())}"
            )
        if self.options.prune is not None:
            model = prune_convolutions(load_model(model), self.options.prune)
        return model, self.feeds() if self.feeds is not None and choice == "real" else None

    def _of_training(self, training: Training, bits: int) -> Source:
        """Captured, or drawn; what is not known of zeros is --density behind every ReLU."""
        from workloads.training.activity import Activity
        from workloads.training.captured import CapturedStep
        from workloads.training.drawn import DrawnStep

        step, seed = training.step, self.options.seed
        if step is None:
            raise InputError("operands are drawn of a training step that is made here")
        known, density = step.activity, self.options.density
        require(
            density == 1 or known is None,
            "--density is for steps of which no densities are known; say training,density=PERCENT",
        )
        activity = known or Activity.even(step.backward.network, density)
        if self.captured is not None:
            return CapturedStep(
                step=step, activity=activity, bits=bits, seed=seed, capture=self.captured
            )
        return DrawnStep(step=step, activity=activity, bits=bits, seed=seed)


def load_workload(name: str, options: WorkloadOptions) -> Workload:
    """A built-in network or language model, a trained one of an installed package, or a file's."""
    from workloads.onnx_import import import_onnx

    shapes_only = has_shapes_only(name)
    if options.capture is not None:
        return _with_capture(name, options.capture, options)
    if shapes_only or name in packaged_names():
        require(options.input_file is None, f"--input is for ONNX files; {name} has none")
    if shapes_only:
        require(not options.dims, f"--dim is for ONNX files; say {name}:NAME=SIZE")
        return Workload(network=shapes_named(name, batch=options.batch), options=options)
    if name in packaged_names():
        _refuse_batch(name, options)
        entry = packaged(name)
        model = entry.model()
        dims, skip = options.dim_values, options.skip_unsupported
        network = import_onnx(model, name=name, dims=dims, skip_unsupported=skip)
        return Workload(network=network, model=model, feeds=entry.input, options=options)
    return _of_file(name, options)


def _with_capture(name: str, path: Path, options: WorkloadOptions) -> Workload:
    """A training step with the zeros of a captured one."""
    from archsim.capture_file import read_capture
    from workloads.training.captured import known_step

    base, settings = requested(name)
    require(
        "training" in settings,
        f"--capture is of training steps: say {base}:training,batch=… as it was captured",
    )
    said = next((word for word in ("epoch", "density", "clustering") if word in settings), None)
    require(said is None, f"say {said} or --capture, not both")
    workload = load_workload(name, replace(options, capture=None))
    training = workload.network.training
    if training is None or training.step is None:
        raise InputError(f"{name} has no training step that could be captured")
    require(options.operands != "real", "operands of a capture are drawn at its places, not real")
    captured = read_capture(path)
    try:
        network = known_step(training.step, captured).network
    except WorkloadError as error:
        raise InputError(f"{path}: {error}") from error
    return replace(workload, network=network, options=options, captured=captured)


def _of_file(name: str, options: WorkloadOptions) -> Workload:
    """The network of a file in any format that is known, but for those without values."""
    from workloads.onnx_import import import_onnx

    base, settings = requested(name)
    path = Path(name)
    require(
        not settings or base not in packaged_names(),
        f"{base}: only built-in networks and language models take {', '.join(settings)}",
    )
    if not is_network_file(base) and not path.exists():
        files = f"(or give a file: {', '.join(file_endings())})"
        raise InputError(f"no workload {base!r}; {nearest(base, network_names())} {files}")
    require(
        not settings or path.exists(),
        f"{base}: only built-in networks and language models take {', '.join(settings)}; files "
        "take --dim",
    )
    _refuse_batch(name, options)
    model = read_file(path)
    if isinstance(model, Network):
        require(not options.dims, f"--dim is for ONNX files; {name} has all its sizes")
        require(options.input_file is None, f"--input is for ONNX files; {name} has shapes only")
        return Workload(network=model, options=options)
    feeds = _file_feeds(options.input_file) if options.input_file else None
    dims = options.dim_values
    if feeds is not None:
        dims = {**dims_of_inputs(load_model(model), feeds()), **dims}
    network = import_onnx(model, dims=dims, skip_unsupported=options.skip_unsupported)
    if model is not path:
        network = replace(network, source=printable(str(path)))
    return Workload(network=network, model=model, feeds=feeds, options=options)


def _refuse_batch(name: str, options: WorkloadOptions) -> None:
    require(
        options.batch is None,
        f"--batch is for built-in networks; {name} has dimensions of its own: say --dim",
    )


def _file_feeds(path: Path) -> Callable[[], dict[str, Any]]:
    """The arrays of an .npz file, by input name."""

    return lambda: dict(load_npz(path))
