"""Faulty variants of a whole design, module by module (`tests.mutation.schemata`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.mutation.netlist import Netlist
from tests.mutation.schemata import SOUND, CannotMergeError, Merged


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A faulty design: its number, and the modules that differ from the sound one's."""

    number: int
    changed: Mapping[str, Netlist]


class Schema:
    """A design's modules, each with its variants; variants are added while it can take them.

    outputs: of modules that are ready-made, the names of their outputs.
    """

    def __init__(self, sound: Mapping[str, Netlist], outputs: Mapping[str, frozenset[str]]) -> None:
        self.sound = dict(sound)
        self.outputs = {**outputs, **{name: _outputs(one) for name, one in sound.items()}}
        self.variants: dict[str, list[tuple[int, Netlist]]] = {name: [] for name in sound}
        self.extra: dict[str, Netlist] = {}
        """Modules that only one variant has."""

    def add(self, variant: Variant) -> None:
        """One more; raises `CannotMergeError`, and is as before, where that cannot be."""
        number = variant.number
        alone = {name for name, one in variant.changed.items() if self._is_new(name, one)}
        changed = dict(variant.changed)
        changed |= {name: one for name, one in self.sound.items() if name not in changed
                    and any(cell.type in alone for cell in one.cells)}  # fmt: skip
        if "top" in alone:
            raise CannotMergeError("the core's boundary is another one")
        named = {name: f"{name}__{number}" for name in alone}
        known = self.outputs | {named[name]: _outputs(changed[name]) for name in alone}
        renamed = {
            name: replace(one, cells=[replace(cell, type=named.get(cell.type, cell.type))
                                      for cell in one.cells])
            for name, one in changed.items()
        }  # fmt: skip
        for name, one in renamed.items():  # can it be?
            trial = Merged(known, frozenset())
            if name not in alone:
                trial.add(SOUND, self.sound[name])
            trial.add(number, one)
        self.outputs = known
        for name, one in renamed.items():
            if name in alone:
                self.extra[named[name]] = one
            else:
                self.variants[name].append((number, one))

    def _is_new(self, name: str, one: Netlist) -> bool:
        """Whether no module of the sound design can stand for it too."""
        return name not in self.sound or not _same_boundary(self.sound[name], one)

    def modules(self) -> dict[str, Any]:
        """All modules, as yosys' JSON has them; each has the choice as an input."""
        every = self.sound | self.extra
        found = {}
        for name, sound in every.items():
            merged = Merged(self.outputs, frozenset(every))
            merged.add(SOUND, sound)
            for number, one in self.variants.get(name, []):
                merged.add(number, one)
            found[name] = merged.module()
        return found


def _outputs(netlist: Netlist) -> frozenset[str]:
    return frozenset(name for name, port in netlist.ports.items() if port.direction == "output")


def _same_boundary(sound: Netlist, other: Netlist) -> bool:
    """Whether one module can stand for both: the other one may lack inputs, clock or reset, and may
    have a clock or a reset that the sound one lacks."""
    added = {"clk", "rst"}
    for name, port in other.ports.items():
        known = sound.ports.get(name)
        if known is None and name not in added:
            return False
        if known and (known.direction, len(known.bits)) != (port.direction, len(port.bits)):
            return False
    return _outputs(sound) == _outputs(other)


__all__ = ["Schema", "Variant"]
