"""The tensors of a model's matrix operators: constants of the file, tensors of a run, or none.

A run is of ONNX Runtime on a real input; without one, what the network computes has no values, but
its scale, zero point and type where the file says them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.affine import Affine, IntegerType, integer_type, single
from workloads.onnx_constants import MOVES, Constants, affine
from workloads.onnx_matrix import (
    CONVOLUTIONS,
    Slot,
    bias_of,
    form_of,
    ifmap_of,
    ofmap_of,
    weight_of,
)
from workloads.operand_parts import Ofmap, Tensor, draw_integers
from workloads.operands import Origin
from workloads.quantize import Integers

if TYPE_CHECKING:
    import onnx

    from workloads.onnx_graph import Graph

SCALE, ZERO = "the scale of activations", "the zero point of activations"
Draw = Callable[[], Integers]


@dataclass(frozen=True, kw_only=True, eq=False)
class Turn:
    """What brings a tensor into a layer's shape.

    move: only moves elements.  blank: which elements then hold nothing, broadcast along them: zero,
    or the zero point.  sums: elements are summed first, so that integers are none any more.
    """

    move: Callable[[NDArray[Any]], NDArray[Any]]
    blank: NDArray[np.bool_] | None = None
    sums: Callable[[NDArray[Any]], NDArray[Any]] | None = None

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Real numbers."""
        values = self.move(values if self.sums is None else self.sums(values))
        return values if self.blank is None else np.where(self.blank, values.dtype.type(0), values)

    def affine(self, values: Affine) -> Affine:
        """A file's integers."""
        found = values.mapped(self.move)
        if self.blank is None:
            return found
        zero = found.spread("zero").astype(found.values.dtype)
        return replace(found, values=np.where(self.blank, zero, found.values))


class Values:
    """Of one model.  run: tensors of a run by name, None without one."""

    def __init__(
        self, graph: Graph, constants: Constants, run: Mapping[str, NDArray[Any]] | None
    ) -> None:
        self._graph = graph
        self._run = run
        self.constants = constants

    @property
    def ran(self) -> bool:
        """Whether there was a run."""
        return self._run is not None

    def tensor(self, name: str) -> NDArray[Any] | None:
        """Values of a constant or of the run; None without one."""
        return self._parameter(name)

    def operand(self, node: onnx.NodeProto, slot: Slot, turn: Turn, draw: Draw) -> Tensor:
        """An operand of a node; `turn` brings its tensor into the layer's shape, `draw` makes
        integers in that shape."""
        constant = self.constants.has(slot.tensor)
        origin: Origin = "file" if constant else "drawn" if self._run is None else "input"
        if form_of(node).integers:
            found = self._of_integers(node, slot, draw)
        else:
            found = self._of_floats(slot.tensor, constant, draw)
        if isinstance(found, Affine) and turn.sums is not None:
            found = None if origin == "drawn" else found.real
        if isinstance(found, Affine):
            drawn = origin == "drawn"
            return Tensor(values=found if drawn else turn.affine(found), origin=origin)
        return Tensor(values=None if found is None else turn.array(found), origin=origin)

    def bias(self, tensor: str, step: NDArray[Any] | None) -> NDArray[Any] | None:
        """Integers where the file has them at the scale `step` of the sums, else real numbers;
        None where a run would have to tell and there was none."""
        if not self.constants.has(tensor):
            return None if self._run is None else self._run[tensor]
        found = self.constants.affine(tensor)
        if found is None:
            return self.constants.value(tensor)
        same = step is not None and np.allclose(found.scale.reshape(-1), step, rtol=1e-5, atol=0)
        whole = found.kind.bits == 32 and same
        return found.less_zero.astype(np.int32) if whole else found.real

    def ofmap(self, slot: Slot, *, sums: bool) -> Ofmap:
        """What is known of the results in `slot`."""
        made = None if self._run is None else self._run.get(slot.tensor)
        if sums:
            return Ofmap(sums=True, made=made)
        scale = self._parameter(slot.scale)
        if scale is not None and scale.size == 1:
            zero = self._parameter(slot.zero)
            kind = self.kind_of(slot.zero) or self.kind_of(slot.tensor)
            return Ofmap(
                scale=float(single(scale, SCALE)),
                zero=0 if zero is None else int(single(zero, ZERO)),
                kind=kind or IntegerType(bits=8, signed=False),
                made=made,
            )
        if self._run is None:
            return Ofmap()
        return Ofmap(largest=float(np.max(np.abs(self._run[slot.tensor]), initial=0.0)))

    def needed(self, node: onnx.NodeProto) -> list[str]:
        """The tensors that a run must show for a matrix operator's operands and results."""
        result = ofmap_of(self._graph, node)
        names = [bias_of(node), result.scale, result.zero, result.tensor]
        for slot in (ifmap_of(node), weight_of(node)):
            behind = None if form_of(node).integers else self._behind(slot.tensor)
            names += [slot.tensor, slot.scale, slot.zero] if behind is None else behind[0].input
        return [name for name in names if name and not self.constants.has(name)]

    def kind_of(self, tensor: str) -> IntegerType | None:
        """The integers that a tensor is of; None for other numbers, and where it is not known."""
        return integer_type(self._graph.element_type(tensor)) if tensor else None

    def _of_floats(self, tensor: str, constant: bool, draw: Draw) -> Affine | NDArray[Any] | None:
        if constant:
            found = self.constants.affine(tensor)
            return self.constants.value(tensor) if found is None else found
        behind = self._behind(tensor)
        if behind is None:
            return None if self._run is None else self._run[tensor]
        node, path = behind
        if self._run is None:
            kind = self.kind_of(node.input[0]) or IntegerType(bits=8, signed=False)
            scale, zero = self.constants.value(node.input[1]), 0
            if len(node.input) > 2 and node.input[2]:
                zero = int(single(self.constants.value(node.input[2]), ZERO))
            return draw_integers(draw(), float(single(scale, SCALE)), zero, kind)
        found = self.constants.dequantized(node, self._run[node.input[0]])
        if found is None:
            return self._run[tensor]
        if not path:
            return found
        given = node.output[0]
        return found.mapped(lambda array: self.constants.remade(tensor, {given: np.array(array)}))

    def _behind(self, tensor: str) -> tuple[onnx.NodeProto, list[str]] | None:
        """The DequantizeLinear of one constant scale that a tensor comes from, and what has moved
        it since; None where there is none."""
        path: list[str] = []
        while (node := self.constants.maker(tensor)) is not None and node.op_type in MOVES:
            if any(not self.constants.has(name) for name in node.input[1:]):
                return None
            path.append(tensor)
            tensor = node.input[0]
        if node is None or node.op_type != "DequantizeLinear":
            return None
        known = all(self.constants.has(name) for name in node.input[1:] if name)
        whole = self._graph.element_count(node.input[1]) == 1
        return (node, path) if known and whole else None

    def _of_integers(self, node: onnx.NodeProto, slot: Slot, draw: Draw) -> Affine | None:
        """An operand of an operator of integers."""
        scale, zero = self._parameter(slot.scale), self._parameter(slot.zero)
        kind = self.kind_of(slot.tensor) or IntegerType(bits=8, signed=False)
        if self.constants.has(slot.tensor):
            values = self.constants.value(slot.tensor)
        elif self._run is not None:
            values = self._run[slot.tensor]
        else:
            middle = kind.centre if zero is None and slot.zero else 0
            at = middle if zero is None else int(single(zero, ZERO))
            one = 1.0 if scale is None else float(single(scale, SCALE))
            return draw_integers(draw(), one, at, kind)
        parameters = (
            np.array(1, np.float32) if scale is None else scale.astype(np.float32),
            np.array(0, np.int64) if zero is None else zero.astype(np.int64),
        )
        return affine(values, parameters, self._axis(node, slot))

    def _axis(self, node: onnx.NodeProto, slot: Slot) -> int:
        """Along which scales and zero points differ: that of rows or of filters."""
        transposed = node.op_type == "QGemm" and self._graph.attribute(node, "transB", 0)
        if node.op_type in CONVOLUTIONS or transposed:
            return 0
        return -2 if slot.tensor == node.input[0] else -1

    def _parameter(self, tensor: str) -> NDArray[Any] | None:
        """A scale or zero point; None where there is none, or a run would have to tell."""
        if not tensor:
            return None
        if self.constants.has(tensor):
            return self.constants.value(tensor)
        return None if self._run is None else self._run[tensor]


__all__ = ["Turn", "Values"]
