"""The model of cores that are walked by tiles, whatever their array is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from archsim.errors import InputError, require
from archsim.kernels import Kernel
from archsim.layer.problem import Problem, Tiling
from archsim.machine.interval import LAYERS, Interval, Track
from archsim.machine.mapped import MappedLayer
from archsim.machine.model import (
    Answer,
    MachineModel,
    ManyCounts,
    MatrixLayer,
    OperandsOf,
    Options,
)
from archsim.machine.over_time import OverTime
from archsim.machine.pe_occupancy import Occupancy
from archsim.numbers import IntArray
from archsim.ports import Port, Transfers
from archsim.result import LayerResult
from archsim.tiled.activity import TRACKS, Activity, layer_activity
from archsim.tiled.choice import TIMING
from archsim.tiled.design import CoreDesign
from archsim.tiled.gathered_rows import check_rows
from archsim.tiled.loop_nest import mapped_layer
from archsim.tiled.mapper import FAST, Mapper
from archsim.tiled.mapper_options import mapper_of
from archsim.tiled.mapping_file import mapping_of_step, told_where
from archsim.tiled.occupancy import tile_occupancy
from archsim.tiled.operand_fit import action_bounds
from archsim.tiled.timeline import binned
from archsim.tiled.timing import TileRun, check_tiling_names, plan_tiling, time_layer
from archsim.tiled.trace import Answer as Crossings
from archsim.tiled.trace import answer
from workloads.layers import Network
from workloads.limits import limits
from workloads.steps import one_step, steps_in


@dataclass(frozen=True, kw_only=True, eq=False)
class TileAnswer(Answer):
    """A layer in a tiling; operands: None where only intervals are wanted."""

    design: CoreDesign
    layer: MatrixLayer
    tiling: Tiling
    operands: Any

    @cached_property
    def activity(self) -> Activity:
        """When each unit did what."""
        return layer_activity(self.design, self.layer, self.tiling)

    @cached_property
    def _crossings(self) -> Crossings:
        if self.operands is None:
            raise InputError(f"{self.layer.name}: words depend on the operands; give some")
        return answer(self.design, self.layer, self.tiling, self.operands)

    @property
    def cycles(self) -> int:
        return self.activity.cycles

    @property
    def steps(self) -> int:
        return len(self.activity.tiles)

    @property
    def transfers(self) -> Mapping[str, Transfers]:
        return self._crossings.transfers

    @property
    def earliest(self) -> Mapping[str, IntArray]:
        return self._crossings.earliest

    @property
    def actions(self) -> Mapping[str, int]:
        return self._crossings.actions

    def intervals(self, start_cycle: int = 0) -> Iterator[Interval]:
        yield Interval(
            unit=LAYERS,
            what=self.layer.name,
            layer=self.layer.name,
            start_cycle=start_cycle,
            end_cycle=start_cycle + self.cycles,
        )
        yield from replace(self.activity, start_cycle=start_cycle)

    def of_steps(self, numbers: range) -> Iterator[Interval]:
        return self.activity.of_tiles(numbers)

    def steps_within(self, first_cycle: int, end_cycle: int) -> range:
        return self.activity.tiles_within(first_cycle, end_cycle)


class TileMachine(MachineModel):
    """Systolic arrays, tensor cores, vector MACs: everything that is a `CoreDesign`."""

    design: CoreDesign

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.design.ports

    @property
    def tracks(self) -> tuple[Track, ...]:
        return TRACKS

    def kernels(self, options: Options, *, many: bool = False) -> tuple[Kernel[..., Any], ...]:
        mapper = mapper_of(options)
        if many:
            return (_time_many(mapper),)
        return *mapper.kernels, *TIMING

    def run(self, network: Network, operands: OperandsOf, options: Options) -> TileRun:
        """Raises `InputError` for tilings of layers that the array does not compute."""
        tilings = _tilings(options)
        check_tiling_names(network, tilings)
        return TileRun(self.design, operands, tilings, mapper_of(options))

    def answer(self, layer: MatrixLayer, operands: Any, options: Options) -> TileAnswer:
        """In the tiling given, or the automatic one without regard to the operands."""
        given = _tilings(options)
        with told_where(given, layer.name):
            tiling = plan_tiling(
                self.design, layer, given.get(layer.name), mapper=mapper_of(options)
            )
        return TileAnswer(design=self.design, layer=layer, tiling=tiling, operands=operands)

    def options_as_run(self, layer: LayerResult) -> Options:
        """In its tiling."""
        return {} if layer.tiling is None else {"mappings": {layer.name: layer.tiling}}

    def options_of_step(self, options: Options, layer: MatrixLayer, step: MatrixLayer) -> Options:
        """The layer's tiling as the step's."""
        given = _tilings(options)
        rest = {name: value for name, value in options.items() if name != "mappings"}
        if layer.name not in given:
            return rest
        return {**rest, "mappings": mapping_of_step(given, layer.name, step.name)}

    def over_time(self, network: Network, options: Options) -> OverTime:
        tilings, mapper = dict(_tilings(options)), mapper_of(options)
        if mapper != FAST:
            run = TileRun(self.design, lambda _: None, tilings, mapper)
            for layer in network.matrix_layers:
                tiling = run.result(layer).tiling
                assert tiling is not None
                tilings[layer.name] = tiling
        return binned(self.design, network, tilings=tilings)

    def occupancy(self, name: str, layers: Sequence[LayerResult], bins: int) -> Occupancy:
        """Useful MACs, in the tilings of the result."""
        return tile_occupancy(name, self.design, layers, bins)

    def mapped(
        self, network: Network, layers: Sequence[MatrixLayer], options: Options
    ) -> Sequence[MappedLayer]:
        """Without regard to operands; of a layer of many steps, the mapping of each."""
        run = self.run(network, lambda _: None, options)
        problem = self.design.numerics.problem
        return [
            mapped_layer(self.design, problem(one_step(layer)), run.result(layer))
            for layer in layers
        ]

    def most_actions(self, layer: LayerResult) -> Mapping[str, float]:
        """Rows and entries of compressed memories, which are counted from values."""
        if all(name in layer.actions for name in self.design.actions):
            return {}
        counts = {name: float(count) for name, count in layer.actions.items()}
        return action_bounds(self.design, counts)

    @classmethod
    def cycles_of_many(
        cls, designs: Sequence[CoreDesign], layers: Sequence[MatrixLayer], options: Options
    ) -> IntArray:
        """One compiled pass over designs, layers, loops; each layer with its best tiling."""
        mapper = _at_once(options)
        cycles = np.zeros((len(designs), len(layers)), np.int64)
        for rows, timed in _timed(designs, layers, mapper):
            cycles[rows] = timed.cycles[:, timed.places]
        steps = np.array([steps_in(layer) for layer in layers], np.int64)
        return np.where(cycles < 0, cycles, cycles * steps)

    @classmethod
    def counts_of_many(
        cls, designs: Sequence[CoreDesign], layers: Sequence[MatrixLayer], options: Options
    ) -> ManyCounts:
        """By kinds of tiles; one by one where a memory's capacity hangs on values, and with a
        gather unit, whose words kinds do not count."""
        from archsim.tiled.many import COUNTS, count_many

        mapper = _at_once(options)
        if any(design.stores or design.gather for design in designs):
            return super().counts_of_many(designs, layers, options)
        steps = np.array([steps_in(layer) for layer in layers], np.int64)
        cycles = np.zeros((len(designs), len(layers)), np.int64)
        counts = np.zeros((len(designs), len(COUNTS) + 2))
        for rows, timed in _timed(designs, layers, mapper):
            each = count_many(timed.problems, timed.tilings, timed.machines)
            cycles[rows] = timed.cycles[:, timed.places]
            times = np.bincount(timed.places, steps, len(timed.problems))
            counts[rows, :-2] = np.einsum("dlc,l->dc", each, times)
        cycles = np.where(cycles < 0, cycles, cycles * steps)
        counts[:, -2] = (cycles >= 0) @ np.array([layer.macs for layer in layers], np.float64)
        counts[:, -1] = np.maximum(cycles, 0).sum(axis=1)
        return ManyCounts(cycles, (*COUNTS, "mac", "cycle"), counts)


class _Timed(NamedTuple):
    """Distinct problems [problems, ·] on machines [machines, ·]: cycles [machines, problems],
    tilings [machines, problems, TILING_COLUMNS]; places: which problem each layer is."""

    problems: IntArray
    machines: IntArray
    places: IntArray
    cycles: IntArray
    tilings: IntArray


def _at_once(options: Options) -> Mapper:
    """The mapper of many designs at once.

    Raises `InputError` where it is not one that the compiled pass has.
    """
    mapper = mapper_of(options)
    require(
        not _tilings(options) and mapper.search != "exact" and mapper.objective == "cycles",
        "many designs at once are mapped by fast or rough, and by cycles; simulate each by itself "
        "for the exact mapper, other objectives and mappings by hand",
    )
    return mapper


def _time_many(mapper: Mapper) -> Kernel[[IntArray, IntArray, int], tuple[IntArray, IntArray]]:
    """The compiled pass of a mapper."""
    from archsim.tiled.families import time_many, time_many_roughly

    return time_many_roughly if mapper.search == "rough" else time_many


def _timed(
    designs: Sequence[CoreDesign], layers: Sequence[MatrixLayer], mapper: Mapper
) -> Iterator[tuple[list[int], _Timed]]:
    """Designs that see layers alike, by their places, and a step of each distinct layer."""
    from archsim.tiled.families import TOO_MANY_TILES, in_families

    # most numerics make the same problems
    alike: dict[tuple[Problem, ...], list[int]] = {}
    seen: dict[Any, list[int]] = {}
    for at, design in enumerate(designs):
        if design.gather_units:
            for layer in layers:
                check_rows(design, layer)
        key = design.numerics.problem_key
        if key not in seen:
            own = tuple(design.numerics.problem(one_step(layer)) for layer in layers)
            seen[key] = alike.setdefault(own, [])
        seen[key].append(at)
    for problems, rows in alike.items():
        unique = {problem: number for number, problem in enumerate(dict.fromkeys(problems))}
        vectors = np.stack([problem.vector() for problem in unique])
        machines, same = in_families(np.stack([designs[at].machine for at in rows]))
        found, tilings = _time_many(mapper)(vectors, machines, limits().tiles)
        places = np.array([unique[problem] for problem in problems])
        cycles = found[same]
        for at, place in np.argwhere(cycles == TOO_MANY_TILES):  # found again, to say how many
            layer = layers[int(np.argmax(places == place))]
            time_layer(designs[rows[int(at)]], layer, mapper=mapper)
        yield rows, _Timed(vectors, machines[same], places, cycles, tilings[same])


def _tilings(options: Options) -> Mapping[str, Tiling]:
    return options.get("mappings") or {}


__all__ = ["TileAnswer", "TileMachine"]
