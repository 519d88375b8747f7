"""The sizes of LSTM, GRU and RNN nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workloads.onnx_graph import Graph
from workloads.recurrent import Recurrence

if TYPE_CHECKING:
    import onnx

LENGTHS, INITIAL, PEEPHOLES = 4, 5, 7
"""Places among the inputs: lengths of sequences, the first hidden state, weights of peepholes."""


def input_at(node: onnx.NodeProto, place: int) -> str:
    """The name of an input, "" where there is none."""
    return node.input[place] if len(node.input) > place else ""


def recurrence_of(graph: Graph, node: onnx.NodeProto) -> Recurrence:
    """Lengths that a run would tell are taken for whole ones.  Raises WorkloadError."""
    shape = graph.shape(node.input[0], node)
    weight, recurrence = (graph.shape(node.input[at], node) for at in (1, 2))
    if (len(shape), len(weight), len(recurrence)) != (3, 3, 3):
        raise graph.error(node, "its input and its weights must have three axes each")
    steps, batch = (shape[1], shape[0]) if graph.attribute(node, "layout", 0) else shape[:2]
    lengths = graph.small_constant(input_at(node, LENGTHS))
    return Recurrence(
        name=graph.name(node),
        kind=node.op_type,
        steps=steps,
        batch=batch,
        inputs=shape[2],
        hidden=recurrence[2],
        directions=recurrence[0],
        peepholes=bool(input_at(node, PEEPHOLES)),
        lengths=() if lengths is None else tuple(int(one) for one in lengths.reshape(-1)),
    )


__all__ = ["INITIAL", "LENGTHS", "PEEPHOLES", "input_at", "recurrence_of"]
