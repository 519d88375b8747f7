"""Workloads: what is to be computed, as shapes and as integer operands.

* `layers` - `Conv2d`, `MatMul`, `VectorWork`, `Network`: shapes, MACs, elements, bytes
* `builtin` - `networks()`, `builtin(name)`: the networks which come with the package
* `onnx_import` - `import_onnx`: networks from ONNX models
* `operands` - `Operands`, `synthetic`, `from_onnx`: values for a layer's tensors
* `sparse` - operands of given densities, clustered zeros, magnitude pruning
* `packaged` - trained networks and photographs in installed packages
* `file_scaling` - `FileScaling`: how a quantised file's sums become its integers
* `quantize` - symmetric quantisation and the integer requantisation
* `reference` - layers in plain NumPy
* `pooling` - `MaxPool`, `max_pool`: max pooling behind a layer
* `integer_network` - `run_integer`: a whole network in integers beside ONNX Runtime's floats
* `errors` - `WorkloadError`, raised on all bad input

Below them: `checks`, `optional`, `tensor_bytes`, `vector_work`, `recurrent` serve all;
`notation`, `notation_operators` read the built-in networks; `onnx_model`, `onnx_graph`,
`onnx_operators`, `onnx_matrix`, `onnx_contrib`, `onnx_constants`, `onnx_runtime`, `onnx_values`,
`onnx_recurrent`, `onnx_operands` read and run models; `onnx_inference`, `onnx_branches`,
`onnx_folding`, `onnx_types` find shapes; `affine`, `operand_parts`, `operand_making`
make their operands; `tflite_file`, `tflite_nodes`, `tflite_model` read TFLite; `integer_execution`,
`integer_operators` run them in integers; `squeezenet` builds the packaged SqueezeNet.

The names below are imported with the package; `builtin`, `packaged` and `integer_network` are
imported from their modules, as is everything else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workloads.errors import WorkloadError
    from workloads.layers import Conv2d, Layer, MatMul, Network, VectorWork
    from workloads.onnx_import import import_onnx
    from workloads.operands import Operands, from_onnx, synthetic
    from workloads.quantize import quantize_symmetric, requantize, requantize_parameters

_HOMES = {
    "WorkloadError": "errors",
    "Conv2d": "layers",
    "Layer": "layers",
    "MatMul": "layers",
    "Network": "layers",
    "VectorWork": "layers",
    "import_onnx": "onnx_import",
    "Operands": "operands",
    "from_onnx": "operands",
    "synthetic": "operands",
    "quantize_symmetric": "quantize",
    "requantize": "quantize",
    "requantize_parameters": "quantize",
}
"""Where each name is from: modules are imported when a name of theirs is asked for."""

__all__ = [
    "Conv2d",
    "Layer",
    "MatMul",
    "Network",
    "Operands",
    "VectorWork",
    "WorkloadError",
    "from_onnx",
    "import_onnx",
    "quantize_symmetric",
    "requantize",
    "requantize_parameters",
    "synthetic",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'workloads' has no attribute {name!r}")
    return getattr(import_module(f"workloads.{_HOMES[name]}"), name)
