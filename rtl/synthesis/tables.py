"""The tables of a synthesis that `archsim synth` prints."""

from __future__ import annotations

from rich import box
from rich.table import Table

from rtl.synthesis.result import Synthesis

__all__ = ["class_table", "closing", "heading", "hierarchy_table", "memory_table"]


def _table(title: str, first: str, *numbers: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.collapse_padding, table.pad_edge = True, False  # room for names at 80 columns
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def heading(synthesis: Synthesis) -> str:
    """The whole design in two lines."""
    library, total = synthesis.library, synthesis.total
    node = "" if library.node_nm is None else f"{library.node_nm:g} nm, "
    leakage = "" if total.leakage_mw is None else f", leakage {total.leakage_mw:.3g} mW"
    return (
        f"{synthesis.design_name} on {library.name} ({node}{library.voltage_v:g} V)\n"
        f"{total.area_um2 / 1e6:.4g} mm² = {synthesis.kge(total):,.1f} kGE without memories: "
        f"{total.cells:,} cells, {total.flip_flops:,} flip-flops{leakage}"
    )


def hierarchy_table(synthesis: Synthesis, depth: int) -> Table:
    """Instances down to `depth`, those of one module together."""
    table = _table(
        "by module, with all below it",
        "instance",
        "count",
        "each µm²",
        "all kGE",
        "%",
        "flip-flops",
    )
    whole = synthesis.total.area_um2
    for branch in synthesis.branches():
        if branch.depth <= depth:
            table.add_row(
                f"{'  ' * branch.depth}{branch.label}",
                f"{branch.count:,}",
                f"{branch.each.area_um2:,.0f}",
                f"{synthesis.kge(branch.total):,.1f}",
                f"{100 * branch.total.area_um2 / whole:.1f}",
                f"{branch.total.flip_flops:,}",
            )
    return table


def class_table(synthesis: Synthesis) -> Table:
    """Area by class, with its share of all classes."""
    table = _table("by class, each mapped apart", "class", "µm²", "kGE", "%", "flip-flops")
    together = sum(area.area_um2 for area in synthesis.classes.values())
    for name, area in synthesis.classes.items():
        table.add_row(
            name,
            f"{area.area_um2:,.0f}",
            f"{synthesis.kge(area):,.1f}",
            f"{100 * area.area_um2 / together:.1f}",
            f"{area.flip_flops:,}" if area.flip_flops else "",
        )
    kge = together / synthesis.library.gate_area_um2 / 1000
    table.add_row("together", f"{together:,.0f}", f"{kge:,.1f}", "100.0", "")
    return table


def memory_table(synthesis: Synthesis) -> Table:
    """The macros, those of one size in one place together."""
    table = _table("memory macros (no area here)", "instance", "count", "words × bits", "kbit")
    for branch in synthesis.branches():
        sizes: dict[tuple[int, int], list[str]] = {}
        for name, memory in branch.memories.items():
            sizes.setdefault((memory.depth, memory.bits), []).append(name)
        for (words, bits), names in sizes.items():
            count = branch.count * len(names)
            table.add_row(
                f"{branch.path}/{', '.join(sorted(names))}",
                f"{count:,}",
                f"{words:,} × {bits:,}",
                f"{count * words * bits / 1024:,.1f}",
            )
    return table


def closing(synthesis: Synthesis) -> str:
    """The slowest path, and how to read the figures."""
    lines: list[str] = []
    path = synthesis.critical_path
    if path is None:
        lines.append(f"critical path: not measured, {synthesis.timing_note}")
    else:
        lines += [
            f"critical path: {path.period_ns:.2f} ns ({path.clock_hz / 1e6:.1f} MHz)",
            f"  from {path.start}",
            *(
                f"  {segment.delay_ns:8.2f} ns  {segment.cells} cells in "
                f"{segment.instance or synthesis.top}"
                for segment in path.segments
            ),
            f"  {path.setup_ns:8.2f} ns  setup at {path.end}",
        ]
    versions = ", ".join(f"{name} {version}" for name, version in synthesis.tools.items())
    lines += [
        "",
        "Relative figures: cells alone, no wires, no clock tree, gates not sized for speed.",
        "Delays: ideal clock, reset left out, memories and the outside of ports take no time.",
        f"Classes: mapped apart they are {100 * synthesis.splitting_cost:+.1f} % of the whole, "
        f"where logic is optimised across them;",
        "registers include their enables and resets.",
        f"Fan-out above {synthesis.options['fanout']} pins goes through buffers.",
        f"{versions}; {synthesis.options['flow']}.",
    ]
    return "\n".join(lines)
