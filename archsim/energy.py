"""What a simulated network costs: energy of every layer and component, and the design's area.

The simulation says how often everything acts; `energy_models` says what that costs in a
technology, and where each figure is from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from archsim.energy_account import EnergyAccount
from archsim.errors import InputError
from archsim.machine.model import counts_of
from archsim.result import LayerResult, NetworkResult
from archsim.technologies import load_technology, use_installed
from energy_models.errors import EnergyError
from energy_models.pricing import (
    PriceBook,
    PriceList,
    PriceTotals,
    price,
)
from energy_models.technology import Technology

if TYPE_CHECKING:
    from archsim.machine.design import Design
    from energy_models.component import Component

use_installed()

DEFAULT_TECHNOLOGY = "45nm"


def action_counts(layer: LayerResult, design: Design | None = None) -> dict[str, float]:
    """Everything of a layer that components are priced by.

    design: whose machine says the most that there can be of what was not counted, for want of
    operands.
    """
    most: Mapping[str, float] = {}
    if design is not None:
        most = design.machine_model().most_actions(layer)
    return counts_of(layer, most)


def technology_of(technology: Technology | str) -> Technology:
    """A technology, by name or file or as it is.  Raises `InputError` for unknown ones."""
    try:
        return load_technology(technology) if isinstance(technology, str) else technology
    except EnergyError as error:
        raise InputError(str(error)) from error


def _components(design: Design) -> tuple[Component, ...]:
    if not design.components:
        raise InputError(f"energy and area of {design.kind} designs are not modelled yet")
    return design.components


def price_design(design: Design, technology: Technology | str = DEFAULT_TECHNOLOGY) -> PriceList:
    """What a design's components cost.  Raises `InputError` where a source has no figure."""
    chosen = technology_of(technology)
    try:
        return price(chosen, _components(design))
    except EnergyError as error:
        raise InputError(str(error)) from error


def priced_in(book: PriceBook, designs: Iterable[Design]) -> list[PriceTotals]:
    """Sums of the prices of each design.  Raises `InputError` where a source has no figure."""
    try:
        return [book.totals(_components(design)) for design in designs]
    except EnergyError as error:
        raise InputError(str(error)) from error


def account(
    result: NetworkResult, technology: Technology | str = DEFAULT_TECHNOLOGY
) -> EnergyAccount:
    """Energy and area of a simulated network.

    technology: a `Technology`, the name of a shipped one, or a TOML file.
    Raises `InputError` where a source has no figure for a component of the design.
    """
    from archsim.machine.registry import design_from_record

    design = design_from_record(dict(result.design), result.design_name)
    model = design.machine_model()
    price_list = price_design(design, technology)
    layers = [layer for layer in result.layers if layer.cycles]
    seconds = [layer.cycles / result.clock_hz for layer in layers]
    relative = price_list.technology.unit != "pJ"
    static = price_list.static_pj(seconds)
    return EnergyAccount(
        design_name=result.design_name,
        network=result.network,
        layers=tuple(layer.name for layer in layers),
        cycles=tuple(layer.cycles for layer in layers),
        macs=tuple(layer.macs for layer in layers),
        clock_hz=result.clock_hz,
        price_list=price_list,
        dynamic=price_list.energy([action_counts(layer, design) for layer in layers]),
        static=np.zeros_like(static) if relative else static,
        bounded=tuple(one.name for one in layers if model.most_actions(one)),
    )
