"""How numbers become integers before Boveda stores them: it decides how many bits are left over.

tensor-8, tensor-16     one scale a tensor, the largest magnitude at 2^(B-1) - 1, as everywhere in
                        `workloads.quantize`.
fixed                   16 bits, one binary point for all weights and one for all activations of
                        the network, with as many fraction bits as leave room for the largest.
dnnsim                  16 bits, the generic precisions of DNNsim (`NetReader::read_precision`):
                        weights 15 fraction bits, activations 13 and 2; what is larger is clipped
                        to 2^15 - 1.
profiled                16-bit containers, and the fewest fraction bits with which no fewer answers
                        are right than in float (`profile`): how the group finds precisions ("with
                        no accuracy loss": Judd et al., "Stripes", MICRO 2016), though one a layer,
                        on many more pictures; those of the paper are not with DNNsim.
strict                  the same with every answer that of the float network, right or wrong.

A fixed-point integer is x · 2^fraction rounded, half away from zero as DNNsim does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, takewhile
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from archsim.errors import require
from archsim.papers.boveda_tensors import Name, RealTensor, real_tensors
from archsim.papers.vsquant_photos import BATCH, logits
from archsim.papers.vsquant_points import Arithmetic, Array
from archsim.papers.vsquant_words import dictionary, sample, sound
from workloads.packaged import PHOTOS, photo
from workloads.quantize import quantize_symmetric

Integers = npt.NDArray[np.signedinteger[Any]]

LIMIT = 2**15 - 1
"""Largest magnitude of a container of 16 bits."""

DNNSIM = (15, 2)

PROFILED_WORDS = 200

FEWEST = -16
"""Fraction bits at which the search ends; far too few for any network here."""

Goal = Literal["right", "kept"]
"""No fewer right answers than in float; or each as in float."""

Fractions = tuple[int | None, int | None]
"""Of (weights, activations); None: in float."""

Answers = tuple[Any, ...]
"""A class, or the sounds of a word."""


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """A container's bits, and fraction bits of (weights, activations); None: a scale a tensor."""

    name: str
    title: str
    bits: int
    fractions: tuple[int, int] | None = None

    def integers(self, tensor: RealTensor) -> Integers:
        """The values as they are stored."""
        if self.fractions is None:
            return quantize_symmetric(tensor.values, self.bits)[0]
        return fixed_point(tensor.values, self.fractions[tensor.kind == "activations"])


def fixed_point(values: Array, fraction: int) -> Integers:
    """x · 2^fraction, rounded half away from zero, clipped to ±(2^15 − 1)."""
    scaled = np.abs(values.astype(np.float64)) * 2.0**fraction
    magnitudes = np.minimum(np.floor(scaled + 0.5), LIMIT)
    return np.copysign(magnitudes, values).astype(np.int16)


def room_for(largest: float) -> int:
    """Most fraction bits with which `largest` is at most 2^15 − 1.

    Raises InputError unless it is positive.
    """
    require(largest > 0, f"largest must be positive, not {largest}")
    return next(bits for bits in count(40, -1) if np.floor(largest * 2.0**bits + 0.5) <= LIMIT)


def schemes(name: Name) -> dict[str, Scheme]:
    """The schemes of a network, by name.  Of a pruned one they are those of the dense."""
    found = [
        Scheme(name="tensor-8", title="8 bits, a scale a tensor", bits=8),
        Scheme(name="tensor-16", title="16 bits, a scale a tensor", bits=16),
        _pointed("fixed", "16 bits, one binary point", room(name)),
        _pointed("dnnsim", "16 bits, DNNsim's generic points", DNNSIM),
        _pointed("profiled", "16 bits, profiled points", profile(name, "right")),
        _pointed("strict", "16 bits, points that keep all", profile(name, "kept")),
    ]
    return {one.name: one for one in found}


def _pointed(name: str, title: str, fractions: tuple[int, int]) -> Scheme:
    return Scheme(name=name, title=title, bits=16, fractions=fractions)


def room(name: Name) -> tuple[int, int]:
    """Fraction bits of (weights, activations) that leave room for a network's largest."""
    tensors = real_tensors(name)
    return (
        room_for(max(_largest(one) for one in tensors if one.kind == "weights")),
        room_for(max(_largest(one) for one in tensors if one.kind == "activations")),
    )


def _largest(tensor: RealTensor) -> float:
    return float(np.abs(tensor.values).max())


@dataclass
class Pointed(Arithmetic):
    """Operands rounded to fraction bits of (weights, activations); None: in float."""

    fractions: Fractions

    def weight(self, layer: str, values: Array) -> Array:
        del layer
        return _rounded(values, self.fractions[0])

    def activation(self, layer: str, values: Array) -> Array:
        del layer
        return _rounded(values, self.fractions[1])


def _rounded(values: Array, fraction: int | None) -> Array:
    if fraction is None:
        return values
    return (fixed_point(values, fraction) * 2.0**-fraction).astype(np.float32)


@cache
def profile(name: Name, goal: Goal) -> tuple[int, int]:
    """Fewest fraction bits of (weights, activations) with which a network reaches the goal.

    Fewest: with it and every finer one, up to those that leave room for the largest, since rounding
    may also be lucky.  First of each operand with the other in float; then as many more of both
    as it takes.  On all 20 photographs, or 200 words.
    """
    most = room(name)

    def fewest(tried: Sequence[Fractions]) -> Fractions:
        """The last before the first that does not reach it; at least the first."""
        return [tried[0], *takewhile(lambda each: reaches(name, each, goal), tried[1:])][-1]

    weights = fewest([(bits, None) for bits in range(most[0], FEWEST, -1)])[0]
    activations = fewest([(None, bits) for bits in range(most[1], FEWEST, -1)])[1]
    assert weights is not None and activations is not None
    more = min(most[0] - weights, most[1] - activations)
    found = fewest([(weights + bits, activations + bits) for bits in range(more, -1, -1)])
    assert found[0] is not None and found[1] is not None
    return found[0], found[1]


def reaches(name: Name, fractions: Fractions, goal: Goal) -> bool:
    """Whether a network with operands so rounded reaches the goal."""
    ours, exact = _answers(name, fractions), _answers(name, (None, None))
    if goal == "kept":
        return ours == exact
    return _right(name, ours) >= _right(name, exact)


def _right(name: Name, answers: Answers) -> int:
    if name == "photographs":
        return sum(one == each for one, each in zip(_labels(), answers, strict=True))
    known = dictionary()
    words = sample(PROFILED_WORDS)
    return sum(said in known[word] for word, said in zip(words, answers, strict=True))


@cache
def _answers(name: Name, fractions: Fractions) -> Answers:
    """The class of every photograph, or the sounds of every word."""
    arithmetic = Pointed(fractions)
    if name == "words":
        return tuple(sound(sample(PROFILED_WORDS), arithmetic)[0])
    batches = [logits(_images(first), arithmetic) for first in range(0, PHOTOS, BATCH)]
    return tuple(np.concatenate(batches).argmax(axis=1).tolist())


@cache
def _labels() -> list[int]:
    return [photo(at)[1] for at in range(PHOTOS)]


@cache
def _images(first: int) -> Array:
    return np.concatenate([photo(at)[0] for at in range(first, min(first + BATCH, PHOTOS))])


__all__ = [
    "DNNSIM",
    "Goal",
    "Pointed",
    "Scheme",
    "fixed_point",
    "profile",
    "reaches",
    "room",
    "room_for",
    "schemes",
]
