"""What designs of a space give on a network: many at once where their cycles need no operands.

`Evaluator.outcome` is the one function that runs where points are computed, in this process or in
another: it is given numbers of designs and answers with columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archsim.energy import account, action_counts
from archsim.errors import InputError
from archsim.evaluate import Evaluations, evaluate_many
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.numbers import IntArray
from archsim.objectives import measured
from archsim.result import NetworkResult
from archsim.simulate import simulate, simulate_many
from archsim.sweeps.objectives import UNITS, check_actions
from archsim.sweeps.outcome import DONE, FAILED, REFUSED, FloatArray, Outcome
from archsim.sweeps.points import Grid
from archsim.sweeps.prices import Prices, Supply
from archsim.sweeps.space import Space
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network

AT_ONCE = frozenset(UNITS)
"""Objectives that need no whole simulation where cycles need no operands: all but actions."""


class Evaluator:
    """Computes points of a space; holds its networks, prices and designs."""

    def __init__(self, space: Space) -> None:
        self.grid = Grid(space)
        self.space = space
        self.names = space.objectives
        self.prices = Prices(space)
        self._at_once_names = AT_ONCE | set(space.measured)

    def check(self) -> None:
        """Raise `InputError` for an objective that a machine, or a technology, cannot give.

        A layer of one product on each machine's base tells which actions it counts.
        """
        self.prices.check()
        for machine in self.space.machines:
            found = self._probed(machine.design, machine.drawing)
            check_actions(self.names, found, machine.design.kind)
            for one in self.space.measured.values():
                for network in self.grid.networks:
                    one.check(machine.design, network)

    @property
    def costly(self) -> bool:
        """Whether every point takes its time: an objective is measured."""
        return bool(self.space.measured)

    def designs(self, numbers: IntArray) -> list[Design | InputError]:
        """Each design, or why it is none, or has no price."""
        found = self.grid.designs(numbers)
        if self.prices.needed:
            for part, places, digits in self.grid.split(numbers):
                supplies = self.prices.of(part.variant, digits)
                for place, supply in zip(places.tolist(), supplies, strict=True):
                    refused = self.prices.refusal(supply, part.machine)
                    if refused is not None and not isinstance(found[place], InputError):
                        found[place] = refused
        return found

    def _supplies(self, numbers: IntArray) -> list[Supply]:
        """What prices each design; nothing where none is asked for."""
        if not self.prices.needed:
            return []
        found: list[Any] = [None] * len(numbers)
        for part, places, digits in self.grid.split(numbers):
            supplies = self.prices.of(part.variant, digits)
            for place, supply in zip(places.tolist(), supplies, strict=True):
                found[place] = supply
        return found

    def _options(self, numbers: IntArray) -> list[Mapping[str, Any]]:
        """What each design is simulated with."""
        found: list[Mapping[str, Any]] = [{}] * len(numbers)
        if any(one.options for one in self.space.machines):
            for part, places, _ in self.grid.split(numbers):
                for place in places.tolist():
                    found[place] = part.machine.options
        return found

    def _probed(self, design: Design, drawing: Drawing) -> dict[str, float]:
        layer = Conv2d(
            name="probe", channels=1, filters=1, ifmap_height=1, ifmap_width=1,
            kernel_height=1, kernel_width=1,
        )  # fmt: skip
        network = Network(name="probe", layers=(layer,), source="probe")
        result = simulate(design, network, operands=_drawn(design, drawing))
        return action_counts(result.layers[0], design)

    def outcome(self, numbers: IntArray, network: int) -> Outcome:
        """Compute designs, by their numbers, on a network; whatever fails is told of its point."""
        began = time.process_time()
        numbers = np.asarray(numbers, np.int64)
        designs = self.designs(numbers)
        values = {name: np.full(len(numbers), np.nan) for name in self.names}
        found = Outcome(numbers=numbers, network=network, values=values)
        if self.space.layers:
            layers = self.grid.networks[network].matrix_layers
            found.layers = np.full((len(numbers), len(layers)), -1, np.int64)
        supplies = self._supplies(numbers) or [None] * len(numbers)
        options = self._options(numbers)
        many: dict[tuple[Supply | None, tuple[tuple[str, Any], ...]], list[int]] = {}
        for place, design in enumerate(designs):
            if isinstance(design, InputError):
                found.errors[place] = (REFUSED, str(design))
            elif self._at_once_names.issuperset(self.names) and not _by_values(design):
                same = supplies[place], tuple(options[place].items())
                many.setdefault(same, []).append(place)
            else:
                self._try(found, place, design)
        for (supply, taken), places in many.items():
            self._at_once(found, places, designs, (supply, dict(taken)))
        found.cpu_seconds = time.process_time() - began
        return found

    def _try(
        self,
        found: Outcome,
        place: int,
        design: Design,
        compute: Callable[[Outcome, int, Design], None] | None = None,
    ) -> None:
        """One point by itself, all of it, or what `compute` does."""
        try:
            (compute or self._one)(found, place, design)
        except (InputError, WorkloadError) as error:
            found.errors[place] = (REFUSED, str(error))
        except Exception as error:  # a fault of one point is no reason to lose the others
            found.errors[place] = (FAILED, f"{type(error).__name__}: {error}")
        if place in found.errors:
            for column in found.values.values():
                column[place] = np.nan

    def _one(self, found: Outcome, place: int, design: Design) -> None:
        """Simulate a point with all its counts."""
        part, _ = self.grid.where(int(found.numbers[place]))
        network = self.grid.networks[found.network]
        drawn = _drawn(design, part.machine.drawing)
        result = simulate(design, network, operands=drawn, **part.machine.options)
        if found.layers is not None:
            cycles = {layer.name: layer.cycles for layer in result.layers}
            found.layers[place] = [cycles[layer.name] for layer in network.matrix_layers]
        figures = self._figures(design, result, found.numbers[place : place + 1])
        for name, value in figures.items():
            if name in found.values:
                found.values[name][place] = value
        self._measure(found, place, design)

    def _measure(self, found: Outcome, place: int, design: Design) -> None:
        """What is measured point by point."""
        for name, one in self.space.measured.items():
            network = self.grid.networks[found.network]
            found.values[name][place] = measured(one, name, design, network)

    def _figures(
        self, design: Design, result: NetworkResult, number: IntArray
    ) -> Mapping[str, float]:
        figures: dict[str, float] = {"cycles": result.cycles, "seconds": result.seconds}
        for supply in self._supplies(number):
            energy = account(result, self.prices.technology(supply))
            figures |= {"energy_pj": energy.total, "edp_pj_s": energy.total * result.seconds}
            figures["area_um2"] = energy.area_um2 or np.nan
        figures["footprint_bytes"] = footprint_bytes(design)
        for name in self.names:
            if name not in UNITS and name not in self.space.measured:
                figures[name] = sum(
                    action_counts(layer, design).get(name, 0.0)
                    for layer in result.layers
                    if layer.cycles
                )
        return figures

    def _at_once(
        self,
        found: Outcome,
        places: Sequence[int],
        designs: Sequence[Any],
        how: tuple[Supply | None, Mapping[str, Any]],
    ) -> None:
        """Points that need no whole simulation; one by one where one of them is refused.

        how: what prices them, and the options that they are simulated with.
        """
        supply, options = how
        network = self.grid.networks[found.network]
        chosen = [designs[place] for place in places]
        rows = np.asarray(places)
        clocks_hz = np.array([design.clock_hz for design in chosen])
        try:
            if supply is not None:
                many = evaluate_many(
                    chosen, network, technology=self.prices.book(supply), **options
                )
                cycles, names = many.cycles, many.layers
                self._take_priced(found, rows, many)
            else:
                cycles, names = simulate_many(chosen, network, **options)
        except Exception:  # of a point that will say it by itself
            for place, design in zip(places, chosen, strict=True):
                self._try(found, place, design)
            return
        self._take_cycles(found, rows, (cycles, clocks_hz), names)
        if "footprint_bytes" in found.values:
            footprints = found.values["footprint_bytes"]
            footprints[rows] = np.where((cycles >= 0).all(axis=1), footprints_of(chosen), np.nan)
        if self.space.measured:
            for place, design in zip(places, chosen, strict=True):
                if place not in found.errors:
                    self._try(found, place, design, self._measure)

    def _take_cycles(
        self,
        found: Outcome,
        places: IntArray,
        timed: tuple[IntArray, FloatArray],
        names: Sequence[str],
    ) -> None:
        cycles, clocks_hz = timed
        totals = cycles.sum(axis=1).astype(np.float64)
        fits = (cycles >= 0).all(axis=1)
        for row in np.flatnonzero(~fits).tolist():
            layer = names[int(np.argmax(cycles[row] < 0))]
            found.errors[int(places[row])] = (REFUSED, f"{layer}: no tiling fits this design")
        totals[~fits] = np.nan
        for name, column in (("cycles", totals), ("seconds", totals / clocks_hz)):
            if name in found.values:
                found.values[name][places] = column
        if found.layers is not None:
            found.layers[places] = cycles

    def _take_priced(self, found: Outcome, rows: IntArray, many: Evaluations) -> None:
        columns = {"energy_pj": many.energy, "edp_pj_s": many.edp, "area_um2": many.area_um2}
        for name, column in columns.items():
            if name in found.values:
                found.values[name][rows] = np.where(many.fits, column, np.nan)


def footprint_bytes(design: Design) -> float:
    """Bytes of all words of all on-chip memories of a design."""
    bits = sum(
        one.count * one.attributes["word_bits"] * one.attributes["depth"]
        for one in design.components
        if one.kind == "sram"
    )
    return bits / 8


def footprints_of(designs: Sequence[Design]) -> FloatArray:
    """`footprint_bytes` of each."""
    return np.array([footprint_bytes(one) for one in designs], np.float64)


def _by_values(design: Design) -> bool:
    """Whether cycles depend on operands."""
    return design.machine_model().timed_by_values


def _drawn(design: Design, drawing: Drawing) -> Any:
    """Operands for a machine whose cycles depend on them; None for others."""
    if not _by_values(design):
        return None
    intake = design.intake

    def draw(layer: Conv2d | MatMul) -> Any:
        return intake.synthetic(layer, drawing)

    return draw


__all__ = ["AT_ONCE", "DONE", "FAILED", "REFUSED", "Evaluator", "Outcome", "footprint_bytes"]
