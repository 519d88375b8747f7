"""The words of a sparse core's ports: layers as passes, their command and their lists.

A vector's payload is value and index of each lane, and above them `last`; ports as in
`archsim.sparse.scnn_command.scnn_ports`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archsim.codecs.zero_run import Lists, join
from archsim.core import layout
from archsim.core.problem import problem_of
from archsim.designs.scnn import Scnn
from archsim.errors import InputError
from archsim.numbers import IntArray
from archsim.sparse.fold import folded
from archsim.sparse.layer import Layer, layer_passes
from archsim.sparse.lists import weight_lists
from archsim.sparse.scnn_command import Output, command_values
from archsim.sparse.strips import Strip
from workloads.layers import MatMul
from workloads.operands import Operands

PORTS = ("command", "ifmap", "weight", "bias", "ofmap")


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerRun:
    """A layer with what it computes with."""

    layer: Layer
    operands: Operands


@dataclass(frozen=True, kw_only=True, eq=False)
class PassWords:
    """A pass, ready to run, and the payload of its words: by port, [words, lanes].

    image, group: of the layer's, which the pass computes.  weight_vectors: of each group of
    filters.
    """

    run: LayerRun
    image: int
    group: int
    strip: Strip
    weight_vectors: tuple[int, ...]
    words: Mapping[str, IntArray]


def pass_words(design: Scnn, runs: Iterable[LayerRun]) -> list[PassWords]:
    """The passes of layers that follow one another, with all words; no cycle plays a part.

    A fully connected layer that does not fit is folded, as `layer_timing` does.
    Raises `InputError` as `archsim.sparse.layer.layer_timing`, and for a pass that no command can
    hold.
    """
    return [one for run in runs for one in _layer_words(design, run)]


def word_counts(passes: Sequence[PassWords]) -> dict[str, int]:
    """Words of passes at each port."""
    return {port: sum(len(one.words[port]) for one in passes) for port in PORTS}


def _layer_words(design: Scnn, run: LayerRun) -> Iterator[PassWords]:
    layer, operands = run.layer, run.operands
    try:
        passes = layer_passes(design, layer, operands)
    except InputError:
        if not (isinstance(layer, MatMul) and layer.shared_weight):
            raise
        for part in folded(design, layer, operands):
            yield from _layer_words(design, LayerRun(layer=part.layer, operands=part.operands))
        return
    problem = problem_of(layer)
    biases = np.zeros((problem.groups, 0), np.int64)
    if operands.bias is not None:
        biases = layout.split_bias(layer, problem, operands.bias.astype(np.int64))
    output = Output(
        has_bias=operands.bias is not None,
        relu=bool(problem.relu),
        multiplier=operands.multiplier,
        shift=operands.shift,
    )
    for number, strips in enumerate(passes):
        image, group = divmod(number, problem.groups)
        for strip in strips:
            command = command_values(design, strip.mapping, output)
            weights = _weights(design, strip)
            words = {
                "command": np.array([command], np.int64),
                "ifmap": _vectors(strip.operands.ifmap),
                "weight": _vectors(join(weights)),
                "bias": biases[group][:, None],
                "ofmap": _vectors(strip.operands.ofmap),
            }
            yield PassWords(
                run=run,
                image=image,
                group=group,
                strip=strip,
                weight_vectors=tuple(one.vectors for one in weights),
                words=words,
            )


def _weights(design: Scnn, strip: Strip) -> list[Lists]:
    mapping, weight = strip.mapping, strip.operands.weight
    return [weight_lists(design, mapping, weight, group) for group in range(mapping.groups)]


def _vectors(lists: Lists) -> IntArray:
    lanes = np.stack([lists.values, lists.indices], axis=-1).reshape(lists.vectors, -1)
    return np.concatenate([lanes, lists.last[:, None]], axis=1).astype(np.int64)


__all__ = ["PORTS", "LayerRun", "PassWords", "pass_words", "word_counts"]
