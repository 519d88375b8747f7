"""What designs of a space give on a network: many at once where their cycles need no operands.

`Evaluator.outcome` is the one function that runs where points are computed, in this process or in
another: it is given numbers of designs and answers with columns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.energy import account, action_counts, price_design
from archsim.errors import InputError
from archsim.evaluate import Evaluations, evaluate_many
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.numbers import IntArray
from archsim.result import NetworkResult
from archsim.simulate import simulate, simulate_many
from archsim.sweeps.objectives import UNITS, check_actions
from archsim.sweeps.points import Grid
from archsim.sweeps.space import Space
from energy_models.pricing import PriceBook
from energy_models.technology import Technology
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network

FloatArray = npt.NDArray[np.float64]

AT_ONCE = frozenset(UNITS)
"""Objectives that need no whole simulation where cycles need no operands: all but actions."""

DONE, REFUSED, FAILED = "done", "refused", "failed"
"""Of a point: computed; no such design, or one that the network does not fit; an error of ours, of
a library's or of the system's."""


@dataclass(kw_only=True)
class Outcome:
    """Points that were computed: designs on one network.

    numbers: of the designs; network: its place in the space.  values: by objective [designs], NaN
    where there is none.  errors: place → (status, why).  layers: cycles [designs, layers] where
    they are kept, else None.  cpu_seconds: that it took.
    """

    numbers: IntArray
    network: int
    values: dict[str, FloatArray]
    errors: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    layers: IntArray | None = None
    cpu_seconds: float = 0.0

    @classmethod
    def of_error(cls, numbers: IntArray, network: int, names: Sequence[str], why: str) -> Outcome:
        """All of them failed."""
        values = {name: np.full(len(numbers), np.nan) for name in names}
        errors: dict[int, tuple[str, str]] = {at: (FAILED, why) for at in range(len(numbers))}  # noqa: C420
        return cls(numbers=numbers, network=network, values=values, errors=errors)

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """Several outcomes on one network as one."""
        first = parts[0]
        edges = np.cumsum([0, *(len(one.numbers) for one in parts)]).tolist()
        starts = zip(edges, parts, strict=False)
        errors = {at + place: why for at, one in starts for place, why in one.errors.items()}
        width = max((one.layers.shape[1] for one in parts if one.layers is not None), default=None)
        return cls(
            numbers=np.concatenate([one.numbers for one in parts]),
            network=first.network,
            values={
                name: np.concatenate([one.values[name] for one in parts]) for name in first.values
            },
            errors=errors,
            layers=None if width is None else np.concatenate([one.cycles(width) for one in parts]),
        )

    def cycles(self, layers: int) -> IntArray:
        """`layers`, or where there is none, −1 for so many."""
        if self.layers is not None:
            return self.layers
        return np.full((len(self.numbers), layers), -1, np.int64)

    def taken(self, places: IntArray) -> Outcome:
        """Of some places only."""
        new = {old: at for at, old in enumerate(places.tolist())}
        return Outcome(
            numbers=self.numbers[places],
            network=self.network,
            values={name: column[places] for name, column in self.values.items()},
            errors={new[old]: why for old, why in self.errors.items() if old in new},
            layers=None if self.layers is None else self.layers[places],
            cpu_seconds=self.cpu_seconds,
        )


class Evaluator:
    """Computes points of a space; holds its networks, prices and designs."""

    def __init__(self, space: Space) -> None:
        self.grid = Grid(space)
        self.space = space
        self.names = space.objectives
        self._technology: Technology | None = space.load_technology()
        self._book = None if self._technology is None else PriceBook(self._technology)

    def check(self) -> None:
        """Raise `InputError` for an objective that a machine, or the technology, cannot give.

        A layer of one product on each machine's base tells which actions it counts.
        """
        for machine in self.space.machines:
            found = self._probed(machine.design, machine.drawing)
            check_actions(self.names, found, machine.design.kind)
            if self._technology is not None:
                priced = price_design(machine.design, self._technology)
                if "area_um2" in self.names and not np.isfinite(_area_parts(priced)).any():
                    raise InputError(
                        f"objectives: technology {self._technology.name} has no areas, so that "
                        f"there is no area_um2 of {machine.design.kind} machines"
                    )

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
        designs = self.grid.designs(numbers)
        values = {name: np.full(len(numbers), np.nan) for name in self.names}
        found = Outcome(numbers=numbers, network=network, values=values)
        if self.space.layers:
            layers = self.grid.networks[network].matrix_layers
            found.layers = np.full((len(numbers), len(layers)), -1, np.int64)
        many: list[int] = []
        for place, design in enumerate(designs):
            if isinstance(design, InputError):
                found.errors[place] = (REFUSED, str(design))
            elif set(self.names) <= AT_ONCE and not design.machine_model().timed_by_values:
                many.append(place)
            else:
                self._try(found, place, design)
        self._at_once(found, many, designs)
        found.cpu_seconds = time.process_time() - began
        return found

    def _try(self, found: Outcome, place: int, design: Design) -> None:
        """One point by itself."""
        try:
            self._one(found, place, design)
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
        result = simulate(design, network, operands=drawn)
        if found.layers is not None:
            cycles = {layer.name: layer.cycles for layer in result.layers}
            found.layers[place] = [cycles[layer.name] for layer in network.matrix_layers]
        figures = self._figures(design, result)
        for name in self.names:
            found.values[name][place] = figures[name]

    def _figures(self, design: Design, result: NetworkResult) -> Mapping[str, float]:
        figures: dict[str, float] = {"cycles": result.cycles, "seconds": result.seconds}
        if self._technology is not None:
            energy = account(result, self._technology)
            figures |= {"energy_pj": energy.total, "edp_pj_s": energy.total * result.seconds}
            figures["area_um2"] = energy.area_um2 or np.nan
        figures["footprint_bytes"] = footprint_bytes(design)
        for name in self.names:
            if name not in UNITS:
                figures[name] = sum(
                    action_counts(layer, design).get(name, 0.0)
                    for layer in result.layers
                    if layer.cycles
                )
        return figures

    def _at_once(self, found: Outcome, places: Sequence[int], designs: Sequence[Any]) -> None:
        """Points that need no whole simulation; one by one where one of them is refused."""
        if not places:
            return
        network = self.grid.networks[found.network]
        chosen = [designs[place] for place in places]
        rows = np.asarray(places)
        clocks_hz = np.array([design.clock_hz for design in chosen])
        try:
            if self._book is not None:
                many = evaluate_many(chosen, network, technology=self._book)
                cycles, names = many.cycles, many.layers
                self._take_priced(found, rows, many)
            else:
                cycles, names = simulate_many(chosen, network)
        except Exception:  # of a point that will say it by itself
            for place, design in zip(places, chosen, strict=True):
                self._try(found, place, design)
            return
        self._take_cycles(found, rows, (cycles, clocks_hz), names)
        for place, design in zip(places, chosen, strict=True):
            if place not in found.errors:
                self._take_static(found, place, design)

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

    def _take_static(self, found: Outcome, place: int, design: Design) -> None:
        """What a design has whatever it computes."""
        try:
            if "footprint_bytes" in found.values:
                found.values["footprint_bytes"][place] = footprint_bytes(design)
        except InputError as error:
            found.errors[place] = (REFUSED, str(error))


def _area_parts(prices: Any) -> FloatArray:
    """Areas of the components on the chip, NaN where there is no source."""
    on_chip = [one.kind != "dram" for one in prices.components]
    return prices.area_um2[np.array(on_chip)]


def footprint_bytes(design: Design) -> float:
    """Bytes of all words of all on-chip memories of a design."""
    bits = sum(
        one.count * one.attributes["word_bits"] * one.attributes["depth"]
        for one in design.components
        if one.kind == "sram"
    )
    return bits / 8


def _drawn(design: Design, drawing: Drawing) -> Any:
    """Operands for a machine whose cycles depend on them; None for others."""
    if not design.machine_model().timed_by_values:
        return None
    intake = design.intake

    def draw(layer: Conv2d | MatMul) -> Any:
        return intake.synthetic(layer, drawing)

    return draw


__all__ = ["AT_ONCE", "DONE", "FAILED", "REFUSED", "Evaluator", "Outcome", "footprint_bytes"]
