"""A whole network in integers, its matrix layers computed by whoever is asked to.

Weights and activations are symmetric per tensor; an activation's scale is calibrated from one
float run in ONNX Runtime. ReLU, Clip, MaxPool and views keep the scale of what they read;
Concat, Add, Mul and averages rescale to their result's. An InstanceNormalization is computed in
float from integers to integers; only a Softmax at the end leaves float.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.integer_execution import Execution, MatrixFunction
from workloads.integer_operators import Levels
from workloads.onnx_import import Trace, trace
from workloads.onnx_model import dims_of_inputs, load_model, runtime_inputs
from workloads.onnx_runtime import capture
from workloads.operands import Operands
from workloads.quantize import Floats, Integers, quantize_at, scale_of

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerRun:
    """What a network computed in integers, beside the float reference.

    `tensors` are the integers each layer gave, by layer name, in order, and `scales` theirs;
    `operands` those of each matrix layer. `output` is the first output of the network in real
    numbers, `reference` what ONNX Runtime computes for it in float. `layer_errors` is, for each
    layer, the RMS of its error against the float run divided by the RMS of the float values.
    """

    tensors: Mapping[str, Integers]
    scales: Mapping[str, float]
    operands: Mapping[str, Operands]
    output: NDArray[np.float64]
    reference: Floats
    layer_errors: Mapping[str, float]

    @property
    def max_error(self) -> float:
        """Largest absolute difference of `output` from `reference`."""
        return float(np.max(np.abs(self.output - self.reference)))

    @property
    def same_top1(self) -> bool:
        """Whether the largest output is at the same place as in the reference."""
        return int(self.output.argmax()) == int(self.reference.argmax())


def run_integer(
    model: str | Path | onnx.ModelProto,
    image: Floats,
    *,
    bits: int = 8,
    matmul: MatrixFunction,
    calibration: Floats | None = None,
) -> IntegerRun:
    """Run a network with one input in integers, end to end.

    `matmul(layer, operands)` must return the layer's integer ofmap ([N, K, P, Q] or [batch, M,
    N]) as `workloads.quantize.requantize` makes it: bias added, scaled, ReLU if `layer.relu`,
    saturated to `bits`. Scales are calibrated on `calibration` (default: `image`). Raises
    WorkloadError for an unsupported operator, a network of several inputs, and an ofmap of
    another shape or of no integers.
    """
    loaded = load_model(model)
    names = [value.name for value in runtime_inputs(loaded)]
    if len(names) != 1:
        raise WorkloadError(f"{loaded.graph.name}: one input is needed, not {len(names)}")
    sizes = dims_of_inputs(loaded, {names[0]: image})
    traced = trace(loaded, dims=sizes)
    reals = _float_run(traced, {names[0]: image})
    measured = reals if calibration is None else _float_run(traced, {names[0]: calibration})
    run = Execution(traced, matmul, measured, bits)
    run.levels[names[0]] = Levels(
        values=quantize_at(image, scale_of(measured[names[0]], bits), bits),
        scale=scale_of(measured[names[0]], bits),
    )
    run.execute(reals)
    last = traced.model.graph.output[0].name
    output = run.floats[last] if last in run.floats else run.levels[last].real
    return IntegerRun(
        tensors=run.tensors,
        scales=run.scales,
        operands=run.operands,
        output=output,
        reference=reals[last],
        layer_errors=run.errors,
    )


def _float_run(traced: Trace, inputs: dict[str, Floats]) -> dict[str, NDArray[Any]]:
    nodes = [node for node, _ in traced.steps]
    names = [name for node in nodes for name in (*node.input, node.output[0]) if name]
    return capture(traced.model, inputs, names)
