"""What prices the designs of a space: one technology, or one for each value of the axes.

`technology` and `voltage_v` may be fields of a machine, beside those of its design: a point is then
a design in a technology at a supply voltage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.energy import price_design
from archsim.errors import InputError, require
from archsim.machine.design import Design
from archsim.numbers import IntArray
from archsim.sweeps.variants import AXES, Variant
from archsim.technologies import load_technology
from energy_models.errors import EnergyError
from energy_models.pricing import PriceBook
from energy_models.technology import Technology

if TYPE_CHECKING:
    from archsim.sweeps.space import MachineSpace, Space

DEFAULT_TECHNOLOGY = "45nm"

Supply = tuple[str, float | None]
"""The name or file of a technology, and a voltage other than its own."""


class Prices:
    """Of a space; technologies are loaded when they are asked for."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._loaded: dict[Supply, Technology | InputError] = {}
        self._refusals: dict[tuple[Supply, str], InputError | None] = {}
        self._books: dict[Supply, PriceBook] = {}

    @property
    def needed(self) -> bool:
        """Whether an objective hangs on prices."""
        return self._space.priced

    def of(self, variant: Variant, digits: IntArray) -> list[Supply]:
        """What prices each design of [designs, fields]."""
        fields = list(variant.fields)
        columns: list[Sequence[Any]] = []
        for name, own in zip(AXES, self._own, strict=True):
            if name not in fields:
                columns.append([own] * len(digits))
                continue
            values, places = variant.fields[name], digits[:, fields.index(name)].tolist()
            columns.append([values[at] for at in places])
        return list(zip(*columns, strict=True))

    @property
    def _own(self) -> tuple[str, Any]:
        """Where a machine says nothing."""
        said: Any = self._space.technology
        return said or DEFAULT_TECHNOLOGY, self._space.voltage_v

    @property
    def supplies(self) -> Iterator[Supply]:
        """All that there are, each once; none where nothing is priced."""
        found: dict[Supply, None] = {}
        for machine in self._space.machines if self.needed else ():
            values = [machine.fields.get(n, (o,)) for n, o in zip(AXES, self._own, strict=True)]
            found |= dict.fromkeys(product(*values))
        yield from found

    def technology(self, supply: Supply) -> Technology:
        """The technology at the voltage.  Raises `InputError` where it has no such prices."""
        if supply not in self._loaded:
            try:
                self._loaded[supply] = self._load(supply)
            except InputError as error:
                self._loaded[supply] = error
        found = self._loaded[supply]
        if isinstance(found, InputError):
            raise found
        return found

    def _load(self, supply: Supply) -> Technology:
        name, voltage_v = supply
        try:
            found = load_technology(name, voltage_v=voltage_v)
        except EnergyError as error:
            raise InputError(str(error)) from error
        energies = sorted({"energy_pj", "edp_pj_s"} & set(self._space.objectives))
        require(
            found.unit == "pJ" or not energies,
            f"objectives: technology {found.name} has relative energies, so that there is no "
            f"{' and no '.join(energies)}",
        )
        return found

    def book(self, supply: Supply) -> PriceBook:
        """Its prices, each looked up once.  Raises as `technology`."""
        if supply not in self._books:
            self._books[supply] = PriceBook(self.technology(supply))
        return self._books[supply]

    def refusal(self, supply: Supply, machine: MachineSpace) -> InputError | None:
        """Why a machine's base has no prices there; None where it has."""
        key = (supply, machine.name)
        if key not in self._refusals:
            self._refusals[key] = None
            try:
                self._price(self.technology(supply), machine.design)
            except InputError as error:
                self._refusals[key] = error
        return self._refusals[key]

    def _price(self, technology: Technology, design: Design) -> None:
        priced = price_design(design, technology)
        on_chip = [one.kind != "dram" for one in priced.components]
        require(
            "area_um2" not in self._space.objectives
            or bool(np.isfinite(priced.area_um2[np.array(on_chip)]).any()),
            f"objectives: technology {technology.name} has no areas, so that there is no area_um2 "
            f"of {design.kind} machines",
        )

    def check(self) -> list[Technology]:
        """All that can be had.  Raises `InputError` for a technology that can at no voltage, or
        prices none of the machines."""
        good: dict[Supply, Technology] = {}
        wrong: dict[str, InputError] = {}
        for supply, machine in product(self.supplies, self._space.machines):
            error = self.refusal(supply, machine)
            if error is None:
                good[supply] = self.technology(supply)
            else:
                wrong.setdefault(supply[0], error)
        for name, error in wrong.items():
            if name not in {name for name, _ in good}:
                raise error
        return list(good.values())

    def record(self) -> Any:
        """Plain data that tells prices apart: None, a technology, or a list of several."""
        found = [one.record() for one in self.check()]
        return found[0] if len(found) == 1 else found or None


__all__ = ["DEFAULT_TECHNOLOGY", "Prices", "Supply"]
