"""Parashar et al., ISCA 2017: the area of SCNN's PE, from its description and from its table.

The components are described by Table 3's sizes and priced in the technology "16nm" (memories from
CACTI, everything else from synthesis); beside that stands what follows from the printed table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from archsim.papers.evidence import Measured, switch
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
    "products of 24 bits through 32 choices of 16 ways (AND-OR, as in the emitted core); two "
    "times 32 banks of 32 sums of 24 bits, each bank with an adder. A memory is priced as "
    "registers or as a macro, whichever is less.",
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
        "fifo": (parts("sram", 1, word_bits=word, depth=50, read_ports=1, write_ports=1),),
        "alus": (parts("multiplier", 16, a_bits=16, b_bits=16),),
        "crossbar": (parts("one_hot", 32, bits=24, ways=16),),
        "accumulators": (
            parts("sram", 2 * 32, word_bits=24, depth=32, read_ports=1, write_ports=1),
            parts("adder", 32, bits=24),
        ),
    }


def area_um2(technology: Technology, *components: Component) -> float:
    """Of all pieces of some components."""
    total = 0.0
    for component in components:
        found = technology.area_um2(component)
        assert found is not None, f"{technology.name} has no area of a {component.kind}"
        total += component.count * found.value
    return total


def part_areas_um2(technology: Technology) -> dict[str, float]:
    """Area of each part of a PE."""
    return {name: area_um2(technology, *components) for name, components in scnn_pe().items()}


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
    described, reasons = sum(ours.values()), evidence(ours)
    other = printed_areas_um2()["other"]
    whole = switch("with the printed 'other', 19,000 µm²", described + other, "table scnn-2017")
    found = sum(ours[part] - value for part, value in best(figures, ours, reasons).items())
    full = switch("and parts as measured otherwise", described + other - found, "the rows above")
    rows = [
        figures[name].row(
            area, REMARKS.get(name, ""), measured=reasons.get(name, ()), missing=MISSING
        )
        for name, area in ours.items()
    ]
    parts = switch("parts as measured otherwise", described - found, "the rows above")
    rows.append(figures["described"].row(described, measured=[parts], missing=MISSING))
    rows.append(figures["pe"].row(described, OTHER, measured=[whole, full], missing=MISSING))
    chip = [replace(one, value=PES * one.value / UM2_PER_MM2) for one in (whole, full)]
    mm2 = PES * described / UM2_PER_MM2
    return [*rows, figures["chip"].row(mm2, OTHER, measured=chip, missing=MISSING)]


OTHER = "without 'other' (note 3)"
MISSING = "the paper's cells, macros, wires and sizing for 1 GHz are not published"
REMARKS = {"memories": "a port to read and one to write"}


def evidence(ours: Mapping[str, float]) -> dict[str, list[Measured]]:
    """By part of a PE, its area if it were made otherwise."""
    from archsim.papers.scnn_energy_rows import pe_areas_um2

    technology, emitted = load_technology(TECHNOLOGY), pe_areas_um2()
    how = f"energy_models, {TECHNOLOGY}"

    def registers(name: str, bits: int, count: int) -> float:
        part = Component(name=name, kind="register", count=count, attributes={"bits": bits})
        return area_um2(technology, part)

    def words(name: str, bits: int, count: int) -> float:
        """As flip-flops, each behind a choice and before another."""
        sizes = {"bits": bits, "ways": 2}
        chosen = Component(name=name, kind="mux", count=2 * count, attributes=sizes)
        return registers(name, bits, count) + area_um2(technology, chosen)

    (macros,) = (one for one in scnn_pe()["memories"])
    single = replace(macros, attributes={**macros.attributes, "read_ports": 0, "write_ports": 0})
    adders = area_um2(technology, scnn_pe()["accumulators"][-1])
    found = {
        "memories": [switch("with one port", area_um2(technology, single), how)],
        "fifo": [switch("as flip-flops", words("fifo", 80, 50), how)],
        "alus": [
            switch(
                "with registers at operands and products",
                ours["alus"] + registers("alus", 64, 16),
                how,
            )
        ],
        "accumulators": [
            switch("as flip-flops", words("accumulators", 24, 2 * 32 * 32) + adders, how)
        ],
    }
    for name, area in emitted.items():
        if name in ours:
            made = "as emitted, with arbitration and queues" if name == "crossbar" else "as emitted"
            found.setdefault(name, []).append(
                switch(made, area, "archsim.papers.scnn_energy_rows.pe_areas_um2")
            )
    return found


def best(
    figures: Mapping[str, Figure],
    ours: Mapping[str, float],
    reasons: Mapping[str, Sequence[Measured]],
) -> dict[str, float]:
    """Of each part outside its tolerance the area that is nearest to the paper's."""
    found: dict[str, float] = {}
    for name, area in ours.items():
        paper = figures[name].value
        assert paper is not None
        published: float = paper
        values = [area, *(one.value for one in reasons.get(name, ()))]
        if figures[name].row(area, missing="?").within is False:
            found[name] = min(values, key=lambda value: abs(value - published))
    return found


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
