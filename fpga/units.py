"""What can be placed: components and whole designs as Verilog, and Boveda's units by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.lib import wiring

from archsim.errors import InputError, nearest
from rtl.boveda import Compressor, Decompressor
from rtl.core.boveda_width import check_format
from rtl.hierarchy import sharing
from rtl.to_verilog import rtlil_to_verilog

__all__ = ["BOVEDA", "TOP", "boveda_units", "unit_verilog"]

TOP = "top"
"""The top module of what is placed."""

BOVEDA: Mapping[str, int | bool] = {
    "group": 16,
    "container_bits": 8,
    "signed": True,
    "zero_width": False,
}
"""The parameters of Boveda's units, with their defaults."""


def unit_verilog(unit: wiring.Component) -> str:
    """A component as Verilog, its module named `top`, repeated modules once."""
    with sharing() as library:
        text = rtlil.convert(unit, name=TOP, emit_src=False)
    sources = "\n".join(library.sources.values())
    return f"{sources}\n{rtlil_to_verilog(chr(10).join([text, *library.texts.values()]))}"


def boveda_units(settings: Sequence[str]) -> dict[str, str]:
    """Verilog of compressor and decompressor, in the format that settings like "group=8" name.

    Raises `InputError` for a setting that is not one of `BOVEDA`, or of a value it cannot have.
    """
    form: dict[str, Any] = dict(BOVEDA)
    for setting in settings:
        key, _, text = setting.partition("=")
        if key not in form:
            raise InputError(f"boveda has no setting {key!r}; {nearest(key, form)}")
        form[key] = _value(key, text, isinstance(BOVEDA[key], bool))
    check_format(form["group"], form["container_bits"])
    return {
        "compressor": unit_verilog(Compressor(**form)),
        "decompressor": unit_verilog(Decompressor(**form)),
    }


def _value(key: str, text: str, switch: bool) -> int | bool:
    if switch:
        if text not in ("true", "false"):
            raise InputError(f"{key} must be true or false, not {text!r}")
        return text == "true"
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"{key} must be a whole number, not {text!r}") from error
