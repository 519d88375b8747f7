"""Points of a space: numbered, told from their numbers alone, and known again by their content.

A point is a design on a network.  Designs have numbers from 0 to `Space.design_count` − 1, machine
by machine, the last field varying first; the point of design d on network n is d · networks + n.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.importers import any_network
from archsim.machine.design import Design
from archsim.machine.registry import complete_record
from archsim.numbers import IntArray
from archsim.sweeps.expressions import Predicate
from archsim.sweeps.shared_designs import SharedDesigns
from archsim.sweeps.space import MachineSpace, Space
from archsim.sweeps.variants import Column, Variant, flat
from workloads.layers import Network

ID_BYTES = 16
"""Of a point's content hash: among 10^8 points, two are alike with a chance of 10^-23."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A variant among the designs of a space.  first: number of its first design."""

    machine: MachineSpace
    variant: Variant
    first: int

    @cached_property
    def values(self) -> dict[str, tuple[Any, ...]]:
        """The values of every field, varied or not; of what says how operands are drawn too."""
        known = flat(complete_record(self.variant.base))
        if self.machine.timed_by_values:
            known |= {f"operands.{k}": v for k, v in vars(self.machine.drawing).items()}
        return {**{name: (value,) for name, value in known.items()}, **self.variant.fields}

    @cached_property
    def keys(self) -> dict[str, frozenset[tuple[bool, Any]]]:
        """The same, to be compared: true is not 1."""
        return {
            name: frozenset((isinstance(one, bool), one) for one in values)
            for name, values in self.values.items()
        }

    @cached_property
    def _names(self) -> dict[str, str]:
        """All fields as they stand in the text that is hashed, with their first values."""
        return {name: json.dumps(values[0]) for name, values in self.values.items()}

    def ids(self, digits: IntArray, network: str) -> list[bytes]:
        """The content hash of each design on a network, told by its own."""
        varied = self.variant.fields
        texts = [[json.dumps(one) for one in values] for values in varied.values()]
        pieces: list[str] = [network]
        places: list[int] = []
        slots = {name: place for place, name in enumerate(varied)}
        for name in sorted({*self._names, *varied}):
            pieces[-1] += f"\n{name}="
            if name in slots:
                places.append(slots[name])
                pieces.append("")
            else:
                pieces[-1] += self._names[name]
        found: list[bytes] = []
        for row in cast("list[list[int]]", digits.tolist()):
            text: str = "".join(
                piece + texts[place][row[place]]
                for piece, place in zip(pieces, places, strict=False)
            )
            whole = (text + pieces[-1]).encode()
            found.append(hashlib.blake2b(whole, digest_size=ID_BYTES).digest())
        return found


class Grid:
    """All points of a space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.parts: list[Part] = []
        first = 0
        for machine in space.machines:
            for variant in machine.variants:
                self.parts.append(Part(machine=machine, variant=variant, first=first))
                first += variant.size
        self._firsts = np.array([part.first for part in self.parts], np.int64)

    @cached_property
    def shared(self) -> SharedDesigns:
        """Designs that several machines have in common."""
        return SharedDesigns(self)

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """Raises as `archsim.importers.any_network`, and `InputError` without matrix layers."""
        found = [any_network(one) if isinstance(one, str) else one for one in self.space.networks]
        for network in found:
            if not network.matrix_layers:
                raise InputError(f"networks: {network.name} has no matrix layer to be computed")
        return tuple(found)

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """What tells each network, whatever it is called."""
        return tuple(
            hashlib.sha256(repr((one.layers, one.skipped)).encode()).hexdigest()[:32]
            for one in self.networks
        )

    def split(self, designs: IntArray) -> Iterator[tuple[Part, IntArray, IntArray]]:
        """The variant of each design: (variant, places in `designs`, digits)."""
        part_of = np.searchsorted(self._firsts, designs, side="right") - 1
        for at in cast("list[int]", np.unique(part_of).tolist()):
            places = np.flatnonzero(part_of == at)
            part = self.parts[at]
            yield part, places, part.variant.digits(designs[places] - part.first)

    def allowed(self, designs: IntArray) -> npt.NDArray[np.bool_]:
        """[designs]: whether all constraints of its machine hold.  Raises `InputError`."""
        found = np.ones(len(designs), np.bool_)
        for _, places, holds in self._held(designs):
            found[places] &= holds
        return found

    def broken(self, designs: IntArray) -> dict[str, int]:
        """How many of the designs break each constraint, by its text."""
        found = {text: 0 for one in self.space.machines for text in one.constraints}
        for predicate, _, holds in self._held(designs):
            found[predicate.text] += int((~holds).sum())
        return found

    def _held(
        self, designs: IntArray
    ) -> Iterator[tuple[Predicate, IntArray, npt.NDArray[np.bool_]]]:
        """Every constraint on the designs that it is of: (it, places in `designs`, whether it
        holds); those of fields that memories of other kinds have are passed over."""
        for part, places, digits in self.split(designs):
            if part.machine.predicates:
                table = part.variant.table(digits)
                for one in part.machine.predicates:
                    if set(one.names) <= set(table):
                        yield one, places, one.holds(table, len(places))

    def designs(self, numbers: IntArray) -> list[Design | InputError]:
        """Each design, or why it is none."""
        found: list[Any] = [None] * len(numbers)
        for part, places, digits in self.split(numbers):
            for place, one in zip(places.tolist(), part.variant.designs(digits), strict=True):
                found[place] = one
        return found

    def ids(self, designs: IntArray, network: int) -> list[bytes]:
        """The content hashes of designs on a network, by its place in the space."""
        found: list[bytes] = [b""] * len(designs)
        for part, places, digits in self.split(designs):
            ids = part.ids(digits, self.contents[network])
            for place, one in zip(places.tolist(), ids, strict=True):
                found[place] = one
        return found

    def columns(self, designs: IntArray) -> dict[str, Column]:
        """Columns [designs] of every field that varies, None where a machine has it not."""
        found: dict[str, Any] = {
            name: np.full(len(designs), None, object) for name in self.space.fields
        }
        machines = np.full(len(designs), None, object)
        for part, places, digits in self.split(designs):
            machines[places] = part.machine.name
            for name, kind in part.variant.kinds.items():
                found[name][places] = kind
            for at, (name, values) in enumerate(part.variant.fields.items()):
                found[name][places] = np.array(values, object)[digits[:, at]]
        return {"machine": machines, **found}

    def where(self, number: int) -> tuple[Part, IntArray]:
        """The variant of a design, and its digits [1, fields]."""
        part, _, digits = next(self.split(np.array([number], np.int64)))
        return part, digits


def point_numbers(grid: Grid, designs: IntArray, network: int) -> IntArray:
    """Numbers of the points of designs on a network, by its place in the space."""
    return designs * len(grid.space.networks) + network


__all__ = ["ID_BYTES", "Grid", "Part", "point_numbers"]
