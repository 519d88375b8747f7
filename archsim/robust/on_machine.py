"""A shipped model on a machine: its matrix layers by the machine's model, with what its memories
give back, and the rest beside the array (`archsim.robust.vector_unit`).

A machine of integers keeps the very codes: code c of a weight stands for a c + b
(`archsim.codecs.robust_quantization`), so that the array's product is of c, and b times the sum of
each window of the ifmap is added beside it.  A flipped bit of a code is then the flipped bit of
that weight.  A machine that makes its operands of others (floats, vectors with scales) is given
weights of `source_bits`, and keeps those in its own form.

Sums become an ofmap of the machine's own width, whose range, like those of activations, was
measured on pictures of the training set without errors (`calibrated`); beyond it they saturate.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.robust_quantization import MOST_BITS
from archsim.errors import InputError, require
from archsim.machine.design import Design
from archsim.machine.option import Options
from archsim.result import NetworkResult
from archsim.robust.model import RobustModel
from archsim.robust.vector_unit import (
    Doubles,
    Floats,
    behind,
    by_pictures,
    convolved,
    window_sums,
    within,
)
from archsim.simulate import simulate
from workloads.labelled import Labelled
from workloads.layers import Conv2d, Network
from workloads.operands import Operands
from workloads.quantize import quantize_at, requantize_parameters, scale_of, storage
from workloads.simplenet import NormalizedConvolution

CALIBRATED_PICTURES = 256

BATCH = 100
"""Pictures at once."""

CLASSIFY = "classify"


@dataclass(frozen=True)
class Ranges:
    """By matrix layer, the largest magnitude of its sums, bias included, of what is left of these
    without the offset of its codes (`MatrixWeights.offset`), and of its ifmap."""

    sums: Mapping[str, float]
    without_offset: Mapping[str, float]
    ifmaps: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class MatrixWeights:
    """A layer's weights as a machine is given them: value = scale · integer + offset."""

    integers: npt.NDArray[np.signedinteger[Any]]
    scale: float
    offset: float
    bias: Floats


def matrix_network(model: RobustModel, pictures: int) -> Network:
    """The matrix layers for so many pictures at once, the last one as a convolution of a pixel."""
    net = model.network
    layers = [
        Conv2d(
            name=one.name, channels=one.inputs, filters=one.outputs,
            ifmap_height=one.side, ifmap_width=one.side,
            kernel_height=one.kernel, kernel_width=one.kernel,
            pad_top=one.kernel // 2, pad_left=one.kernel // 2,
            pad_bottom=one.kernel // 2, pad_right=one.kernel // 2,
            batch=pictures, bias=True,
        )
        for one in net.convolutions
    ]  # fmt: skip
    last = Conv2d(
        name=CLASSIFY, channels=net.convolutions[-1].outputs, filters=net.classes,
        ifmap_height=1, ifmap_width=1, kernel_height=1, kernel_width=1, batch=pictures, bias=True,
    )  # fmt: skip
    source = "workloads.simplenet, matrix layers"
    return Network(name="simplenet", layers=(*layers, last), source=source)


def calibrated(model: RobustModel, pictures: npt.NDArray[np.uint8]) -> Ranges:
    """Ranges of a model without errors on pictures [n, colours, side, side].

    In float64, rounded to float32 at the end: a range decides the scale of a whole layer, and the
    last bits of float32 sums are others on processors whose vectors are of another width, so that
    a few of a hundred pictures at low voltage would be too.
    """
    values = {name: array.astype(np.float64) for name, array in model.values().items()}

    def largest(at: slice) -> Doubles:
        return _largest(model, values, pictures[at])[None]

    each = model.network.side**2 * model.network.channels
    most = by_pictures(largest, len(pictures), each).max(axis=0).astype(np.float32)
    names = [layer.name for layer in matrix_network(model, 1).matrix_layers]
    return Ranges(*(dict(zip(names, np.where(one, one, 1).tolist(), strict=True)) for one in most))


def _largest(
    model: RobustModel, values: Mapping[str, Doubles], pictures: npt.NDArray[np.uint8]
) -> Doubles:
    """[3, matrix layers]: largest magnitudes of sums, of these without offset, of the ifmap."""
    found: list[list[float]] = []
    x = pictures / 255
    after = {one.name: one for one in model.network.convolutions}
    for layer in matrix_network(model, len(pictures)).matrix_layers:
        assert isinstance(layer, Conv2d)
        name, kernel = layer.name, layer.kernel_height
        weight = values[f"{name}.weight"].reshape(layer.filters, layer.channels, kernel, kernel)
        sums = convolved(x, weight, values[f"{name}.bias"])
        without = sums - _offset(model, name) * window_sums(x, kernel)
        found.append([float(np.abs(one).max()) for one in (sums, without, x)])
        x = behind(after[name], sums, values) if name in after else sums
    return np.array(found).T


def _offset(model: RobustModel, name: str) -> float:
    return model.scheme.line(model.tensors[f"{name}.weight"].of)[1]


def require_held(model: RobustModel, bits: int) -> None:
    """Refuse codes that operands of so many bits do not hold."""
    require(
        bits >= model.scheme.bits,
        f"the machine's operands have {bits} bits, which do not hold codes of {model.scheme.bits}",
    )


def matrix_weights(model: RobustModel, bits: int) -> dict[str, MatrixWeights]:
    """Weights of every matrix layer for a machine that is given operands of so many bits.

    Up to 8 bits, the codes; above, the values.  Raises InputError for codes of more bits.
    """
    require_held(model, bits)
    values, scheme = model.values(), model.scheme
    found: dict[str, MatrixWeights] = {}
    for name in [*(one.name for one in model.network.convolutions), CLASSIFY]:
        tensor, bias = model.tensors[f"{name}.weight"], values[f"{name}.bias"]
        if bits > MOST_BITS:
            scale = scale_of(values[f"{name}.weight"], bits)
            integers: Any = quantize_at(values[f"{name}.weight"], scale, bits)
            offset = 0.0
        else:
            scale, offset = scheme.line(tensor.of)
            integers = scheme.numbers(tensor.codes).astype(storage(bits))
        shape = integers.shape if integers.ndim == 4 else (*integers.shape, 1, 1)
        found[name] = MatrixWeights(
            integers=integers.reshape(shape), scale=scale, offset=offset, bias=bias
        )
    return found


@dataclass(frozen=True)
class MachineEvaluator:
    """How often a model errs on machines.

    Raises InputError for machines whose operands are too narrow, and for pictures of another size.
    """

    model: RobustModel
    ranges: Ranges

    def wrong(
        self, design: Design, data: Labelled, elsewhere: Mapping[str, Design] | None = None
    ) -> list[bool]:
        """Which pictures are taken for another class, in order.

        elsewhere: by name, layers that another design of the same numerics computes.
        """
        found: list[bool] = []
        for start in range(0, len(data), BATCH):
            here = slice(start, start + BATCH)
            part = Labelled(data.name, data.pictures[here], data.labels[here])
            logits, _ = self._run(design, part, elsewhere)
            found += (logits.argmax(axis=1) != part.labels).tolist()
        return found

    def logits(self, design: Design, data: Labelled) -> Floats:
        """[n, classes], all pictures at once."""
        return self._run(design, data)[0]

    def simulated(self, design: Design, data: Labelled) -> NetworkResult:
        """All pictures at once, with cycles and actions; the layers' operands are those of a run
        of the same design."""
        _, operands = self._run(design, data)
        network = matrix_network(self.model, len(data))
        return simulate(design, network, operands=operands, **mapped(design))

    def _run(
        self, design: Design, data: Labelled, elsewhere: Mapping[str, Design] | None = None
    ) -> tuple[Floats, dict[str, Operands]]:
        """Logits, and the operands of every layer."""
        size = (self.model.network.colours, self.model.network.side, self.model.network.side)
        shape = data.pictures.shape[1:]
        require(shape == size, f"{data.name}: pictures of {shape}, where the model takes {size}")
        weights = matrix_weights(self.model, design.intake.source_bits)
        values, network = self.model.values(), matrix_network(self.model, len(data))
        given: dict[str, Operands] = {}
        designs = {"": design} | dict(elsewhere or {})
        runs = {
            name: one.machine_model().run(network, lambda layer: given[layer.name], mapped(one))
            for name, one in designs.items()
        }
        x = data.floats()
        after = {one.name: one for one in self.model.network.convolutions}
        for layer in network.matrix_layers:
            assert isinstance(layer, Conv2d)
            own = weights[layer.name]
            given[layer.name] = self._operands(design, layer, own, x)
            ofmap = runs[layer.name if layer.name in runs else ""].result(layer).ofmap
            assert ofmap is not None
            taken = design.intake.take(layer, given[layer.name])
            made = partial(self._made, layer, own, after.get(layer.name), values)

            def between(at: slice, made: Any = made, given: Any = (taken, ofmap, x)) -> Floats:
                taken, ofmap, x = given
                return made(design.intake.reals(taken, ofmap[at]), x[at])

            x = by_pictures(between, len(data), ofmap[0].size)
        return x.reshape(len(data), -1), given

    def _made(
        self, layer: Conv2d, own: MatrixWeights, behind_it: NormalizedConvolution | None,
        values: Mapping[str, Floats], reals: Floats, x: Floats,
    ) -> Floats:  # fmt: skip
        """The next layer's ifmap of what a layer's array made of an ifmap."""
        sums = within(reals, self._reach(own, layer.name))
        if own.offset:
            sums += np.float32(own.offset) * window_sums(x, layer.kernel_height)
        return sums if behind_it is None else behind(behind_it, sums, values)

    def _reach(self, own: MatrixWeights, name: str) -> float:
        """Of what the array makes."""
        return (self.ranges.without_offset if own.offset else self.ranges.sums)[name]

    def _operands(self, design: Design, layer: Conv2d, own: MatrixWeights, x: Floats) -> Operands:
        """Of a layer whose ifmap is x [n, C, H, W]."""
        bits = design.intake.source_bits
        most = (1 << (bits - 1)) - 1
        ifmap_scale = self.ranges.ifmaps[layer.name] / most
        ofmap_scale = self._reach(own, layer.name) / most
        unit = ifmap_scale * own.scale
        multiplier, shift = requantize_parameters(unit / ofmap_scale)
        return Operands(
            ifmap=quantize_at(x, ifmap_scale, bits),
            weight=own.integers,
            bias=np.rint(own.bias / unit).astype(np.int32),
            multiplier=multiplier,
            shift=shift,
            scheme=f"robust codes, activations of {bits} bits",
            ifmap_scale=ifmap_scale,
            weight_scale=own.scale,
            ofmap_scale=ofmap_scale,
        )


def mapped(design: Design) -> Options:
    """How layers of these studies are mapped: for few bytes, since energy is what is saved.

    By the rough mapper, where a machine has it: a study maps the same layers thousands of times.
    """
    for option in design.options:
        if option.name == "mapper" and option.read is not None:
            with suppress(InputError):
                return {"mapper": option.read("rough")}
    return {}


__all__ = [
    "MachineEvaluator",
    "Ranges",
    "calibrated",
    "mapped",
    "matrix_network",
    "matrix_weights",
    "require_held",
]
