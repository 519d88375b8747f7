"""Parashar et al., ISCA 2017: the area of SCNN's PE, from its description and from its table.

The components are described by Table 3's sizes and priced in the technology "16nm" (memories from
CACTI, everything else from synthesis); beside that stands what follows from the printed table.
"""

from __future__ import annotations

from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from energy_models.component import Component
from energy_models.table import load_table
from energy_models.technology import Technology, load_technology

PES = 64
TECHNOLOGY = "16nm"
UM2_PER_MM2 = 1e6

PRINTED = {
    "memories": "iaram_and_oaram",
    "fifo": "weight_fifo",
    "alus": "multiplier_array",
    "crossbar": "crossbar",
    "accumulators": "accumulators",
}
"""A part of `scnn_pe` to its row in the table scnn-2017."""

NOTES = (
    "Note 1. Sizes are those of Table 3: IARAM and OARAM of 10 KB with 4 values of 16 bits and "
    "their 4-bit indices a word; 50 FIFO entries of as many bits; 16 multipliers of 16 bits; "
    "products of 24 bits through 32 multiplexers of 16 ways; two times 32 banks of 32 sums of "
    "24 bits, each bank with an adder.",
    "Note 2. Ours are cells and macros without wires, placement or clock trees, scaled from the "
    "nodes that the sources are of (see `archsim show 16nm`); the paper's are of its own RTL in a "
    "16 nm library.",
    "Note 3. 'Other' (0.019 mm²) is not described in the paper, and is in no figure of ours.",
)


def scnn_pe() -> dict[str, tuple[Component, ...]]:
    """The parts of a PE, as Table 4 groups them."""
    word = 4 * (16 + 4)

    def parts(kind: str, count: int, **attributes: int) -> Component:
        return Component(name=kind, kind=kind, count=count, attributes=attributes)

    return {
        "memories": (parts("sram", 2, word_bits=word, depth=1024, read_ports=1, write_ports=1),),
        "fifo": (
            parts("register", 50 * 4, bits=16 + 4),
            parts("mux", 49 * 4, bits=16 + 4, ways=2),
        ),
        "alus": (parts("multiplier", 16, a_bits=16, b_bits=16),),
        "crossbar": (parts("mux", 32, bits=24, ways=16),),
        "accumulators": (
            parts("register", 2 * 32 * 32, bits=24),
            parts("mux", 2 * 32 * 31, bits=24, ways=2),
            parts("adder", 32, bits=24),
        ),
    }


def part_areas_um2(technology: Technology) -> dict[str, float]:
    """Area of each part of a PE."""
    areas: dict[str, float] = {}
    for name, components in scnn_pe().items():
        total = 0.0
        for component in components:
            found = technology.area_um2(component)
            assert found is not None, f"{technology.name} has no area of a {component.kind}"
            total += component.count * found.value
        areas[name] = total
    return areas


def printed_areas_um2() -> dict[str, float]:
    """Table 4 as shipped: component → area of one PE's."""
    return {entry.component: entry.figure for entry in load_table("scnn-2017").entries}


def compare(_progress: Progress = silent) -> Comparison:
    """The paper's figures, ours beside them."""
    figures = load_figures("scnn-area")
    return Comparison(
        paper="scnn-area",
        title=str(read_paper("scnn-area")["title"]),
        rows=(*_described(figures), *_printed(figures)),
        notes=NOTES,
    )


def _described(figures: dict[str, Figure]) -> list[Row]:
    ours = part_areas_um2(load_technology(TECHNOLOGY))
    described = sum(ours.values())
    return [
        *(figures[name].row(area, REASONS.get(name, "")) for name, area in ours.items()),
        figures["described"].row(described, REASONS.get("described", "")),
        figures["pe"].row(described, "without 'other' (note 3)"),
        figures["chip"].row(PES * described / UM2_PER_MM2, "without 'other' (note 3)"),
    ]


REASONS: dict[str, str] = {
    "memories": "a port to read and one to write; with a single port ours would be half of it",
    "alus": "ours are mapped for least area; the paper's meet 1 GHz, with pipeline registers",
    "crossbar": "ours are multiplexers alone; wires, arbitration and queues are the most of it",
    "accumulators": "ours are flip-flops and multiplexers, not latches or a register-file macro",
}
"""Why a part is as far from the paper's as it is."""


def _printed(figures: dict[str, Figure]) -> list[Row]:
    printed = printed_areas_um2()
    total = sum(printed[name] for name in (*PRINTED.values(), "other"))
    memories = sum(printed[PRINTED[name]] for name in ("memories", "fifo", "accumulators"))
    remark = "IARAM and OARAM, weight FIFO and accumulators"
    return [
        figures["sum"].row(PES * total / UM2_PER_MM2),
        figures["memory_share"].row(100 * memories / total, remark),
        figures["multiplier_share"].row(100 * printed[PRINTED["alus"]] / total),
    ]
