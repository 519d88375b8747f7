"""What the tests of `workloads` share: tiny ONNX models, and the models which onnx ships."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import settings
from onnx import TensorProto, helper, numpy_helper

if settings().deadline is not None:
    settings.register_profile("workloads", deadline=None)
    settings.load_profile("workloads")


@pytest.fixture(scope="session")
def light() -> Path:
    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def make_model(nodes, inputs, outputs, constants=None, opset=17):
    """A model from (operator, inputs, outputs, attributes) tuples; shapes by name."""
    made = [
        helper.make_node(operator, reads, writes, name=writes[0] + "_node", **attributes)
        for operator, reads, writes, attributes in nodes
    ]

    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        made,
        "tiny",
        [value(name, shape) for name, shape in inputs.items()],
        [value(name, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture(scope="session")
def model() -> Callable[..., onnx.ModelProto]:
    return make_model
