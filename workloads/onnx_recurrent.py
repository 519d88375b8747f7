"""Operands of LSTM, GRU and RNN nodes: weights of the file, states of a run.

A step's ifmap is the hidden state before it. (Of a GRU without `linear_before_reset` the product
of the new state takes it times the reset gate; the layer has one ifmap for all gates, the state.)
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.layers import MatMul
from workloads.onnx_recurrence import INITIAL, input_at, recurrence_of
from workloads.onnx_values import Values
from workloads.operand_parts import Ofmap, Parts, Tensor
from workloads.operands import Operands, Origin
from workloads.recurrent import GATES, Run

if TYPE_CHECKING:
    import onnx

    from workloads.onnx_graph import Graph


def is_recurrent(node: onnx.NodeProto) -> bool:
    """Whether a node is an LSTM, a GRU or an RNN."""
    return node.op_type in GATES


def states_of(node: onnx.NodeProto) -> list[str]:
    """The tensors that a run must show: inputs and all hidden states, which get a name if they
    have none."""
    if not node.output:
        node.output.append("")
    if not node.output[0]:
        others = [name for name in (*node.output, *node.input) if name]
        node.output[0] = f"{others[0]}/states"
    return [name for name in (*node.input[:3], input_at(node, INITIAL), node.output[0]) if name]


class RecurrentOperands:
    """Of one node's layers (`workloads.recurrent.recurrent_layers`)."""

    def __init__(self, values: Values, graph: Graph, node: onnx.NodeProto) -> None:
        self._values = values
        self._node = node
        self._name = graph.name(node)
        self._batch_first = bool(graph.attribute(node, "layout", 0))
        self._backwards = graph.attribute(node, "direction", "forward") == "reverse"
        self._made: dict[str, NDArray[Any]] = {}
        self._size = recurrence_of(graph, node)

    @cached_property
    def _lengths(self) -> NDArray[Any]:
        """Of the sequences, as long as the batch: made only where there are values."""
        size = self._size
        return np.array(size.lengths or (size.steps,) * size.batch)

    def parts(self, layer: MatMul, drawn: Operands | None) -> Parts:
        """The tensors of one of its layers."""
        prefix, _, part = layer.name.rpartition("/")
        direction = int(prefix != self._name)
        weight, weight_origin = self._weight(direction, part == "input")
        origin: Origin = "input" if self._values.ran else "drawn"
        if not self._values.ran:
            ifmap = None
        elif part == "input":
            ifmap = self._inputs().reshape(1, layer.m, layer.k)
        else:
            ifmap = self._states(direction, self._run(part)).reshape(1, layer.m, layer.k)
        largest = None
        if ifmap is not None and weight is not None:
            largest = float(np.abs(ifmap[0] @ weight[0]).max(initial=0))
        return Parts(
            ifmap=Tensor(values=ifmap, origin=origin),
            weight=Tensor(values=weight, origin=weight_origin),
            bias=None,
            ofmap=Ofmap(largest=largest),
            drawn=drawn,
        )

    def _weight(self, direction: int, of_inputs: bool) -> tuple[NDArray[Any] | None, Origin]:
        name = self._node.input[1 if of_inputs else 2]
        whole = self._tensor(name)
        origin: Origin = "file" if self._values.constants.has(name) else "input"
        if whole is None:
            return None, "drawn"
        return np.ascontiguousarray(whole[direction].T)[None], origin

    def _inputs(self) -> NDArray[Any]:
        """[rows, inputs], in the order of time, of the sequences that go on."""
        x = self._tensor(self._node.input[0])
        assert x is not None
        x = x.swapaxes(0, 1) if self._batch_first else x
        return x[np.arange(len(x))[:, None] < self._lengths]

    def _run(self, part: str) -> Run:
        """The run that a layer's name, "steps" or "steps7", is of."""
        runs = self._size.runs
        first = int(part.removeprefix("steps") or runs[0].first)
        return next(one for one in runs if one.first == first)

    def _states(self, direction: int, run: Run) -> NDArray[Any]:
        """The hidden states [steps, rows, hidden] before each step of a run."""
        states = self._tensor(self._node.output[0])
        assert states is not None
        if self._batch_first:
            states = states.transpose(1, 2, 0, 3)
        going = np.flatnonzero(self._lengths > run.first)
        steps = np.arange(run.first, run.first + run.steps)[:, None]
        backwards = self._backwards or direction == 1
        before = self._lengths[going] - steps if backwards else steps - 1
        # where nothing came before, any is taken, and the first state then put in its place
        found = states[np.clip(before, 0, len(states) - 1), direction, going]
        if run.first == 0:
            found[0] = self._initial(direction, states)[going]
        return found

    def _initial(self, direction: int, states: NDArray[Any]) -> NDArray[Any]:
        """The hidden state [batch, hidden] before the first step."""
        name = input_at(self._node, INITIAL)
        found = self._tensor(name) if name else None
        if found is None:
            return np.zeros(states.shape[2:], np.float32)
        return found[:, direction] if self._batch_first else found[direction]

    def _tensor(self, name: str) -> NDArray[Any] | None:
        if name not in self._made:
            found = self._values.tensor(name)
            if found is None:
                return None
            self._made[name] = found
        return self._made[name]


__all__ = ["RecurrentOperands", "is_recurrent", "states_of"]
