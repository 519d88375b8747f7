"""Workloads: what is to be computed, as shapes and as integer operands.

* `layers` - `Conv2d`, `MatMul`, `VectorWork`, `Network`: shapes, MACs, elements, bytes
* `builtin` - `networks()`, `builtin(name)`: the networks which come with the package
* `onnx_import` - `import_onnx`: networks from ONNX models
* `operands` - `Operands`, `synthetic`, `from_onnx`: values for a layer's tensors
* `sparse` - operands of given densities, clustered zeros, magnitude pruning
* `packaged` - trained networks and photographs in installed packages
* `quantize` - symmetric quantisation and the integer requantisation
* `reference` - layers in plain NumPy
* `pooling` - `MaxPool`, `max_pool`: max pooling behind a layer
* `integer_network` - `run_integer`: a whole network in integers beside ONNX Runtime's floats
* `errors` - `WorkloadError`, raised on all bad input

Below them: `checks`, `optional`, `tensor_bytes`, `vector_work`, `recurrent` serve all;
`notation`, `notation_operators` read the built-in networks; `onnx_model`, `onnx_graph`,
`onnx_operators`, `onnx_runtime`, `onnx_operands` read and run models; `integer_execution`,
`integer_operators` run them in integers; `squeezenet` builds the packaged SqueezeNet.

The names below are imported with the package; `builtin`, `packaged` and `integer_network` are
imported from their modules, as is everything else.
"""

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, Layer, MatMul, Network, VectorWork
from workloads.onnx_import import import_onnx
from workloads.operands import Operands, from_onnx, synthetic
from workloads.quantize import quantize_symmetric, requantize, requantize_parameters

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
