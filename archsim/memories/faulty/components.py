"""What memories at a supply of their own cost."""

from __future__ import annotations

from dataclasses import replace

from archsim.blocks import Components


def at_voltage(components: Components, relative_voltage: float | None) -> Components:
    """The SRAMs among components at a supply over V_min of their own; None: at the technology's.

    One that has a supply already keeps it.
    """
    if relative_voltage is None:
        return components
    return tuple(
        replace(one, relative_voltage=relative_voltage)
        if one.kind == "sram" and one.relative_voltage is None
        else one
        for one in components
    )


__all__ = ["at_voltage"]
