"""Boveda on top of SCNN's zero compression: widths for fours of values that are not zero.

SCNN (Parashar et al., ISCA 2017) keeps, in words of four, the values that are not zero and for
each the zeros before it in 4 bits: of activations a list for each channel of a PE's tile (8 × 8
PEs), of weights a list for each channel of 8 filters.  Boveda gives each word a width.  With v
words and a sum of widths w, both of B bits a value, the two accounts are

    index a value   before v · 4 · (B + 4)     after v · (4 · 4 + log2 B) + 4 · w
    index a word    before v · (4 · B + 4)     after v · (4 + log2 B) + 4 · w

the first as the paper stores it, the second as DNNsim counts it (`SCNN::on_chip_cycles`, in its
history).  Placeholders for runs of more than 15 zeros, and the rest of rows, are in neither.

The pruned AlexNet, VGG-16 and GoogLeNet are shapes with SCNN's densities (figure 1 there), and
values drawn from a seed: weights normal, the smallest magnitudes pruned away; activations
half-normal, zeros scattered; 3 standard deviations at the largest value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

from archsim.codecs.reference_codecs import CODECS, ENCODING_BITS, SCNN_LANES
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.numbers import ceil_div
from archsim.papers.boveda_schemes import Integers, Scheme
from archsim.papers.boveda_tensors import real_tensors
from archsim.papers.scnn_layers import SEED, SparseLayer, sparse_layers
from workloads.sparse import prune_magnitude

BITS = 16
WIDTH_BITS = 4
"""log2 B."""

Index = Literal["value", "word"]


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words of four values, and the sum of their widths."""

    words: int = 0
    widths: int = 0

    def __add__(self, other: Words) -> Words:
        return Words(words=self.words + other.words, widths=self.widths + other.widths)

    @property
    def mean_width(self) -> float:
        return self.widths / self.words

    def reduction(self, index: Index) -> float:
        """Per cent that Boveda takes off zero compression (module docstring)."""
        indices = ENCODING_BITS * (SCNN_LANES if index == "value" else 1)
        before = self.words * (SCNN_LANES * BITS + indices)
        after = self.words * (indices + WIDTH_BITS) + SCNN_LANES * self.widths
        return 100 * (1 - after / before)


def total(parts: Iterable[Words]) -> Words:
    """All of them together."""
    return sum(parts, Words())


def words_of(lists: Integers, *, signed: bool) -> Words:
    """Of lists [lists, values], each of which begins a new word."""
    given = lists, BITS, signed, 1, SCNN_LANES
    words = CODECS["scnn-dnnsim"].bits(*given) // (ENCODING_BITS + SCNN_LANES * BITS)
    wide = CODECS["scnn-widths"].bits(*given) - words * (ENCODING_BITS + WIDTH_BITS)
    return Words(words=words, widths=wide // SCNN_LANES)


def activation_lists(plane: Integers) -> Integers:
    """[C · PEs, places of a tile] of a plane [H, W, C], filled with zeros to whole tiles."""
    rows, columns = SCNN_ISCA17.grid_rows, SCNN_ISCA17.grid_columns
    height, width, channels = plane.shape
    tile = ceil_div(height, rows), ceil_div(width, columns)
    around = ((0, tile[0] * rows - height), (0, tile[1] * columns - width), (0, 0))
    tiles = np.pad(plane, around).reshape(rows, tile[0], columns, tile[1], channels)
    return np.ascontiguousarray(tiles.transpose(4, 0, 2, 1, 3).reshape(-1, prod(tile)))


def weight_lists(weight: Integers) -> Integers:
    """[groups of filters · C, values] of weights [K, R, S, C]."""
    group = SCNN_ISCA17.filter_group
    filters, height, width, channels = weight.shape
    padded = np.pad(weight, ((0, -filters % group), (0, 0), (0, 0), (0, 0)))
    grouped = padded.reshape(-1, group, height, width, channels).transpose(0, 4, 1, 2, 3)
    return np.ascontiguousarray(grouped.reshape(-1, group * height * width))


def photograph_words(scheme: Scheme) -> dict[str, Words]:
    """Of the pruned SqueezeNet on its photograph, by kind of tensor."""
    found = {"weights": Words(), "activations": Words()}
    for one in real_tensors("photographs", pruned=True):
        values = scheme.integers(one)
        lists = weight_lists(values) if one.kind == "weights" else activation_lists(values[0])
        found[one.kind] += words_of(lists, signed=one.signed)
    return found


def drawn_words(network: str, largest: tuple[int, int]) -> dict[str, Words]:
    """Of a network of SCNN's paper with drawn values, by kind of tensor.

    largest: magnitude of (weights, activations) at which 3 standard deviations lie.
    """
    found = {"weights": Words(), "activations": Words()}
    for sparse in sparse_layers(network):
        weight, plane = _drawn(sparse, largest)
        found["weights"] += words_of(weight_lists(weight), signed=True)
        found["activations"] += words_of(activation_lists(plane), signed=False)
    return found


def _drawn(sparse: SparseLayer, largest: tuple[int, int]) -> tuple[Integers, Integers]:
    """Weights [K, R, S, C], of one conv group at a time, and the plane [H, W, C]."""
    layer = sparse.layer
    random = np.random.default_rng([SEED, crc32(sparse.bar.encode()), crc32(layer.name.encode())])
    depth = layer.channels // layer.groups
    shape = layer.filters, layer.kernel_height, layer.kernel_width, depth
    weight = prune_magnitude(_normal(random, shape, largest[0]), sparse.weight)
    plane_shape = layer.ifmap_height, layer.ifmap_width, layer.channels
    plane = np.abs(_normal(random, plane_shape, largest[1]))
    plane *= random.random(plane_shape, np.float32) < sparse.ifmap
    return weight, plane


def _normal(random: np.random.Generator, shape: tuple[int, ...], largest: int) -> Integers:
    """Whole numbers but zero, 3 standard deviations at `largest`, clipped to it."""
    real: npt.NDArray[Any] = random.standard_normal(shape, np.float32) * (largest / 3)
    whole = np.clip(np.rint(np.abs(real)), 1, largest)
    return np.copysign(whole, real).astype(np.int16)


__all__ = [
    "Index",
    "Words",
    "activation_lists",
    "drawn_words",
    "photograph_words",
    "total",
    "weight_lists",
    "words_of",
]
