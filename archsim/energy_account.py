"""What a simulated network costs, as one value: by layer and component, in all, with sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from energy_models.pricing import FloatArray, Price, PriceList
from energy_models.technology import Technology

if TYPE_CHECKING:
    import pandas as pd

GROUPS: Mapping[str, str] = {
    "dram": "DRAM",
    "sram": "memories",
    "mac": "arithmetic",
    "multiplier": "arithmetic",
    "adder": "arithmetic",
    "shifter": "arithmetic",
    "register": "registers",
    "mux": "multiplexers",
    "one_hot": "multiplexers",
    "control": "control",
}
"""The group in which a component's kind is shown, whatever its price is from: a memory is one
also where a technology prices it as registers."""

STATIC = "leakage"

NO_BIT_ERRORS = (
    "SRAMs at {voltage:g} of their lowest voltage without errors are priced so, but no bit errors "
    "are injected: cycles and values are those of memories that never err"
)


@dataclass(frozen=True, kw_only=True)
class EnergyAccount:
    """Energy of the layers that take cycles, and area, in one technology.

    dynamic, static: [layers, components]; in pJ, or dynamic in `unit` "MAC" and static 0 where the
    technology is a table of relative costs.  Vector work has no hardware in the design and is not
    in the account.  bounded: layers whose reads and writes of compressed memories are not counted,
    for want of operands, but are the most that there can be.
    """

    design_name: str
    network: str
    layers: tuple[str, ...]
    cycles: tuple[int, ...]
    macs: tuple[int, ...]
    clock_hz: float
    price_list: PriceList
    dynamic: FloatArray
    static: FloatArray
    bounded: tuple[str, ...] = ()

    @property
    def technology(self) -> Technology:
        return self.price_list.technology

    @property
    def unit(self) -> str:
        """Of energies: "pJ", or "MAC" (one multiply-accumulate)."""
        return self.technology.unit

    @property
    def total(self) -> float:
        """Energy of the whole network, dynamic and static."""
        return float(self.dynamic.sum() + self.static.sum())

    @property
    def seconds(self) -> float:
        """Time of the layers in the account."""
        return sum(self.cycles) / self.clock_hz

    @property
    def edp(self) -> float:
        """Energy-delay product, `unit` · seconds."""
        return self.total * self.seconds

    @property
    def power_w(self) -> float | None:
        """Mean power, off-chip memory included; None where energies are relative."""
        return self.total * 1e-12 / self.seconds if self.unit == "pJ" and self.cycles else None

    @property
    def by_layer(self) -> dict[str, float]:
        """Energy of every layer, static included."""
        sums = (self.dynamic + self.static).sum(axis=1)
        return dict(zip(self.layers, sums.tolist(), strict=True))

    @property
    def by_component(self) -> dict[str, float]:
        """Dynamic energy by component's name, and all static energy as "leakage"."""
        found = self._sum_columns(self._names, self.dynamic.sum(axis=0))
        return {**found, STATIC: float(self.static.sum())}

    @property
    def by_group(self) -> dict[str, float]:
        """Dynamic energy by group of kinds, and all static energy as "leakage"."""
        found = self._sum_columns(self._groups, self.dynamic.sum(axis=0))
        return {**found, STATIC: float(self.static.sum())}

    @property
    def layer_groups(self) -> dict[str, list[float]]:
        """For every group, its dynamic energy in each layer; "leakage" last."""
        found: dict[str, FloatArray] = {}
        for place, group in enumerate(self._groups):
            found[group] = found.get(group, np.zeros(len(self.layers))) + self.dynamic[:, place]
        found[STATIC] = self.static.sum(axis=1)
        return {name: values.tolist() for name, values in found.items()}

    @property
    def area_by_component(self) -> dict[str, float] | None:
        """Area in µm² by component's name; None where the technology has no areas at all."""
        known = ~np.isnan(self.price_list.area_um2)
        on_chip = [one.kind != "dram" for one in self.price_list.components]
        if not (known & np.array(on_chip)).any():
            return None
        area = self._sum_columns(self._names, np.nan_to_num(self.price_list.area_um2))
        return {name: value for name, value in area.items() if value > 0}

    @property
    def area_by_group(self) -> dict[str, float]:
        """Area in µm² by group of kinds; empty where the technology has none."""
        area = self._sum_columns(self._groups, np.nan_to_num(self.price_list.area_um2))
        return {name: value for name, value in area.items() if value > 0}

    @property
    def area_um2(self) -> float | None:
        """Area of all components with a source."""
        areas = self.area_by_component
        return None if areas is None else sum(areas.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """What no source says, with the reason: it is left out of the sums."""
        lines = [
            f"{one.what} of {one.component.name} ({one.component.kind}): {one.figure_missing}"
            for one in self.price_list.prices
            if one.figure is None
        ]
        return tuple(dict.fromkeys(lines))

    @property
    def missing_reasons(self) -> tuple[str, ...]:
        """`missing` in few words: what of which kinds, and why."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for one in self.price_list.prices:
            if one.figure is None:
                what = one.what if one.what in ("area", STATIC) else "energy"
                found.setdefault((what, one.figure_missing), {})[one.component.kind] = None
        return tuple(
            f"{what} of {', '.join(kinds)}: {reason}" for (what, reason), kinds in found.items()
        )

    @property
    def not_injected(self) -> str:
        """What the price of SRAMs below their lowest voltage stands for and no value shows; ""
        where they are not."""
        voltage = self.technology.sram_relative_voltage
        return NO_BIT_ERRORS.format(voltage=voltage) if voltage < 1 else ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Every source used, and how its figures were derived where they are not as printed."""
        return tuple(
            dict.fromkeys(
                one.figure.source for one in self.price_list.prices if one.figure is not None
            )
        )

    @cached_property
    def _names(self) -> list[str]:
        return [one.name for one in self.price_list.components]

    @cached_property
    def _groups(self) -> list[str]:
        return [GROUPS[one.kind] for one in self.price_list.components]

    @staticmethod
    def _sum_columns(labels: Sequence[str], values: FloatArray) -> dict[str, float]:
        found: dict[str, float] = {}
        for label, value in zip(labels, values.tolist(), strict=True):
            found[label] = found.get(label, 0.0) + value
        return found

    def to_frame(self) -> pd.DataFrame:
        """Energy, one row a layer and one column a component (and "leakage"), in `unit`."""
        import pandas as pd

        frame = pd.DataFrame(self.dynamic, index=list(self.layers), columns=self._names)
        frame = frame.T.groupby(level=0, sort=False).sum().T
        frame[STATIC] = self.static.sum(axis=1)
        frame.index.name = "name"
        return frame

    def price_frame(self) -> pd.DataFrame:
        """Every figure used: component, what, value, unit, source, how it was derived."""
        import pandas as pd

        return pd.DataFrame.from_records([_price_record(one, self.unit) for one in self._prices])

    @property
    def _prices(self) -> tuple[Price, ...]:
        return self.price_list.prices

    def record(self) -> dict[str, Any]:
        """Plain data for JSON: under "technology", "energy", "area"."""
        frame_layers = {
            layer: self._sum_columns(self._names, row) | {STATIC: float(static.sum())}
            for layer, row, static in zip(self.layers, self.dynamic, self.static, strict=True)
        }
        areas = self.area_by_component
        return {
            "technology": self.technology.record(),
            "energy": {
                "technology": self.technology.name,
                "unit": self.unit,
                "total": self.total,
                "by_component": self.by_component,
                "by_group": self.by_group,
                "edp": self.edp,
                "power_w": self.power_w,
                "layers": frame_layers,
                "missing": list(self.missing),
                **({"bounded": list(self.bounded)} if self.bounded else {}),
                **({"not_injected": self.not_injected} if self.not_injected else {}),
                "prices": [_price_record(one, self.unit) for one in self._prices],
            },
            "area": None
            if areas is None
            else {
                "total_um2": self.area_um2,
                "by_component": areas,
                "by_group": self.area_by_group,
            },
        }


def _price_record(one: Price, unit: str) -> dict[str, Any]:
    units = {"area": "µm²", "leakage": "mW"}
    return {
        "component": one.component.name,
        "kind": one.component.text,
        "count": one.component.count,
        "what": one.what,
        "value": None if one.figure is None else one.figure.value,
        "unit": units.get(one.what, unit),
        "source": "none" if one.figure is None else one.figure.source,
        "how": one.figure_missing if one.figure is None else one.figure.how,
    }


__all__ = ["GROUPS", "NO_BIT_ERRORS", "STATIC", "EnergyAccount"]
