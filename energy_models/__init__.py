"""What an action costs.  Sees action counts and descriptions of components, never a design.

component    a piece of hardware: kind, sizes, how often it acts for every counted action
estimator    what every source of figures answers: a value, and where it is from
table        published tables as data (`tables/`), the user's own too
published    estimators over tables, and DRAM by interface
sram         memories: a grid measured with CACTI (`sram_grids/`)
logic        building blocks measured by synthesis (`coefficients/`)
scaling      between technology nodes; voltage: with the supply
technology   which source answers for what (`technologies/`; technology_files: by name)
sources      from a source's name to its estimator
pricing      prices of a design's components; an account is one matrix product
units        units of tables
errors       the one exception for bad input
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from energy_models.component import Component
    from energy_models.errors import EnergyError
    from energy_models.estimator import Estimator, Quantity
    from energy_models.pricing import PriceList, price
    from energy_models.technology import Technology, load_technology, technologies

_HOMES = {
    "Component": "component",
    "EnergyError": "errors",
    "Estimator": "estimator",
    "Quantity": "estimator",
    "PriceList": "pricing",
    "price": "pricing",
    "Technology": "technology",
    "load_technology": "technology",
    "technologies": "technology",
}
"""Where each name is from: modules are imported when a name of theirs is asked for."""

__all__ = [
    "Component",
    "EnergyError",
    "Estimator",
    "PriceList",
    "Quantity",
    "Technology",
    "load_technology",
    "price",
    "technologies",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'energy_models' has no attribute {name!r}")
    return getattr(import_module(f"energy_models.{_HOMES[name]}"), name)
