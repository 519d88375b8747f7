"""A space of designs: kinds of machine side by side, the values of their fields, networks, and what
is asked of each point.

A space is a frozen value, made in Python or read from TOML (`archsim.sweeps.space_file`):

>>> from archsim import EDGE_16
>>> from archsim.sweeps import MachineSpace, Space
>>> arrays = MachineSpace(design=EDGE_16, fields={"rows": [8, 16], "columns": [8, 16, 32]},
...                       constraints=("rows <= columns",))
>>> space = Space(machines=(arrays,), networks=("alexnet",), objectives=("cycles", "area"))
>>> space.size
6
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from archsim.errors import require, require_seed
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machine.options import taken
from archsim.machine.registry import design_name, design_record
from archsim.objectives import Objective, objective_of
from archsim.sweeps.expressions import Predicate
from archsim.sweeps.objectives import PRICED, SHORT, column_of, measured_names
from archsim.sweeps.prices import DEFAULT_TECHNOLOGY, Prices
from archsim.sweeps.values import Value, values_of
from archsim.sweeps.variants import AXES, MOST_VARIANTS, Variant, variants_of
from energy_models.frozen import frozen
from workloads.layers import Network

LARGEST = 1 << 62
"""Points of a space; numbers of points are of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class MachineSpace:
    """Designs of one kind: a base, and the values of those fields that vary.

    fields: by name, dots reaching into records ("ifmap_memory.capacity_bytes"); values as
    `archsim.sweeps.values.values_of` takes them.  Fields that are not named stay as the base's.
    constraints: predicates (`archsim.sweeps.expressions`) over fields of the design, varied or not;
    designs for which one is false are no part of the space.
    drawing: of operands, where cycles depend on values.
    mapper: how layers are mapped, as the machine's option of that name says; its default if empty.
    name: in the column "machine"; the base's if it is empty.
    Raises `InputError` for fields and values that the design has not.
    """

    design: Design
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constraints: tuple[str, ...] = ()
    drawing: Drawing = field(default_factory=Drawing)
    mapper: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        options = {one.name: one for one in self.design.options}
        if taken(self.design, self.options) and (read := options["mapper"].read):
            read(self.mapper)
        if not self.name:
            object.__setattr__(self, "name", design_name(self.design))
        given = {name: values_of(name, values) for name, values in self.fields.items()}
        object.__setattr__(self, "fields", frozen(given))
        object.__setattr__(self, "constraints", tuple(self.constraints))
        require(
            0 < self.drawing.density <= 1,
            f"{self.name}: density must be above 0 and at most 1, not {self.drawing.density:g}",
        )
        require_seed(self.drawing.seed)
        known = {name for one in self.variants for name in one.known}
        for one in self.predicates:
            one.check_names(sorted(known))

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """The constraints, read."""
        return tuple(map(Predicate, self.constraints))

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Its designs by kinds of memory: within one, all have the same fields."""
        return variants_of(self.name, self.design, self.fields)

    @property
    def options(self) -> dict[str, Any]:
        """As `archsim.simulate` takes them."""
        return {"mapper": self.mapper} if self.mapper else {}

    @property
    def size(self) -> int:
        """Designs, before constraints."""
        return sum(one.size for one in self.variants)

    @property
    def timed_by_values(self) -> bool:
        """Whether cycles depend on operands, which are drawn."""
        return self.design.machine_model().timed_by_values

    def record(self) -> dict[str, Any]:
        """Plain data, from which it can be made again."""
        found: dict[str, Any] = {
            "name": self.name,
            "design": design_record(self.design),
            "fields": {name: list(values) for name, values in self.fields.items()},
            "constraints": list(self.constraints),
        }
        if self.timed_by_values:
            found["operands"] = dict(vars(self.drawing))
        if any(one.name == "mapper" for one in self.design.options):
            found["mapper"] = self.mapper
        return found


@dataclass(frozen=True, kw_only=True)
class Space:
    """What a study computes: every design of the machines on every network.

    networks: names, files, or networks themselves.
    objectives: columns (`archsim.sweeps.objectives.UNITS`, or "energy", "edp", "area",
    "footprint", "error"), entries of `archsim.objectives`, or names of actions.
    settings: by objective, what an entry is set to; networks may be left out where one brings its
    own.
    technology, voltage_v: what actions and areas cost (`energy_models.technology`); of several each
    is an axis of all machines, as the fields of those names are of one (`archsim.sweeps.prices`).
    requirements: predicates over fields and objectives that a design of use fulfils
    ("area_um2 <= 2e6"); points that do not are kept, but are on no front.
    layers: whether cycles of every layer are kept too.
    Raises `InputError` for an empty space, unknown names, and objectives that a machine or a
    technology cannot give.
    """

    machines: tuple[MachineSpace, ...]
    networks: tuple[str | Network, ...]
    objectives: tuple[str, ...] = ("cycles",)
    technology: str | Sequence[str] | None = None
    voltage_v: float | Sequence[float] | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    requirements: tuple[str, ...] = ()
    layers: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("machines", "networks", "objectives", "requirements"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require(bool(self.machines), "the space is empty: it has no machine")
        require(bool(self.objectives), "the space has no objective")
        count = sum(len(one.variants) for one in self.machines)
        require(
            count <= MOST_VARIANTS,
            f"a space has at most {MOST_VARIANTS:,} machines and kinds of them, not {count:,}",
        )
        object.__setattr__(self, "objectives", tuple(map(column_of, self.objectives)))
        self._check_twice("objective", [column_of(name) for name in self.settings])
        settings = {column_of(name): frozen(dict(of)) for name, of in self.settings.items()}
        object.__setattr__(self, "settings", frozen(settings))
        for name in self.settings:
            require(
                name in measured_names(self.objectives),
                f"objective.{name} is set, and is no objective of the space that can be",
            )
        object.__setattr__(self, "networks", self._with_brought())
        require(bool(self.networks), "the space is empty: it has no network")
        self._spread_axes()
        self._check_twice("machines", [one.name for one in self.machines])
        self._check_twice("networks", list(self.network_names))
        self._check_twice("objectives", list(self.objectives))
        require(self.size <= LARGEST, f"a space has at most {LARGEST:,} points, not {self.size:,}")
        sample: dict[str, Any] = {"machine": "", **dict.fromkeys(self.objectives, 1.0)}
        sample |= {name: values[0] for name, values in self.fields.items()}
        for one in self.required:
            one.holds(sample, 1)  # a number, or one beside a text, is told now

    def _with_brought(self) -> tuple[str | Network, ...]:
        """The networks, those that objectives bring by their names; these, where none is given."""
        found = [one.network for one in self.measured.values()]
        brought = {one.name: one for one in found if one is not None}
        given = self.networks or tuple(brought)
        return tuple(brought.get(one, one) if isinstance(one, str) else one for one in given)

    def _spread_axes(self) -> None:
        """What the space has several of becomes a field of every machine that has it not."""
        axes: dict[str, Any] = {}
        for name in AXES:
            given = getattr(self, name)
            if isinstance(given, (list, tuple)):
                axes[name] = given
                object.__setattr__(self, name, None)
        if axes:
            machines = [replace(one, fields={**axes, **one.fields}) for one in self.machines]
            object.__setattr__(self, "machines", tuple(machines))
        for name in AXES:
            varied = any(len(one.fields.get(name, ())) > 1 for one in self.machines)
            require(
                self.priced or not varied,
                f"{name} varies, and no objective hangs on it: energy, edp or area",
            )

    @cached_property
    def measured(self) -> dict[str, Objective]:
        """Objectives that are measured point by point, by name."""
        names = measured_names(self.objectives)
        return {name: objective_of(name, self.settings.get(name, {})) for name in names}

    def _check_twice(self, what: str, names: list[str]) -> None:
        for name in names:
            require(names.count(name) == 1, f"{what}: {name!r} is there twice")

    @property
    def network_names(self) -> tuple[str, ...]:
        """As they stand in the column "network"."""
        return tuple(one if isinstance(one, str) else one.name for one in self.networks)

    @cached_property
    def required(self) -> tuple[Predicate, ...]:
        """The requirements, read."""
        names = {k: v for k, v in SHORT.items() if v in self.objectives and k not in self.fields}
        return tuple(Predicate(one, names) for one in self.requirements)

    @property
    def design_count(self) -> int:
        """Designs of all machines, before constraints."""
        return sum(one.size for one in self.machines)

    @property
    def size(self) -> int:
        """Points: designs × networks, before constraints."""
        return self.design_count * len(self.networks)

    @cached_property
    def fields(self) -> dict[str, tuple[Value, ...]]:
        """The values of every field that varies in some machine."""
        found: dict[str, dict[Value, None]] = {}
        for machine in self.machines:
            for variant in machine.variants:
                for name, values in variant.columns.items():
                    found.setdefault(name, {}).update(dict.fromkeys(values))
        return {name: tuple(values) for name, values in found.items()}

    @property
    def priced(self) -> bool:
        """Whether an objective hangs on a technology."""
        return bool(PRICED & set(self.objectives))

    def record(self) -> dict[str, Any]:
        """Plain data: machines, objectives, technology, and networks with what they consist of."""
        settings = {name: dict(of) for name, of in self.settings.items()}
        return {
            "name": self.name,
            "networks": list(self.network_names),
            "objectives": list(self.objectives),
            "technology": self.technology,
            "voltage_v": self.voltage_v,
            "requirements": list(self.requirements),
            "layers": self.layers,
            **({"objective": settings} if settings else {}),
            "machine": [one.record() for one in self.machines],
        }

    def digest(self, networks: Mapping[str, str]) -> str:
        """What tells spaces apart: machines, objectives, technology, networks' contents.

        networks: the contents' digests by name.  Name and requirements are no part of it.
        """
        told = {k: v for k, v in self.record().items() if k not in ("name", "requirements")}
        told |= {"contents": dict(networks)}
        told |= {"prices": Prices(self).record()}
        text = json.dumps(told, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["DEFAULT_TECHNOLOGY", "MachineSpace", "Space"]
