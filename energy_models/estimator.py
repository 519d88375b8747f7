"""What every source of figures answers: a value for one component, and where it is from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from energy_models.component import Component


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A figure of one piece of a component.

    value: energy of one event in pJ, area in µm², or leakage in mW.
    source: publication with table or page, or tool with version and library.
    how: "" as printed there; else what was done to it ("interpolated between 8 and 32 bits",
    "scaled from 45 to 16 nm by …").
    """

    value: float
    source: str
    how: str = ""

    def times(self, factor: float, how: str = "") -> Quantity:
        """The figure multiplied, with the reason added to `how`."""
        text = "; ".join(part for part in (self.how, how) if part)
        return Quantity(value=self.value * factor, source=self.source, how=text)


class Estimator(Protocol):
    """A source of figures, valid at one technology node and supply voltage.

    Each method answers for one piece (not `component.count` of them) and raises `EnergyError`
    where it has no figure and none may be derived: the message names the component and the
    nearest entries there are.
    """

    @property
    def name(self) -> str:
        """By which a technology chooses it: "horowitz-2014"."""
        ...

    @property
    def node_nm(self) -> float:
        """Technology node of the figures."""
        ...

    @property
    def voltage_v(self) -> float:
        """Supply voltage of the figures."""
        ...

    def energy_pj(self, component: Component, action: str) -> Quantity:
        """Dynamic energy of one event of the action."""
        ...

    def area_um2(self, component: Component) -> Quantity:
        """Area."""
        ...

    def leakage_mw(self, component: Component) -> Quantity:
        """Static power."""
        ...
