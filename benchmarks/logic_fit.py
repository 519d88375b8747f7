"""How far interpolation in the coefficient files is off, and two ways to compare 4 and 8 bits.

    python benchmarks/logic_fit.py

Every measured size that lies within its grid is left out, with its whole grid line, and
interpolated from what remains.  Prints the tables of logic_fit.md.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from rows import chosen

from energy_models.component import KINDS, Component
from energy_models.errors import EnergyError
from energy_models.logic import LogicEstimator
from energy_models.measured import Coefficients, Point, load_coefficients

FILES = ("osu018", "sky130")


def left_out_errors(coefficients: Coefficients, kind: str) -> dict[str, dict[str, float]]:
    """Relative errors of area, leakage and each energy, by size ("8 × 32") that can be left out."""
    points = coefficients.points[kind]
    errors: dict[str, dict[str, float]] = {}
    for point in points:
        inner = [
            size
            for axis, size in enumerate(point.key)
            if min(p.key[axis] for p in points) < size < max(p.key[axis] for p in points)
        ]
        kept = tuple(p for p in points if not _shares(p, point, inner))
        if not inner or not _meaningful(point):
            continue
        estimator = LogicEstimator(replace(coefficients, points={kind: kept}))
        try:
            found = _figures(estimator, point)
        except EnergyError:
            continue
        for name, (estimate, measured) in found.items():
            errors.setdefault(name, {})[point.text] = estimate / measured - 1
    return errors


def _shares(other: Point, point: Point, inner: list[int]) -> bool:
    """Whether the other point lies on a grid line of the point that is left out."""
    if point.kind == "multiplier":  # its operands can be swapped: a line is of both axes
        return any(size in inner for size in other.key)
    pairs = zip(other.key, point.key, strict=True)
    return any(mine == size and size in inner for mine, size in pairs)


def _meaningful(point: Point) -> bool:
    """Not a multiply-accumulate whose sum is narrower than its product."""
    return point.kind != "mac" or point.key[1] >= 2 * point.key[0]


def _figures(estimator: LogicEstimator, point: Point) -> dict[str, tuple[float, float]]:
    component = Component(name="left out", kind=point.kind, attributes=point.sizes)
    figures = {
        "area": (estimator.area_um2(component).value, point.area_um2),
        "leakage": (estimator.leakage_mw(component).value, point.leakage_mw),
    }
    for action in KINDS[point.kind][1]:
        energy = estimator.energy_pj(component, action).value
        figures[action] = (energy, point.energy_pj[action])
    return figures


def array_multiplier(bits: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """A plain unsigned array multiplier as gates (kind, outputs…, inputs…), and its product bits.

    Row j adds the partial products a[i]·b[j] to the sum above, carries going to the next place.
    """
    gates: list[tuple[str, ...]] = []
    for i in range(bits):
        for j in range(bits):
            gates.append(("and", f"p{i}_{j}", f"a{i}", f"b{j}"))
    above = [f"p{i}_0" for i in range(bits)]
    product, top = [above[0]], ""
    for j in range(1, bits):
        row, carry = [], ""
        for i in range(bits):
            upper = above[i + 1] if i + 1 < bits else top
            inputs = [f"p{i}_{j}", *(net for net in (upper, carry) if net)]
            total, carry = f"s{i}_{j}", f"c{i}_{j}"
            gates.append(("full" if len(inputs) == 3 else "half", total, carry, *inputs))
            row.append(total)
        above, top = row, carry
        product.append(above[0])
    return gates, [*product, *above[1:], top]


def multiply_by_gates(bits: int, a: int, b: int) -> int:
    """The product as the gates of `array_multiplier` compute it."""
    gates, product = array_multiplier(bits)
    values = {f"a{i}": a >> i & 1 for i in range(bits)} | {f"b{i}": b >> i & 1 for i in range(bits)}
    for kind, *nets in gates:
        if kind == "and":
            values[nets[0]] = values[nets[1]] & values[nets[2]]
        else:
            total = sum(values[net] for net in nets[2:])
            values[nets[0]], values[nets[1]] = total & 1, total >> 1
    return sum(values[net] << place for place, net in enumerate(product))


def mac_by_hand(bits: int, accumulator_bits: int = 32) -> dict[str, int]:
    """Cells of an array multiplier and a ripple adder of the accumulator's width."""
    kinds = [gate[0] for gate in array_multiplier(bits)[0]]
    counts = {kind: kinds.count(kind) for kind in ("and", "half", "full")}
    counts["half"] += 1
    counts["full"] += accumulator_bits - 1
    return counts


HAND_AREAS_UM2 = {
    "osu018": {"and": 32.0, "half": 80.0, "full": 120.0},
    "sky130": {"and": 6.256, "half": 12.512, "full": 20.0192},
}
"""Of the cells AND2X1, HAX1, FAX1, and and2_0, ha_1, fa_1, in the two libraries."""


def print_errors() -> None:
    """The first table."""
    print(
        "| library | kind | figure | sizes | median | worst | at |\n|---|---|---|---|---|---|---|"
    )
    for name in FILES:
        coefficients = load_coefficients(name)
        for kind in coefficients.points:
            if kind == "control":
                continue
            for figure, errors in left_out_errors(coefficients, kind).items():
                median = statistics.median(abs(error) for error in errors.values())
                worst = max(errors, key=lambda size: abs(errors[size]))
                print(
                    f"| {name} | {kind} | {figure} | {len(errors)} | {median:.1%} | "
                    f"{errors[worst]:+.1%} | {worst} |"
                )


def print_ratios() -> None:
    """The second table: a multiply-accumulate of 4 bits over one of 8 bits, sums of 32 bits."""
    print("\n| library | what | 4 bits | 8 bits | ratio |\n|---|---|---|---|---|")
    for name in FILES:
        points = load_coefficients(name).points
        macs = {point.key: point for point in points["mac"]}
        register = next(p.area_um2 for p in points["register"] if p.key == (32,))
        small, large = (macs[bits, 32] for bits in (4, 8))
        for what, one, two in (
            ("area in µm², synthesised", small.area_um2, large.area_um2),
            (
                "the same with 32 flip-flops",
                small.area_um2 + register,
                large.area_um2 + register,
            ),
            ("energy in pJ, synthesised", small.energy_pj["mac"], large.energy_pj["mac"]),
            ("area in µm², by hand", _hand_area(name, 4), _hand_area(name, 8)),
        ):
            print(f"| {name} | {what} | {one:,.6g} | {two:,.6g} | {one / two:.3f} |")
    four, eight = (sum(mac_by_hand(bits).values()) for bits in (4, 8))
    print(f"| – | cells, by hand | {four} | {eight} | {four / eight:.3f} |")
    for bits in (4, 8):
        print(f"\n{bits} bits by hand: {mac_by_hand(bits)}")


def _hand_area(name: str, bits: int) -> float:
    areas = HAND_AREAS_UM2[name]
    return sum(areas[kind] * count for kind, count in mac_by_hand(bits).items())


if __name__ == "__main__":
    chosen(__doc__)
    print_errors()
    print_ratios()
