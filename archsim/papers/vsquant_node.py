"""One node of an ONNX graph, which ONNX Runtime runs alone and on one thread.

Between nodes, operands can be quantised.  One thread, because the products here are small, and
threads that share them spend more time on waiting for each other where other work runs beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.papers.vsquant_points import Array
from workloads.optional import load_optional

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node by its names in the graph; `session` runs it."""

    operator: str
    name: str
    reads: tuple[str, ...]
    writes: str
    session: Any

    @classmethod
    def of(cls, node: onnx.NodeProto, opset: int = 17, ir_version: int = 8) -> Node:
        """Of a node with one output; all its inputs, weights too, are given at run time."""
        onnx = load_optional("onnx", install="onnx", purpose="a network's operators")
        runtime = load_optional("onnxruntime", install="onnxruntime", purpose="running a network")
        kind, make = onnx.TensorProto.FLOAT, onnx.helper
        inputs, outputs = (
            [make.make_tensor_value_info(name, kind, None) for name in names]
            for names in (node.input, node.output)
        )
        alone = make.make_model(
            make.make_graph([node], node.name, inputs, outputs),
            opset_imports=[make.make_opsetid("", opset)],
            ir_version=ir_version,
        )
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        return cls(
            operator=node.op_type,
            name=node.name,
            reads=tuple(node.input),
            writes=node.output[0],
            session=runtime.InferenceSession(
                alone.SerializeToString(), options, ["CPUExecutionProvider"]
            ),
        )

    def run(self, *inputs: Array) -> Array:
        """Its output for the inputs in their order, in float32."""
        return self.session.run(None, dict(zip(self.reads, inputs, strict=True)))[0]
