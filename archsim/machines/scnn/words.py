"""The words of a sparse core's ports: layers as passes, their command and their lists.

A vector's payload is value and index of each lane, and above them `last`; ports as in
`archsim.machines.scnn.command.scnn_ports`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.codecs.zero_run import Lists, join
from archsim.errors import require
from archsim.layer import layout
from archsim.layer.problem import Problem, problem_of
from archsim.machines.scnn.chain import exchanged, link, require_follows
from archsim.machines.scnn.choice import Choice
from archsim.machines.scnn.command import Output, command_values
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import Layer, LayerPlan, layer_passes, parts_of, plan_layer
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.strips import Strip
from archsim.numbers import IntArray
from workloads.operands import Operands
from workloads.pooling import MaxPool

PORTS = ("command", "ifmap", "weight", "bias", "ofmap")


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerRun:
    """A layer with what it computes with; keep_ofmap: its ofmap stays for the run behind it; pool:
    the pooling behind it; choice: how a layer by itself is cut, None as the core does."""

    layer: Layer
    operands: Operands
    keep_ofmap: bool = False
    pool: MaxPool | None = None
    choice: Choice | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PassWords:
    """A pass, ready to run, and the payload of its words: by port, [words, lanes].

    number: of the layer among those that follow one another.  image, group: of the layer's, which
    the pass computes.  weight_vectors: of each group of
    filters.  An ifmap or ofmap that stays has no words.
    """

    run: LayerRun
    number: int
    image: int
    group: int
    strip: Strip
    weight_vectors: tuple[int, ...]
    words: Mapping[str, IntArray]


def pass_words(design: Scnn, runs: Iterable[LayerRun]) -> list[PassWords]:
    """The passes of layers that follow one another, with all words; no cycle plays a part.

    A fully connected layer is folded as `layer_timing` does, unless its ifmap or ofmap stays.
    Raises `InputError` as `archsim.machines.scnn.layer.layer_timing`, for a pass that no command
    can hold, and for an ofmap that is to stay and cannot (`archsim.machines.scnn.chain`).
    """
    every = tuple(runs)
    plans = _linked(design, every)
    pairs = enumerate(zip(every, plans, strict=True))
    return [one for number, (run, plan) in pairs for one in _layer_words(design, run, number, plan)]


def _linked(design: Scnn, runs: Sequence[LayerRun]) -> list[LayerPlan | None]:
    """Plans of the runs whose ifmap or ofmap stays, None for the others."""
    plans: list[LayerPlan | None] = []
    here, before = design, None
    for run in runs:
        here = exchanged(here) if before else design
        linked = before or run.keep_ofmap
        for name in ("activation_memory", "weight_memory", "accumulator_memory"):
            memory = getattr(design, name)
            require(
                not run.keep_ofmap or memory.exact,
                f"{run.layer.name}: {name} must be exact for an ofmap that stays, not "
                f"{memory.kind}",
            )
        given = here, run.layer, run.operands, run.pool
        plan = plan_layer(*given, whole=True) if linked else None
        if before and plan:
            require_follows(before, run.layer, run.operands)
            plans[-1], plan = link(before, plan)
        plans.append(plan)
        before = plan if run.keep_ofmap else None
    require(not before, "an ofmap that stays must have a run behind it, not be the last")
    return plans


def word_counts(passes: Sequence[PassWords]) -> dict[str, int]:
    """Words of passes at each port."""
    return {port: sum(len(one.words[port]) for one in passes) for port in PORTS}


def _layer_words(
    design: Scnn, run: LayerRun, layer_number: int, plan: LayerPlan | None = None
) -> Iterator[PassWords]:
    layer, operands, choice = run.layer, run.operands, run.choice
    parts = () if plan or run.pool else parts_of(design, layer, operands, choice)
    for part in parts:
        cut = replace(choice, plane=None) if choice else None
        own = LayerRun(layer=part.layer, operands=part.operands, choice=cut)
        yield from _layer_words(design, own, layer_number)
    if parts:
        return
    cut_by = choice.planned(design) if choice else design
    passes = plan.passes if plan else layer_passes(cut_by, layer, operands, run.pool)
    problem = problem_of(layer)
    biases, output = _biases_and_output(run, problem)
    for number, strips in enumerate(passes):
        image, group = divmod(number, problem.groups)
        for strip in strips:
            command = command_values(design, strip.mapping, output)
            weights = _weights(design, strip)
            words = {
                "command": np.array([command], np.int64),
                "ifmap": _vectors(strip.operands.ifmap, stays=strip.mapping.ifmap_kept),
                "weight": _vectors(join(weights)),
                "bias": biases[group][:, None],
                "ofmap": _vectors(strip.operands.ofmap, stays=strip.mapping.keep_ofmap),
            }
            yield PassWords(
                run=run,
                number=layer_number,
                image=image,
                group=group,
                strip=strip,
                weight_vectors=tuple(one.vectors for one in weights),
                words=words,
            )


def _biases_and_output(run: LayerRun, problem: Problem) -> tuple[IntArray, Output]:
    """Biases [groups, filters], and what a command says of the output."""
    operands = run.operands
    biases = np.zeros((problem.groups, 0), np.int64)
    if operands.bias is not None:
        biases = layout.split_bias(run.layer, problem, operands.bias.astype(np.int64))
    output = Output(
        has_bias=operands.bias is not None,
        relu=bool(problem.relu),
        multiplier=operands.multiplier,
        shift=operands.shift,
    )
    return biases, output


def _weights(design: Scnn, strip: Strip) -> list[Lists]:
    mapping, weight = strip.mapping, strip.operands.weight
    return [weight_lists(design, mapping, weight, group) for group in range(mapping.groups)]


def _vectors(lists: Lists, *, stays: bool = False) -> IntArray:
    lanes = np.stack([lists.values, lists.indices], axis=-1).reshape(lists.vectors, -1)
    rows = np.concatenate([lanes, lists.last[:, None]], axis=1).astype(np.int64)
    return rows[:0] if stays else rows


__all__ = ["PORTS", "LayerRun", "PassWords", "pass_words", "word_counts"]
