"""Cycles, energy and area of many designs at once, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.energy import DEFAULT_TECHNOLOGY, priced_in, technology_of
from archsim.errors import InputError, enough_memory
from archsim.machine.design import Design
from archsim.machine.model import MachineModel
from archsim.numbers import IntArray
from archsim.simulate import designed, networked, timed_without_values
from energy_models.pricing import PriceBook, PriceTotals
from energy_models.technology import Technology
from workloads.layers import Network

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Evaluations:
    """Many designs on a network, each layer in its best tiling on each design.

    layers: names of the layers with products; cycles: [designs, layers], −1 where a layer fits in
    no tiling.  energy: [designs] of the network, dynamic and static, in `unit` ("pJ", or "MAC" of a
    technology of relative costs), NaN where a layer does not fit.  area_um2: [designs], NaN where
    the technology has none.  clock_hz: [designs].
    """

    layers: tuple[str, ...]
    cycles: IntArray
    clock_hz: FloatArray
    energy: FloatArray
    area_um2: FloatArray
    unit: str

    @property
    def fits(self) -> npt.NDArray[np.bool_]:
        """[designs] whether every layer fits in some tiling."""
        return np.asarray((self.cycles >= 0).all(axis=1))

    @property
    def seconds(self) -> FloatArray:
        """[designs] time of the network; NaN where a layer does not fit."""
        return np.where(self.fits, self.cycles.sum(axis=1) / self.clock_hz, np.nan)

    @property
    def edp(self) -> FloatArray:
        """[designs] energy-delay product, `unit` · seconds."""
        return self.energy * self.seconds


def evaluate_many(
    designs: Iterable[Design | str],
    network: Network | str,
    *,
    technology: Technology | PriceBook | str = DEFAULT_TECHNOLOGY,
    **options: Any,
) -> Evaluations:
    """Cycles, energy and area of many designs, as `simulate` and `archsim.energy.account` say.

    designs: of machines whose cycles do not depend on values, or their names; network: itself, or
    its name; technology: itself, its name or file, or a `PriceBook` of it, which whoever calls this
    many times keeps; options: as `simulate` takes them, such as `mapper="rough"`.  What a layer
    without operands cannot count is the most that there can be, as in an account.  Raises
    `InputError` for a machine whose cycles depend on values, for an option that a machine does not
    have, for more tiles of a layer than the limit, and where the technology has no figure for a
    component.
    """
    models = [timed_without_values(designed(design)) for design in designs]
    layers = networked(network).matrix_layers
    book = technology if isinstance(technology, PriceBook) else PriceBook(technology_of(technology))
    totals = priced_in(book, [model.design for model in models])
    cycles = np.zeros((len(models), len(layers)), np.int64)
    dynamic = np.zeros(len(models))
    alike: dict[type[MachineModel], list[int]] = {}
    for at, model in enumerate(models):
        alike.setdefault(type(model), []).append(at)
    for kind, rows in alike.items():
        with enough_memory("evaluate_many"):
            taken = models[rows[0]].taken(options)
            found = kind.counts_of_many([models[at].design for at in rows], layers, taken)
            cycles[rows] = found.cycles
            dynamic[rows] = _dynamic([totals[at] for at in rows], found.names, found.counts)
    clock_hz = np.array([model.design.clock_hz for model in models], np.float64)
    return Evaluations(
        layers=tuple(layer.name for layer in layers),
        cycles=cycles,
        clock_hz=clock_hz,
        energy=_with_static(dynamic, totals, cycles, clock_hz, book.technology.unit),
        area_um2=np.array([np.nan if one.area_um2 is None else one.area_um2 for one in totals]),
        unit=book.technology.unit,
    )


def _dynamic(totals: Sequence[PriceTotals], names: Sequence[str], counts: FloatArray) -> FloatArray:
    """Energy [designs] of counts [designs, names]."""
    prices = np.zeros((len(totals), len(names)))
    for row, one in enumerate(totals):
        lacking = [name for name in one.dynamic if name not in names]
        if lacking:
            raise InputError(f"the action counts lack {', '.join(lacking)}")
        prices[row] = [one.dynamic.get(name, 0.0) for name in names]
    return (counts * prices).sum(axis=1)


def _with_static(
    dynamic: FloatArray,
    totals: Sequence[PriceTotals],
    cycles: IntArray,
    clock_hz: FloatArray,
    unit: str,
) -> FloatArray:
    """With leakage over the time: mW × s = 1e9 pJ; NaN where a layer does not fit."""
    energy = dynamic
    if unit == "pJ":
        leakage = np.array([one.leakage_mw for one in totals])
        energy = dynamic + cycles.sum(axis=1) / clock_hz * leakage * 1e9
    return np.where((cycles >= 0).all(axis=1), energy, np.nan)


__all__ = ["Evaluations", "evaluate_many"]
