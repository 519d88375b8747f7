"""One printed figure of a published table, and the check of what a file says about it.

An entry is of a component kind (`energy_models.component.KINDS`) or of a part that the table
declares by name, such as "float_adder" or "crossbar".  Sizes that a publication does not state
(`OPTIONAL`) may be left out; the figure then answers for any.  DRAM has two attributes more:
`access_bits`, over how many bits the figure is, and optionally `interface`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from energy_models.component import KINDS
from energy_models.errors import EnergyError, nearest, require, require_known
from energy_models.units import RELATIVE, UNITS, factor

OPTIONAL = ("accumulator_bits", "read_ports", "write_ports", "interface")
"""Attributes of a kind which an entry may leave out."""

REQUIRED_FIELDS = ("component", "quantity", "value", "unit", "source")
FIELDS = (
    *REQUIRED_FIELDS,
    *("attributes", "action", "low", "high", "publication", "node_nm", "voltage_v", "note"),
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A figure as printed.

    component, attributes: what it is of: "adder", {"bits": 8}.
    quantity: "energy", "area" or "leakage"; actions: for energy, the events that cost it.
    value, unit: as printed; low, high: the range if one is printed, and `note` says how `value`
    was taken from it.
    source: table, figure or page; publication: where it is not the table's, else "".
    node_nm, voltage_v: where they differ from the table's, else None.
    """

    component: str
    attributes: Mapping[str, int | str]
    quantity: str
    actions: tuple[str, ...]
    value: float
    unit: str
    source: str
    publication: str = ""
    low: float | None = None
    high: float | None = None
    node_nm: float | None = None
    voltage_v: float | None = None
    note: str = ""

    @property
    def figure(self) -> float:
        """The value in pJ, µm² or mW, or in MACs if it is relative."""
        return self.value * factor(self.unit, self.quantity)

    @property
    def relative(self) -> bool:
        """Whether it is an energy in multiples of one multiply-accumulate."""
        return self.unit == RELATIVE

    @property
    def own_point(self) -> bool:
        """Whether it holds at another node or voltage than its table."""
        return self.node_nm is not None or self.voltage_v is not None

    @property
    def text(self) -> str:
        """What it is of, for messages: "adder(bits=8)"."""
        return f"{self.component}({', '.join(f'{k}={v}' for k, v in self.attributes.items())})"

    @property
    def where(self) -> str:
        """What it is of, with the event: "sram(word_bits=64, depth=1024) read/write energy"."""
        event = f" {'/'.join(self.actions)}" if self.actions else ""
        return f"{self.text}{event} {self.quantity}"


def read_entry(given: object, place: str, parts: tuple[str, ...]) -> Entry:
    """The entry that a file's `[[entry]]` describes; `parts` are the names the table declares.

    place: "FILE, entry 3", for messages.  Raises `EnergyError`.
    """
    if not isinstance(given, dict):
        raise EnergyError(f"{place}: must be a table [[entry]]")
    record = cast("dict[str, object]", given)
    for name in record:
        require_known(name, FIELDS, f"{place}: no field {name!r}")
    for name in REQUIRED_FIELDS:
        require(name in record, f"{place}: {name} is missing")
    component = text_of(record, "component", place)
    known = (*KINDS, *parts)
    require_known(component, known, f"{place}: no component {component!r}")
    quantity = text_of(record, "quantity", place)
    require_known(quantity, UNITS, f"{place}: no quantity {quantity!r}")
    unit = text_of(record, "unit", place)
    units = UNITS[quantity]
    require_known(unit, units, f"{place}: no unit {unit!r} of {quantity}")
    found = Entry(
        component=component,
        attributes=_attributes(record.get("attributes", {}), component, place),
        quantity=quantity,
        actions=_actions(record.get("action"), component, quantity, place),
        value=positive_of(record, "value", place),
        unit=unit,
        source=text_of(record, "source", place),
        publication=text_of(record, "publication", place) if "publication" in record else "",
        low=_optional(record, "low", place),
        high=_optional(record, "high", place),
        node_nm=_optional(record, "node_nm", place),
        voltage_v=_optional(record, "voltage_v", place),
        note=text_of(record, "note", place) if "note" in record else "",
    )
    _check_range(found, place)
    return found


def text_of(record: Mapping[str, object], name: str, place: str) -> str:
    """A field that must be a text which is not empty."""
    value = record[name]
    if not isinstance(value, str):
        raise EnergyError(f"{place}: {name} must be a text, not {value!r}")
    require(bool(value.strip()), f"{place}: {name} must not be empty")
    return value


def positive_of(record: Mapping[str, object], name: str, place: str) -> float:
    """A field that must be a finite number above zero."""
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EnergyError(f"{place}: {name} must be a number, not {value!r}")
    require(math.isfinite(value) and value > 0, f"{place}: {name} must be positive, not {value}")
    return float(value)


def _optional(record: Mapping[str, object], name: str, place: str) -> float | None:
    return positive_of(record, name, place) if name in record else None


def _check_range(entry: Entry, place: str) -> None:
    low, high = entry.low, entry.high
    require((low is None) == (high is None), f"{place}: low and high must come together")
    if low is not None and high is not None:
        require(
            low <= entry.value <= high and low < high,
            f"{place}: value must lie from low to high, not {entry.value:g} in {low:g} to {high:g}",
        )


def _attributes(given: object, component: str, place: str) -> dict[str, int | str]:
    if not isinstance(given, dict):
        raise EnergyError(f"{place}: attributes must be a table such as {{ bits = 8 }}")
    found: dict[str, int | str] = {}
    for name, value in cast("dict[str, object]", given).items():
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise EnergyError(f"{place}: {name} must be a whole number or a text, not {value!r}")
        require(isinstance(value, str) or value > 0, f"{place}: {name} must be positive")
        found[name] = value
    if component not in KINDS:
        return found
    known = _known_attributes(component)
    for name, value in found.items():
        require_known(name, known, f"{place}: {component} has no {name!r}")
        named = name == "interface"
        require(
            isinstance(value, str) == named,
            f"{place}: {name} must be a {'text' if named else 'whole number'}, not {value!r}",
        )
    for name in known:
        require(name in found or name in OPTIONAL, f"{place}: attribute {name} is missing")
    return found


def _known_attributes(kind: str) -> tuple[str, ...]:
    return ("access_bits", "interface") if kind == "dram" else KINDS[kind][0]


def _actions(given: object, component: str, quantity: str, place: str) -> tuple[str, ...]:
    if quantity != "energy":
        require(given is None, f"{place}: {quantity} has no action")
        return ()
    names = cast("list[object]", given) if isinstance(given, list) else [given]
    require(names != [None], f"{place}: action is missing")
    actions = tuple(name for name in names if isinstance(name, str) and name)
    require(
        0 < len(actions) == len(names),
        f"{place}: action must be a text or a list of texts, not {given!r}",
    )
    require(len(set(actions)) == len(actions), f"{place}: an action stands twice in {given!r}")
    if component in KINDS:
        known = KINDS[component][1]
        for name in actions:
            hint = nearest(name, known)
            require(name in known, f"{place}: {component} has no action {name!r}; {hint}")
    return actions
