"""Other ways to the figures of a layer on a sparse core: all have to say what its passes say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from archsim.machines.scnn.answer import sparse_answer
from archsim.machines.scnn.chain import chain_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.layer import layer_timing, plan_layer, planned_timing
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.machines.scnn.words import LayerRun, pass_words
from rtl.draw import Draw
from rtl.slow_memory import slow_off_chip
from workloads.layers import MatMul

Pair = tuple[int, int]


def figures_apart(design: Scnn, runs: Sequence[LayerRun]) -> Mapping[str, Pair]:
    """Figures that two ways of the model give, by name, where they are not the same.

    Of the last layer, or of all where each ofmap stays but the last: pass by pass with all words,
    and as layers with neither; on the design, and on one whose off-chip memory is slow.
    """
    last = runs[-1]
    chained = len(runs) > 1 and all(run.keep_ofmap for run in runs[:-1])
    chained &= not any(isinstance(run.layer, MatMul) for run in runs)  # layers alone may fold these
    some = tuple(runs) if chained else (last,)
    slow = replace(design, off_chip=slow_off_chip(Draw(last.layer.macs, len(runs))))
    pairs = dict(_pairs(slow, some))
    return {name: two for name, two in pairs.items() if two[0] != two[1]}


def _pairs(design: Scnn, runs: tuple[LayerRun, ...]) -> Iterator[tuple[str, Pair]]:
    words = sparse_answer(design, pass_words(design, runs))
    layers = _timed(design, runs)
    yield "cycles by passes and layers", (words.cycles, sum(one.cycles for one in layers))
    for name, count in words.actions.items():
        yield f"{name} by passes and layers", (count, sum(one.actions[name] for one in layers))


def _timed(design: Scnn, runs: tuple[LayerRun, ...]) -> tuple[ScnnTiming, ...]:
    if len(runs) == 1:
        (run,) = runs
        if run.choice:
            plan = plan_layer(design, run.layer, run.operands, choice=run.choice)
            return (planned_timing(design, plan),)
        return (layer_timing(design, run.layer, run.operands, pool=run.pool),)
    layers, operands = [run.layer for run in runs], [run.operands for run in runs]
    return chain_timing(design, layers, operands, pools=[run.pool for run in runs])


__all__ = ["figures_apart"]
