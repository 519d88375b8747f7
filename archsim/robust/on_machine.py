"""A shipped model on a machine: its matrix layers by the machine's model, with what its memories
give back, and the rest beside the array (`archsim.robust.between_layers`).

A machine of integers keeps the very codes: code c of a weight stands for a c + b
(`archsim.codecs.robust_quantization`), so that the array's product is of c, and b times the sum of
each window of the ifmap is added beside it.  A flipped bit of a code is then the flipped bit of
that weight.  A machine that makes its operands of others (floats, vectors with scales) is given
weights of `source_bits`, and keeps those in its own form.

Sums become an ofmap of the machine's own width, whose range, like those of activations, was
measured on pictures of the training set without errors (`calibrated`); beyond it they saturate.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.robust_quantization import MOST_BITS
from archsim.errors import InputError, require
from archsim.machine.design import Design
from archsim.machine.option import Options
from archsim.result import NetworkResult
from archsim.robust.between_layers import (
    Ifmap,
    Levels,
    Sums,
    first_ifmap,
    ifmap_behind,
    unit_of,
)
from archsim.robust.model import RobustModel
from archsim.robust.vector_unit import Doubles, Floats, behind, by_pictures, convolved, window_sums
from archsim.simulate import simulate
from workloads.labelled import Labelled
from workloads.layers import Conv2d, Network
from workloads.operands import Operands
from workloads.quantize import (
    Integers,
    quantize_at,
    requantize_parameters,
    scale_of,
    storage,
)
from workloads.threads import in_threads

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
        without = sums - _offset(model, name) * window_sums(x.sum(axis=1, keepdims=True), kernel)
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
        own = threading.local()  # a thread's, of each size

        def batch(start: int) -> list[bool]:
            here = slice(start, start + BATCH)
            part = Labelled(data.name, data.pictures[here], data.labels[here])
            if not hasattr(own, "together"):
                own.together = dict[int, _Together]()
            if len(part) not in own.together:
                own.together[len(part)] = _Together(self, design, len(part), elsewhere)
            logits = own.together[len(part)].logits(part)
            return (logits.argmax(axis=1) != part.labels).tolist()

        return list(chain.from_iterable(in_threads(batch, range(0, len(data), BATCH))))

    def logits(self, design: Design, data: Labelled) -> Floats:
        """[n, classes], all pictures at once."""
        return _Together(self, design, len(data)).logits(data)

    def simulated(self, design: Design, data: Labelled) -> NetworkResult:
        """All pictures at once, with cycles and actions; the layers' operands are those of a run
        of the same design."""
        together = _Together(self, design, len(data))
        together.logits(data)
        return simulate(design, together.network, operands=together.given, **mapped(design))


class _Together:
    """So many pictures at once on a machine, as often as such are there.

    given: the operands of every layer, of the last ones.
    """

    def __init__(
        self, evaluator: MachineEvaluator, design: Design, pictures: int,
        elsewhere: Mapping[str, Design] | None = None,
    ) -> None:  # fmt: skip
        model, self._design, self._ranges = evaluator.model, design, evaluator.ranges
        self._network, self._values = model.network, model.values()
        self._weights = matrix_weights(model, design.intake.source_bits)
        self.network = matrix_network(model, pictures)
        self._layers = {one.name: one for one in self.network.matrix_layers}
        self.given: dict[str, Operands] = {}
        self._units: dict[str, float | None] = {}
        self._runs = {
            name: one.machine_model().run(
                self.network, lambda layer: self.given[layer.name], mapped(one)
            )
            for name, one in ({"": design} | dict(elsewhere or {})).items()
        }

    def logits(self, data: Labelled) -> Floats:
        """[n, classes]."""
        size = (self._network.colours, self._network.side, self._network.side)
        shape = data.pictures.shape[1:]
        require(shape == size, f"{data.name}: pictures of {shape}, where the model takes {size}")
        layers = self.network.matrix_layers
        ifmap = first_ifmap(data.floats(), self._levels(layers[0].name))
        for one, following in zip(self._network.convolutions, layers[1:], strict=True):
            sums = self._sums(one.name, ifmap)
            ifmap = ifmap_behind(one, sums, self._values, self._levels(following.name))
        return self._sums(CLASSIFY, ifmap).floats().reshape(len(data), -1)

    def _sums(self, name: str, ifmap: Ifmap) -> Sums:
        """Of a layer, by its array, and what is added beside it."""
        layer, own = self._layers[name], self._weights[name]
        assert isinstance(layer, Conv2d)
        self.given[name] = self._operands(own, name, ifmap.integers)
        ofmap: Any = self._runs[name if name in self._runs else ""].result(layer).ofmap
        intake = self._design.intake
        reals = partial(intake.reals, intake.take(layer, self.given[name]))
        if name not in self._units:
            self._units[name] = unit_of(reals, ofmap)
        unit = self._units[name]
        array = ofmap
        if unit is None:
            array = by_pictures(lambda at: reals(ofmap[at]), len(ofmap), ofmap[0].size)
        beside = ifmap.channel_sums[:0]
        if own.offset:
            beside = np.float32(own.offset) * window_sums(ifmap.channel_sums, layer.kernel_height)
        return Sums(
            array=array,
            unit=1.0 if unit is None else unit,
            largest=self._reach(own, name),
            beside=beside,
        )

    def _reach(self, own: MatrixWeights, name: str) -> float:
        """Of what the array makes."""
        return (self._ranges.without_offset if own.offset else self._ranges.sums)[name]

    def _levels(self, name: str) -> Levels:
        """Of a layer's ifmap."""
        return Levels.up_to(self._ranges.ifmaps[name], self._design.intake.source_bits)

    def _operands(self, own: MatrixWeights, name: str, ifmap: Integers) -> Operands:
        """Of a layer whose ifmap is [n, C, H, W]."""
        levels = self._levels(name)
        ofmap_scale = self._reach(own, name) / levels.most
        unit = levels.scale * own.scale
        multiplier, shift = requantize_parameters(unit / ofmap_scale)
        return Operands(
            ifmap=ifmap,
            weight=own.integers,
            bias=np.rint(own.bias / unit).astype(np.int32),
            multiplier=multiplier,
            shift=shift,
            scheme=f"robust codes, activations of {levels.bits} bits",
            ifmap_scale=levels.scale,
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
