"""Area, leakage and energy of logic, from coefficients measured by synthesis.

A measured size answers exactly. Between measured sizes a figure is interpolated, piecewise linear
along each axis of the grid, in the quantity by which that hardware grows:

mac                 operand_bits² and accumulator_bits (partial products, sum)
multiplier          a_bits and b_bits, in either order
adder, register     bits
mux, one_hot        bits and ways
shifter             bits · log2(bits)
control             state_bits, in proportion: the mean over the measured modules

Beyond the measured sizes it is refused, but for control, which is a sum over flip-flops anyway.
`benchmarks/logic_fit.md` says how far interpolation is off.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from energy_models.component import KINDS, Component
from energy_models.errors import EnergyError, require
from energy_models.estimator import Quantity
from energy_models.measured import Coefficients, Point, load_coefficients

Figure = Callable[[Point], float]


def _square(size: float) -> float:
    return size * size


def _stages(size: float) -> float:
    return size * math.log2(size)


def _itself(size: float) -> float:
    return size


_AXES: Mapping[str, tuple[Callable[[float], float], ...]] = {
    "mac": (_square, _itself),
    "multiplier": (_itself, _itself),
    "adder": (_itself,),
    "register": (_itself,),
    "mux": (_itself, _itself),
    "one_hot": (_itself, _itself),
    "shifter": (_stages,),
}
"""For each kind, in what quantity of each attribute it is linear."""

_LAWS = {
    "mac": "linear in operand_bits² and in accumulator_bits",
    "multiplier": "linear in a_bits and in b_bits",
    "adder": "linear in bits",
    "register": "linear in bits",
    "mux": "linear in bits and in ways",
    "one_hot": "linear in bits and in ways",
    "shifter": "linear in bits·log2(bits)",
}


class LogicEstimator:
    """Figures of one coefficient file (`energy_models.estimator.Estimator`).

    coefficients: the name of one that comes with the package ("osu018", "sky130"), the path of a
    file, or `Coefficients`. Raises `EnergyError` for a bad file.
    """

    def __init__(self, coefficients: str | Path | Coefficients) -> None:
        loaded = isinstance(coefficients, Coefficients)
        self.coefficients = coefficients if loaded else load_coefficients(coefficients)

    @property
    def name(self) -> str:
        return self.coefficients.name

    @property
    def node_nm(self) -> float:
        return self.coefficients.node_nm

    @property
    def voltage_v(self) -> float:
        return self.coefficients.voltage_v

    @cached_property
    def _points(self) -> Mapping[str, Mapping[tuple[int, ...], Point]]:
        return {
            kind: {_ordered(kind, point.key): point for point in points}
            for kind, points in self.coefficients.points.items()
            if kind in _AXES
        }

    def energy_pj(self, component: Component, action: str) -> Quantity:
        """Dynamic energy of one event, without wires and glitches."""
        actions = KINDS[component.kind][1]
        require(
            action in actions,
            f"{component.name}: a {component.kind} does not {action!r}; it does: "
            f"{', '.join(actions)}",
        )
        return self._quantity(component, lambda point: point.energy_pj[action])

    def area_um2(self, component: Component) -> Quantity:
        """Area of the cells, placed without gaps."""
        return self._quantity(component, lambda point: point.area_um2)

    def leakage_mw(self, component: Component) -> Quantity:
        """Leakage of the cells, mean over their states."""
        return self._quantity(component, lambda point: point.leakage_mw)

    def _quantity(self, component: Component, figure: Figure) -> Quantity:
        value, how = self._value(component, figure)
        return Quantity(value=value, source=self._source, how=how)

    @property
    def _source(self) -> str:
        used = self.coefficients
        return f"synthesis with {used.tools} and {used.library} ({used.name})"

    def _value(self, component: Component, figure: Figure) -> tuple[float, str]:
        kind = component.kind
        if not self.coefficients.points.get(kind):
            known = ", ".join(self.coefficients.points) or "nothing"
            raise EnergyError(
                f"{component.name}: {self.name} has no figure of {component.text}; "
                f"it has been measured for: {known}"
            )
        if kind == "control":
            return self._proportional(component.attributes["state_bits"], figure)
        sizes = _ordered(kind, [component.attributes[name] for name in KINDS[kind][0]])
        if (point := self._points[kind].get(sizes)) is not None:
            return figure(point), ""
        corners = self._corners(component, sizes)
        value = sum(share * figure(self._points[kind][corner]) for corner, share in corners)
        first, last = (_text(corner) for corner in (corners[0][0], corners[-1][0]))
        return value, f"interpolated between {first} and {last}, {_LAWS[kind]}"

    def _proportional(self, bits: int, figure: Figure) -> tuple[float, str]:
        points = self.coefficients.points["control"]
        measured = [point.key[0] for point in points]
        value = bits * sum(figure(point) for point in points) / sum(measured)
        return value, (
            f"in proportion to flip-flops, from {len(points)} control modules of "
            f"{min(measured)} to {max(measured)} flip-flops"
        )

    def _corners(
        self, component: Component, sizes: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], float]]:
        """The measured points around, and the share of each."""
        points = self._points[component.kind]
        corners: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        for axis, law in enumerate(_AXES[component.kind]):
            measured = sorted({key[axis] for key in points})
            if not measured[0] <= sizes[axis] <= measured[-1]:
                raise self._beyond(component, sizes)
            ends = _neighbours(measured, sizes[axis], law)
            corners = [((*c, end), share * part) for c, share in corners for end, part in ends]
        corners = [(_ordered(component.kind, corner), share) for corner, share in corners]
        if any(corner not in points for corner, _ in corners):
            raise self._beyond(component, sizes)
        return corners

    def _beyond(self, component: Component, sizes: tuple[int, ...]) -> EnergyError:
        points = self._points[component.kind]
        names = KINDS[component.kind][0]
        ranges = ", ".join(
            f"{name} from {min(key[axis] for key in points)} to {max(key[axis] for key in points)}"
            for axis, name in enumerate(names)
        )
        near = min(points, key=lambda key: math.dist(_logarithms(key), _logarithms(sizes)))
        nearest_text = ", ".join(f"{n}={s}" for n, s in zip(names, near, strict=True))
        return EnergyError(
            f"{component.name}: {component.text} is beyond what {self.name} has measured "
            f"({ranges}); the nearest is {component.kind}({nearest_text})"
        )


def _ordered(kind: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes, of a multiplier the larger one first: swapping its operands changes nothing."""
    return tuple(sorted(sizes, reverse=True) if kind == "multiplier" else sizes)


def _neighbours(
    measured: Sequence[int], size: int, law: Callable[[float], float]
) -> list[tuple[int, float]]:
    """The measured sizes around a size within their range, and the share of each."""
    high = bisect_left(measured, size)
    if measured[high] == size:
        return [(size, 1.0)]
    below, above = measured[high - 1], measured[high]
    share = (law(size) - law(below)) / (law(above) - law(below))
    return [(below, 1 - share), (above, share)]


def _logarithms(sizes: Sequence[int]) -> list[float]:
    return [math.log(size) for size in sizes]


def _text(sizes: Sequence[int]) -> str:
    return " × ".join(map(str, sizes))
