"""The page as a whole: what is on it, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from archsim.report.templates import template_of
from archsim.robust.low_voltage import MachineAtLowVoltage
from archsim.robust.parts_alone import PartsAlone
from archsim.voltage_report import tables
from archsim.voltage_report.figures import figures

_FOLDER = Path(__file__).parent


def write_voltage_report(
    found: MachineAtLowVoltage,
    parts: Sequence[PartsAlone],
    path: Path,
    *,
    evaluated: str = "",
    command_line: str = "",
) -> None:
    """Write `voltage_report_html` to a file that must not exist yet: whole, or not at all.

    Raises `InputError` if the file exists or cannot be written.
    """
    from archsim.files import require_new, write_new

    require_new(path)
    text = voltage_report_html(found, parts, evaluated=evaluated, command_line=command_line)
    write_new({path: text})


def voltage_report_html(
    found: MachineAtLowVoltage,
    parts: Sequence[PartsAlone],
    *,
    evaluated: str = "",
    command_line: str = "",
) -> str:
    """A machine's memories at low voltage as one HTML page that needs no other file, no network.

    parts: where errors hurt, by memory.  evaluated: what the errors are of, as a reader sees it.
    The page depends on its arguments alone.
    """
    from archsim.machine.registry import design_name, design_toml
    from archsim.version import VERSION

    return template_of(_FOLDER, "voltage.html").render(
        found=found,
        name=design_name(found.design),
        summary=found.design.summary,
        version=VERSION,
        evaluated=evaluated,
        command_line=command_line,
        cards=tables.cards(found),
        figures={one.name: one for one in figures(found, parts)},
        series=tables.series_table(found),
        by_layer=tables.layer_table(parts),
        by_bit=tables.bit_table(parts),
        supplies=tables.supplies(parts),
        toml=design_toml(found.design),
    )


__all__ = ["voltage_report_html", "write_voltage_report"]
