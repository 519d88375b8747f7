"""Other ways to the figures of a layer in a tiling: all have to say what the plan of tiles says."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.layer.problem import Problem, Tiling
from archsim.numbers import IntArray
from archsim.result import LayerResult
from archsim.tiled import plan as pn
from archsim.tiled.actions import count_actions
from archsim.tiled.bound_paths import bound_of
from archsim.tiled.commands import TileCommand, columns_of
from archsim.tiled.cycles import cycles_of, cycles_within
from archsim.tiled.design import CoreDesign
from archsim.tiled.gaps import NO_GAPS, join_gaps
from archsim.tiled.many import COUNTS, count_many
from archsim.tiled.nest import RUN_COLUMNS, ifmap_words, make_nest, most_runs
from archsim.tiled.plan import PlanRecord, plan_columns, plan_row
from archsim.tiled.schedule import schedule
from archsim.tiled.side_by_side import block_problem
from archsim.tiled.summary import LayerSummary, time_tiles
from archsim.tiled.timing import time_layer
from archsim.tiled.traffic import services_of
from archsim.tiled.walk import walk_layer
from rtl.apart import Pair, first_apart
from rtl.draw import Draw
from rtl.slow_memory import slow_off_chip
from rtl.stepped.core import Stepped
from workloads.layers import Conv2d, MatMul


def figures_apart(design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling) -> Mapping[str, Pair]:
    """Figures that two ways of the model give, by name, where they are not the same.

    Of the layer's design, and of one whose off-chip memory is slow: the plan with a row for every
    tile, its summary, the scan over loops, counts by kinds of tiles; many designs at once and one
    by one, each in the tiling that it finds; commands of tiles, and blocks of groups, by what they
    are made of; outputs by the closed form of a port that never waits, and by rows.  With the slow
    one the core stepped from its contract too (`rtl.stepped`), for so many cycles as `STEPPED`.
    """
    slow = replace(design, off_chip=slow_off_chip(Draw(layer.macs, tiling.filters)))
    apart: dict[str, Pair] = {}
    for where, one in (("", design), (" with a slow off-chip memory", slow)):
        pairs = dict(_in_a_tiling(one, layer, tiling))
        apart |= {f"{name}{where}": two for name, two in pairs.items() if two[0] != two[1]}
    pairs = dict(_by_steps(slow, layer, tiling)) | dict(_at_once(slow, layer))
    pairs |= dict(_of_commands(design, layer, tiling)) | dict(_of_outputs(design, layer, tiling))
    return apart | {name: two for name, two in pairs.items() if two[0] != two[1]}


STEPPED = 5_000
"""Cycles of a layer that are stepped: what is not over by then is compared as far as that."""


def _by_steps(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling
) -> Iterator[tuple[str, Pair]]:
    """The plan, and the core stepped cycle by cycle: the end, and of every load and output the
    cycles in which its first and last words cross."""
    tiles = walk_layer(design.numerics.problem(layer), tiling, design.machine)
    plan = schedule(tiles, design.machine, services_of(design.machine), NO_GAPS)
    core = Stepped(design, tiles)
    ended, planned = core.run(STEPPED), plan_row(plan, -1).written
    if ended is None:
        yield "cycles by plan and steps", (min(planned, STEPPED), STEPPED)
        return
    yield "cycles by plan and steps", (planned, ended)
    for port, (words, first) in _crossed(columns_of(tiles), plan_columns(plan)).items():
        crossing = words * (first >= 0)
        ends = np.cumsum(crossing)[crossing > 0]
        begins = ends - crossing[crossing > 0]
        by_steps = np.array(core.crossed[port], np.int64)
        yield f"{port} words by tiles and steps", (int(crossing.sum()), len(by_steps))
        if crossing.sum() == len(by_steps):
            said = first[crossing > 0]
            yield f"{port} first words by plan and steps", first_apart(said, by_steps[begins])
            if port == "ofmap":
                said = plan_columns(plan).last_out[crossing > 0]
                yield "ofmap last words by plan and steps", first_apart(said, by_steps[ends - 1])


def _crossed(
    tiles: TileCommand[IntArray], plan: PlanRecord[IntArray]
) -> dict[str, tuple[IntArray, IntArray]]:
    """By port, of every tile: its words, and the cycle in which the first crosses."""
    return {
        "ifmap": (tiles.ifmap_words, plan.ifmap_first),
        "weight": (tiles.weight_words, plan.weight_first),
        "bias": (tiles.bias_words, plan.bias_first),
        "ofmap": (tiles.output_words, plan.first_out),
    }


def _in_a_tiling(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling
) -> Iterator[tuple[str, Pair]]:
    problem, machine = design.numerics.problem(layer), design.machine
    tiles = walk_layer(problem, tiling, machine)
    plan = schedule(tiles, machine, services_of(machine), NO_GAPS)
    said = LayerSummary(*time_tiles(tiles, machine).tolist())
    written = plan_row(plan, -1).written
    block = problem.side_by_side(tiling.groups).vector()
    yield "cycles by plan and summary", (written, said.cycles)
    yield "cycles by plan and loops", (written, int(cycles_of(block, tiling.vector(), machine)))
    yield from _within(block, tiling, machine, written)
    yield "cycles and their causes", (said.cycles, sum(getattr(said, c, 0) for c in CAUSES))
    yield "tiles", (len(tiles), said.tiles)
    yield from _counts(design, said, tiles, (problem, tiling))


def _within(
    block: IntArray, tiling: Tiling, machine: IntArray, written: int
) -> Iterator[tuple[str, Pair]]:
    """A schedule that stops where it has lost: with room for all cycles, and for one less."""
    vector = tiling.vector()
    bounds = bound_of(block, machine, vector)
    yield (
        "cycles by plan and with a limit",
        (written, cycles_within(block, vector, machine, bounds, written)),
    )
    over = cycles_within(block, vector, machine, bounds, written - 1)
    yield "cycles above a limit", (written, min(max(over, written), written))


STEPS = {
    "row_step": ("row_stride", "pitch"), "tap_step": ("tap_rows", "pitch"),
    "image_step": ("height", "pitch"), "address_start": ("row_start", "pitch"),
}  # fmt: skip
"""Of a tile's command what the RTL has as a product of two others."""


def _of_commands(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling
) -> Iterator[tuple[str, Pair]]:
    """Steps of addresses, and their factors; blocks of groups side by side, as tiles are made of
    them and as words are."""
    problem = design.numerics.problem(layer)
    tiles = columns_of(walk_layer(problem, tiling, design.machine))
    for step, (one, other) in STEPS.items():
        made = getattr(tiles, one) * getattr(tiles, other)
        yield f"{step} and its factors", first_apart(getattr(tiles, step), made)
    for groups in {1, 2, tiling.groups}:
        words = problem.side_by_side(groups).vector()
        block = block_problem(problem.vector(), groups)
        yield f"blocks of {groups} groups of tiles and of words", first_apart(block, words)


def _of_outputs(
    design: CoreDesign, layer: Conv2d | MatMul, tiling: Tiling
) -> Iterator[tuple[str, Pair]]:
    """Ports that never wait: outputs by the closed form, and row by row; and a first word that
    waits for longer than all would take."""
    tiles = walk_layer(design.numerics.problem(layer), tiling, design.machine)
    services = np.zeros((len(pn.PORTS), pn.SERVICE_COLUMNS), np.int64)
    free = schedule(tiles, design.machine, services, NO_GAPS)
    late, words = int(free.max()) + 7, int(columns_of(tiles).output_words.sum())
    stepped, waiting = (
        schedule(tiles, design.machine, services, _ofmap_gaps(words, first)) for first in (0, late)
    )
    yield "outputs by a closed form and by rows", first_apart(_drains(free), _drains(stepped))
    crossed = plan_columns(waiting).first_out
    yield "a first output that is late", (int(crossed[crossed >= 0][0]), late)


def _drains(plan: IntArray) -> IntArray:
    """[tiles, 5] of a plan."""
    at = plan_columns(plan)
    return np.stack(
        [at.stream_start, at.drain_start, at.drain_end, at.first_out, at.last_out], axis=1
    )


def _ofmap_gaps(words: int, first: int) -> IntArray:
    """Of a port whose first word alone waits."""
    times = np.arange(first, first + words, dtype=np.int64) + 1
    return join_gaps([np.zeros(0, np.int64)] * pn.OFMAP + [times])


def _counts(
    design: CoreDesign, said: LayerSummary, tiles: Any, of: tuple[Problem, Tiling]
) -> Iterator[tuple[str, Pair]]:
    """Actions and bytes, by tiles and by kinds of tiles; none of a layer that has no tiling."""
    problem, tiling = (one.vector() for one in of)
    tilings = np.stack([tiling, np.zeros_like(tiling)])
    kinds, none = count_many(np.stack([problem] * 2), tilings[None], design.machine[None])[0]
    yield "counts of a layer without a tiling", (int(np.abs(none).sum()), 0)
    by_kinds = dict(zip(COUNTS, kinds.tolist(), strict=True))
    actions = count_actions(tiles, design.machine, design.stores)
    if not design.gather_units:
        yield "ifmap words by tiles and runs", _ifmap_words(design, tiles, of)
    for name, count in by_kinds.items():
        if name in actions:
            yield f"{name} by tiles and kinds", (int(actions[name]), int(count))
        elif name.endswith("_bytes"):
            yield f"{name} by tiles and kinds", (int(getattr(said, name)), int(count))


def _ifmap_words(design: CoreDesign, tiles: Any, of: tuple[Problem, Tiling]) -> Pair:
    columns, (problem, chosen) = columns_of(tiles), of
    block, tiling = problem.side_by_side(chosen.groups).vector(), chosen.vector()
    runs = np.empty((most_runs(block, tiling), RUN_COLUMNS), np.int64)
    nest = make_nest(block, tiling, runs)
    words = ifmap_words(nest, runs, (block, tiling, design.machine))
    return int((columns.ifmap_words * columns.loads[0]).sum()), int(words)


def _at_once(design: CoreDesign, layer: Conv2d | MatMul) -> Iterator[tuple[str, Pair]]:
    """Of the tiling that is found: many designs at once, and this one alone; what they count too,
    but where capacities hang on values, which many are not asked for at once."""
    twice, model = [design, design], design.machine_model()
    try:
        alone: LayerResult | None = time_layer(design, layer)
    except InputError:  # whatever its values are, it does not fit
        alone = None
    counted = {} if alone is None else _counted(alone)
    if design.stores:
        cycles, counts = model.cycles_of_many(twice, [layer], {}), {}
    else:
        cycles, names, rows = model.counts_of_many(twice, [layer], {})
        counts = dict(zip(names, rows[1].tolist(), strict=True))
    many = int(cycles[1, 0])
    yield "cycles by many designs and one", (-1 if alone is None else alone.cycles, many)
    for name in sorted(counts.keys() & counted.keys()):
        yield f"{name} by many designs and one", (counted[name], int(counts[name]))


def _counted(alone: LayerResult) -> dict[str, int]:
    """Actions and bytes, as many designs at once name them."""
    moved = {f"{port}_bytes": count for port, count in alone.bytes_moved.items()}
    return {name: int(count) for name, count in (dict(alone.actions) | moved).items()}


__all__ = ["figures_apart"]
