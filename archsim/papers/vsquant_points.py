"""Points of VS-Quant's tables, as the paper writes them, and how a network is quantised by one.

"4/8/6/10" is W/A/ws/as: bits of weights, of activations, of the scales of weight vectors and of
activation vectors.  "-" instead of a scale is one scale a coarse channel; "fp" is a floating
scale a vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log10
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs.calibration import Calibration, calibrate
from archsim.codecs.vsquant import VectorFormat, quantize
from archsim.errors import InputError, require

Array = npt.NDArray[np.floating[Any]]

Alphas = dict[tuple[str, VectorFormat, Calibration], float]
"""Calibrated magnitudes by layer, format and method."""


MAX = Calibration(method="max")


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a table.

    weight_calibration, activation_calibration: of operands with a coarse scale only; vectors
    take their own maximum.
    """

    weight_bits: int
    activation_bits: int
    weight_scale: str
    activation_scale: str
    vector: int = 16
    weight_calibration: Calibration = MAX
    activation_calibration: Calibration = MAX

    def format(self, *, weight: bool, signed: bool) -> VectorFormat:
        """Of the weights, or of activations which are negative somewhere (signed) or nowhere."""
        scale = self.weight_scale if weight else self.activation_scale
        return VectorFormat(
            bits=self.weight_bits if weight else self.activation_bits,
            signed=signed,
            vector=None if scale == "-" else self.vector,
            scale_bits=None if scale in ("-", "fp") else int(scale),
        )


def point(text: str, *, vector: int = 16, weights: str = "max", activations: str = "max") -> Point:
    """A point from "W/A/ws/as"; calibrations by name, or as a percentile such as "99.9".

    Raises InputError for other text.
    """
    parts = text.split("/")
    whole = [part.isdecimal() for part in parts]
    scales = [part in ("-", "fp") or part.isdecimal() for part in parts]
    require(
        len(parts) == 4 and all(whole[:2]) and all(scales[2:]),
        f"a point must be W/A/ws/as, as 4/8/6/10, 4/4/-/- or 4/4/fp/fp, not {text!r}",
    )
    return Point(
        weight_bits=int(parts[0]),
        activation_bits=int(parts[1]),
        weight_scale=parts[2],
        activation_scale=parts[3],
        vector=vector,
        weight_calibration=_calibration(weights),
        activation_calibration=_calibration(activations),
    )


CALIBRATIONS = (
    ("max", "max"),
    ("max", "entropy"),
    ("max", "99.9"),
    ("max", "mse"),
    ("mse", "mse"),
)
"""Of weights and of activations, from which the best is taken."""


def _calibration(text: str) -> Calibration:
    try:
        return Calibration(method="percentile", percentile=float(text))
    except InputError:
        raise
    except ValueError:
        return Calibration(method=text)


@dataclass
class Arithmetic:
    """What a network does to its operands before every matrix layer: nothing, in float.

    `weight` and `activation` are given an array with its channels on axis 1 (the filters of
    weights on axis 0) and answer with what the layer shall compute with.  `product` sees what it
    has computed.
    """

    def weight(self, layer: str, values: Array) -> Array:
        """Weights [K, C, …] of a layer."""
        del layer
        return values

    def activation(self, layer: str, values: Array) -> Array:
        """Activations [n, C, …] of a layer."""
        del layer
        return values

    def product(self, layer: str, values: Array) -> None:
        """The layer's result, before its non-linearity."""


@dataclass
class Recorder(Arithmetic):
    """Float, and keeps every array of activations: what a calibration looks at."""

    seen: dict[str, list[Array]] = field(default_factory=dict[str, list[Array]])

    def activation(self, layer: str, values: Array) -> Array:
        self.seen.setdefault(layer, []).append(values)
        return values

    def thinned(self, most: int) -> dict[str, Array]:
        """By layer, about so many values, evenly taken, and the least and the largest."""
        thin: dict[str, Array] = {}
        for layer, arrays in self.seen.items():
            values = np.concatenate([each.ravel() for each in arrays])
            ends = np.array([values.min(), values.max()])
            thin[layer] = np.concatenate([ends, values[:: max(values.size // most, 1)]])
        return thin


@dataclass
class Watch(Arithmetic):
    """Another arithmetic, and every layer's result put into `results`."""

    results: dict[str, Array]
    inner: Arithmetic = field(default_factory=Arithmetic)

    def weight(self, layer: str, values: Array) -> Array:
        return self.inner.weight(layer, values)

    def activation(self, layer: str, values: Array) -> Array:
        return self.inner.activation(layer, values)

    def product(self, layer: str, values: Array) -> None:
        self.results[layer] = values


@dataclass
class Quantising(Arithmetic):
    """Operands quantised as a point says, and back in float32.

    examples: float activations by layer, for the sign of each layer's and for calibration.
    alphas: where calibrated scales are kept, for other points on the same examples.
    """

    point: Point
    examples: Mapping[str, Array]
    alphas: Alphas
    _weights: dict[str, Array] = field(default_factory=dict[str, Array])

    def weight(self, layer: str, values: Array) -> Array:
        """Static: quantised once."""
        if layer not in self._weights:
            form = self.point.format(weight=True, signed=True)
            how = self.point.weight_calibration
            alpha = None if form.vector else calibrate(values, form, how, coarse_axis=0, name=layer)
            stored = quantize(values, form, coarse_axis=0, alpha=alpha, name=layer)
            self._weights[layer] = stored.dequantize().astype(np.float32)
        return self._weights[layer]

    def activation(self, layer: str, values: Array) -> Array:
        """Vectors by their own maximum, gamma by that of each input; coarse scales from the
        examples."""
        form = self.point.format(weight=False, signed=bool(self.examples[layer].min() < 0))
        alpha = None if form.vector else self._alpha(layer, form)
        stored = quantize(values, form, coarse_axis=0, alpha=alpha, name=layer)
        return stored.dequantize().astype(np.float32)

    def _alpha(self, layer: str, form: VectorFormat) -> float:
        key = (layer, form, self.point.activation_calibration)
        if key not in self.alphas:
            self.alphas[key] = float(calibrate(self.examples[layer], form, key[2], name=layer)[0])
        return self.alphas[key]


def sqnr_db(exact: npt.NDArray[Any], noisy: npt.NDArray[Any]) -> float:
    """Signal to quantisation noise, 10 log10(sum of x² / sum of (x - x̂)²); infinite if equal."""
    difference = np.subtract(noisy, exact, dtype=np.float64).ravel()
    flat = np.asarray(exact, np.float64).ravel()
    noise = float(difference @ difference)
    return 10 * log10(float(flat @ flat) / noise) if noise else float("inf")
