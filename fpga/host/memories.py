"""Memories of a design whose cells fail, as a host sees them: what registers say, what is built."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from archsim.machine.design import Design
from archsim.memory.kinds import access_of
from rtl.core.memory import built
from rtl.core.settings import chain_bits
from rtl.registry import settings_in

__all__ = ["design_as_built", "exact", "setting_bits"]


def design_as_built(design: Design) -> Design:
    """Without what registers say of its memories."""
    machine: Any = design
    return replace(machine, **{name: built(getattr(design, name)) for name in _memories(design)})


def exact(design: Design) -> bool:
    """Whether no memory fails."""
    return all(getattr(design, name).exact for name in _memories(design))


def setting_bits(design: Design) -> list[int]:
    """What is shifted into the registers of its memories, the first bit first."""
    return chain_bits(settings_in(design))


def _memories(design: Any) -> list[str]:
    return [one.name for one in fields(design) if access_of(one) is not None]
