"""A PE of vector MACs at VS-Quant's points: ours, measured on the netlist, beside the paper's.

The measurement takes synthesis tools and is `benchmarks/vector_mac_pe.py`; its figures are the
data file `vsquant_hardware.toml`, which this module reads.  Figures are normalised to 8/8/-/-.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from archsim.errors import require
from archsim.papers.evidence import Measured, switch
from archsim.papers.figures import WIDEST, Figure, Row, read_paper
from archsim.papers.vsquant_points import point
from energy_models.frozen import FrozenDict, frozen

__all__ = ["SCOPES", "PePoint", "hardware_rows", "measured", "notes", "settings"]

DATA = Path(__file__).parent / "vsquant_hardware.toml"

LANES = 16
VECTOR = 16
ACTIVATION_ROWS = 512
WEIGHT_ROWS = 128
"""Of the buffers: 8 KiB and 32 KiB at 8 bits without scales."""

BASELINE = "8/8/-/-"

TOLERANCE = 0.1

PARTS = ("lanes", "collectors", "ppu", "activation_buffer", "weight_buffer")

SCOPES: Mapping[str, tuple[str, ...]] = {
    "lanes": PARTS[:2],
    "lanes and PPU": PARTS[:3],
    "PE": PARTS,
}
"""What is added up: the array of lanes with held weights and collectors; the PPU; the buffers."""

Part = Literal["area", "energy"]

Setting = tuple[str, int, bool]
"""W/A/ws/as; bits to which products of scales are rounded, 0 for not; gated."""

UNGATED: tuple[Setting, ...] = (("4/4/4/4", 4, False), ("4/4/4/4", 6, False))
"""Measured beside the paper's points, which gate where they round: what a gate costs."""


@dataclass(frozen=True, kw_only=True)
class PePoint:
    """A measured PE.

    area_um2, energy_pj (of a step of LANES · VECTOR products) by PARTS.  zero_steps: the share
    of a lane's steps whose product of scales, rounded, is 0.
    """

    arithmetic: str
    scale_product_bits: int
    gated: bool
    zero_steps: float
    area_um2: Mapping[str, float]
    energy_pj: Mapping[str, float]

    def __post_init__(self) -> None:
        for name in ("area_um2", "energy_pj"):
            figures: Mapping[str, float] = getattr(self, name)
            require(
                tuple(figures) == PARTS and all(value > 0 for value in figures.values()),
                f"{self.arithmetic}: {name} must be positive and of {', '.join(PARTS)}",
            )

    @property
    def setting(self) -> Setting:
        """Its key."""
        return self.arithmetic, self.scale_product_bits, self.gated

    def total(self, part: Part, scope: str = "PE") -> float:
        """µm², or pJ a step, of a scope."""
        figures = self.area_um2 if part == "area" else self.energy_pj
        return sum(figures[name] for name in SCOPES[scope])

    def relative(self, part: Part, scope: str = "PE") -> float:
        """Of the same scope at 8/8/-/-."""
        return self.total(part, scope) / measured()[BASELINE, 0, False].total(part, scope)


@cache
def read_data() -> Mapping[str, Any]:
    """The data file: provenance, and `[[point]]`."""
    return frozen(tomllib.loads(DATA.read_text(encoding="utf-8")))


@cache
def measured() -> Mapping[Setting, PePoint]:
    """All measured points by setting."""
    found = [PePoint(**entry) for entry in read_data()["point"]]
    return FrozenDict({each.setting: each for each in found})


def setting_of(text: str) -> Setting:
    """Of "W/A/ws/as" or "W/A/ws/as@bits"; a rounding that drops no bits is none."""
    arithmetic, _, rounded = text.partition("@")
    at = point(arithmetic)
    whole = sum(int(scale) for scale in (at.weight_scale, at.activation_scale) if scale != "-")
    bits = int(rounded) if rounded else 0
    require(
        not rounded or 0 < bits < whole,
        f"a product of {whole} bits must be rounded to fewer, but more than 0, not {bits}",
    )
    return arithmetic, bits, bits > 0


def settings() -> list[Setting]:
    """What is to be measured: the baseline, the paper's points, each once, and UNGATED."""
    published = [
        setting_of(text) for group in read_paper("vsquant")["hardware"] for text in group["energy"]
    ]
    return list(dict.fromkeys([(BASELINE, 0, False), *published, *UNGATED]))


def hardware_rows() -> list[Row]:
    """A row for every published figure of the hardware, ours beside it."""
    rows = [
        _row(group, part, text, value)
        for group in read_paper("vsquant")["hardware"]
        for part, text, value in _published(group)
    ]
    return [*rows, *_saving_rows(read_paper("vsquant")["saving"])]


def _published(group: Mapping[str, Any]) -> Iterator[tuple[Part, str, float]]:
    """Energies and areas of a group, point by point; area = 1 / (performance an area)."""
    for text, energy in group["energy"].items():
        yield "energy", text, float(energy)
        if text in group.get("performance_per_area", {}):
            yield "area", text, 1 / float(group["performance_per_area"][text])


def _row(group: Mapping[str, Any], part: Part, text: str, value: float) -> Row:
    arithmetic, _, bits = text.partition("@")
    label = f"{arithmetic}{f', product of {bits} bits' if bits else ''}: {part}"
    figure = Figure(
        key=f"{group['group']} {label}",
        group=f"{group['group']}: of the PE at {BASELINE}",
        figure=label,
        value=value,
        unit="×",
        tolerance=min(TOLERANCE, WIDEST * value),
        why="another node, another flow, and a PE whose sizes the paper does not give; at most a "
        "quarter",
        source=group["source"] + (", the inverse of performance an area" * (part == "area")),
    )
    ours = measured()[setting_of(text)]
    return figure.row(
        ours.relative(part), _remark(ours, part), measured=_evidence(ours, part), missing=MISSING
    )


MISSING = "the paper's PE (its sizes, pipelining and cells, notes 6 to 9) is not published"

LARGER = (2, 4, 8)
"""Times the area of the buffers."""


def _remark(ours: PePoint, part: Part) -> str:
    """Narrower scopes, and what gates."""
    lanes, with_ppu = (ours.relative(part, scope) for scope in ("lanes", "lanes and PPU"))
    said = f"lanes {lanes:.2f}, with PPU {with_ppu:.2f}"
    if ours.gated and part == "energy":
        said += f"; {100 * ours.zero_steps:.1f} % of steps gated"
    return said


def _evidence(ours: PePoint, part: Part) -> list[Measured]:
    """The point in narrower scopes, with larger buffers, and without gates where that was measured.

    Areas of larger buffers are taken in proportion; `benchmarks/vector_mac_pe.md` has CACTI's.
    """
    where = "archsim/papers/vsquant_hardware.toml"
    found = [
        switch(f"{scope} alone", ours.relative(part, scope), where)
        for scope in ("lanes", "lanes and PPU")
    ]
    if part == "area":
        base = measured()[BASELINE, 0, False]
        for times in LARGER:
            ratio = _with_buffers(ours, times) / _with_buffers(base, times)
            found.append(switch(f"buffers of {times} times the area", ratio, where))
    ungated = (ours.arithmetic, ours.scale_product_bits, False)
    if ours.gated and part == "energy" and ungated in measured():
        found.append(switch("not gated", measured()[ungated].relative(part), where))
    return found


def _with_buffers(point_: PePoint, times: int) -> float:
    """µm² with buffers of so many times their area."""
    lanes = point_.total("area", "lanes and PPU")
    return lanes + times * (point_.total("area") - lanes)


def _saving_rows(savings: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What is left, of what the abstracts say is saved."""
    rows: list[Row] = []
    for entry in savings:
        ours = measured()[setting_of(entry["point"])]
        part: Part = entry["part"]
        left = 100 - float(entry["value"])
        label = entry["figure"].replace(" saved by ", " left with ")
        figure = Figure(
            key=f"{entry['figure']} {entry['source']}",
            group="PE, what the abstracts' savings leave",
            figure=label,
            value=left,
            unit="%",
            neutral=100,
            tolerance=min(100 * TOLERANCE, WIDEST * left),
            why="as for the points",
            source=f"{entry['source']}: {entry['value']} % saved",
        )
        scaled = [replace(one, value=100 * one.value) for one in _evidence(ours, part)]
        remark = entry.get("remark") or f"{entry['point']}: as that row"
        rows.append(figure.row(100 * ours.relative(part), remark, measured=scaled, missing=MISSING))
    return rows


def notes() -> tuple[str, ...]:
    """Notes 6 to 10 of the paper's table."""
    gated, ungated, channel = (
        measured()[setting].relative("energy")
        for setting in (("4/4/4/4", 4, True), ("4/4/4/4", 4, False), ("4/4/-/-", 0, False))
    )
    zero = 100 * measured()["4/4/4/4", 4, True].zero_steps
    return (
        "Note 6. Hardware: ours is a PE of the generator's own RTL on OSU's 180 nm cells, measured "
        "by benchmarks/vector_mac_pe.py. The paper does not give its PE's sizes; ours has "
        f"{LANES} lanes of {VECTOR} products, 16 collectors of flip-flops a lane with 4 bits more "
        f"than a term, a PPU for {LANES} channels a cycle, and buffers of {ACTIVATION_ROWS} rows "
        f"of an activation vector and {WEIGHT_ROWS} of a weight vector a lane, with their scales "
        "(CACTI at 90 nm, scaled to 180). Scales of figure 3's 6/6 are taken as those of its 4/4.",
        "Note 7. Energy: blocks of three layers of SqueezeNet on photographs, for the BERT points "
        "too; toggles of the netlist without delays, so without glitches, wires and a clock tree; "
        "reads of the buffers. Registers with an enable are clocked when they are written. The "
        "paper's is of RTL from HLS in a node below 16 nm, with its own pipelining and operands. "
        "Where the product of scales is rounded, lanes are gated, as in the paper.",
        "Note 8. Energy away from the paper's: with whole products ours is lower; a multiplier "
        "behind adders glitches, which is not in ours, and the paper gives no parts: not measured. "
        "With rounded products ours is higher: figure 3 saves more than our whole scale path takes "
        "(note 10).",
        "Note 9. Area away from the paper's: points with 8 or 10 bits of activation scales, for "
        "which the PPU's dividers and the collectors are wide. The larger the buffers beside them, "
        "the nearer the paper (benchmarks/vector_mac_pe.md has buffers of up to eight times the "
        "rows): its PE has more buffer for its lanes, or a smaller PPU.",
        "Note 10. Gating needs operands in registers before the multipliers, which our lane has "
        f"for nothing else. They cost more than is saved where {zero:.0f} % of the steps have a "
        f"rounded product of 0: 4/4/4/4 with a product of 4 bits takes {ungated:.2f} without gates "
        f"and {gated:.2f} with them, and 4/4/-/- {channel:.2f}. In figure 3 the first is below the "
        "last; in ours it is not.",
    )
