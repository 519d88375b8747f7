"""Estimators over published tables: what is printed first, then what may be derived from it.

Derived, and said so in `Quantity.how`, is only:

multiplier, adder   a power law in a_bits × b_bits, or in bits, between the two printed sizes around
sram                a power law in capacity between the two printed memories around; energy of an
                    access in proportion to the word's bits, but of no fewer than 8; a memory
                    smaller than all printed as the smallest, of which a part is used
register            as many one-bit registers as it has bits
dram                the figure divided by the bits that it is over
mac                 multiplier and adder, where a table has no mac

Nothing is extrapolated, and nothing is zero because it is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from energy_models.component import Component
from energy_models.entry import Entry
from energy_models.errors import EnergyError, nearest
from energy_models.estimator import Quantity
from energy_models.interpolation import between, nearest_entries
from energy_models.table import Table, load_table

MAC_ACTIONS = {"mac": ("multiply", "add"), "": ("", "")}
"""What a mac's action, or "" for area and leakage, is of its multiplier and its adder."""


class TableEstimator:
    """The figures of one table, an `energy_models.estimator.Estimator`.

    Entries with a node or voltage of their own are left to `Table.find`.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._entries = tuple(entry for entry in table.entries if not entry.own_point)

    @property
    def name(self) -> str:
        """The table's."""
        return self.table.name

    @property
    def node_nm(self) -> float:
        """Technology node of the figures."""
        return self.table.node_nm

    @property
    def voltage_v(self) -> float:
        """Supply voltage of the figures; NaN where the publication does not state it."""
        return self.table.voltage_v

    @property
    def unit(self) -> str:
        """Of the energies: "pJ", or "MAC" for a table relative to a multiply-accumulate."""
        return self.table.unit

    def energy_pj(self, component: Component, action: str) -> Quantity:
        """Energy of one event, in `unit`.  Raises `EnergyError` where none may be derived."""
        return self._figure(component, "energy", action)

    def area_um2(self, component: Component) -> Quantity:
        """Area.  Raises `EnergyError` where none may be derived."""
        return self._figure(component, "area", "")

    def leakage_mw(self, component: Component) -> Quantity:
        """Static power.  Raises `EnergyError` where none may be derived."""
        return self._figure(component, "leakage", "")

    def _figure(self, component: Component, quantity: str, action: str) -> Quantity:
        found = self._derived(component, quantity, action)
        if found is None:
            raise EnergyError(self._refusal(component, quantity, action))
        return found

    def _derived(self, component: Component, quantity: str, action: str) -> Quantity | None:
        """What is printed, else what may be derived, else None."""
        alike = self._alike(component, quantity, action)
        kind = component.kind
        if kind == "dram":
            return self._per_bit(component, alike)
        if kind == "sram" and _many_ports(component):
            return None
        if exact := [entry for entry in alike if _states(entry, component)]:
            return self.table.quantity(exact[0]).times(1, _unstated(exact[0], component))
        if kind == "register":
            return self._bit_by_bit(component, alike)
        if kind == "mac" and not alike:
            return self._composed(component, quantity, action)
        if kind in ("multiplier", "adder", "sram"):
            return self._between(component, quantity, alike)
        return None

    def _alike(self, component: Component, quantity: str, action: str) -> list[Entry]:
        return [
            entry
            for entry in self._entries
            if entry.component == component.kind
            and entry.quantity == quantity
            and action in (entry.actions or ("",))
        ]

    def _per_bit(self, component: Component, alike: Sequence[Entry]) -> Quantity | None:
        if len(alike) > 1:
            names = ", ".join(f"dram:{entry.attributes.get('interface')}" for entry in alike)
            raise EnergyError(
                f"{component.name}: table {self.name} has several DRAM interfaces; "
                f"choose a source such as {names}"
            )
        return per_bit(self.table, alike[0]) if alike else None

    def _bit_by_bit(self, component: Component, alike: Sequence[Entry]) -> Quantity | None:
        bits = component.attributes["bits"]
        one = [entry for entry in alike if entry.attributes["bits"] == 1]
        how = f"composed of {bits} one-bit registers"
        return self.table.quantity(one[0]).times(bits, how) if one else None

    def _between(
        self, component: Component, quantity: str, alike: Sequence[Entry]
    ) -> Quantity | None:
        found = between(component.kind, component.attributes, quantity, alike)
        if found is None:
            return None
        printed = [self.table.quantity(entry) for entry in (found.low, found.high)]
        taken = dict.fromkeys(figure.how for figure in printed if figure.how)
        how = "; ".join((found.how, *taken))
        whole = Quantity(value=found.value, source=_sources(printed), how=how)
        return whole.times(1, _unstated(found.low, component))

    def _composed(self, component: Component, quantity: str, action: str) -> Quantity | None:
        if action not in MAC_ACTIONS:
            return None
        operand_bits = component.attributes["operand_bits"]
        sizes = {
            "multiplier": {"a_bits": operand_bits, "b_bits": operand_bits},
            "adder": {"bits": component.attributes["accumulator_bits"]},
        }
        parts = [
            (replace(component, kind=kind, attributes=given, actions={}), event)
            for (kind, given), event in zip(sizes.items(), MAC_ACTIONS[action], strict=True)
        ]
        if not all(self._alike(part, quantity, event) for part, event in parts):
            return None
        figures = [self._figure(part, quantity, event) for part, event in parts]
        how = " and ".join(
            f"{part.text}{f' ({figure.how})' if figure.how else ''}"
            for (part, _), figure in zip(parts, figures, strict=True)
        )
        return Quantity(
            value=sum(figure.value for figure in figures),
            source=_sources(figures),
            how=f"composed of {how}",
        )

    def _refusal(self, component: Component, quantity: str, action: str) -> str:
        wanted = " ".join(word for word in (component.text, action, quantity) if word)
        text = f"{component.name}: table {self.name} has no {wanted}"
        if component.kind == "sram" and _many_ports(component):
            return f"{text}: its memories have at most one port to read and one to write"
        kin = [
            entry
            for entry in self._entries
            if (entry.component, entry.quantity) == (component.kind, quantity)
        ]
        if kin:
            near = nearest_entries(component.kind, component.attributes, kin)
            return f"{text}; nearest: {near}"
        names = dict.fromkeys(e.component for e in self._entries if e.quantity == quantity)
        return f"{text}; it has the {quantity} of: {', '.join(names) or 'nothing'}"


class DramEstimator:
    """Energy per bit of an off-chip interface, from the shipped table "dram".

    An interface has no technology node (`node_nm` is NaN): its figures must not be scaled.
    Raises `EnergyError` for an interface the table does not have.
    """

    def __init__(self, interface: str) -> None:
        self.table = load_table("dram")
        entries = {str(entry.attributes["interface"]): entry for entry in self.table.entries}
        if interface.lower() not in entries:
            raise EnergyError(
                f"no DRAM interface {interface!r}; {nearest(interface.lower(), entries)}"
            )
        self._entry = entries[interface.lower()]

    @property
    def name(self) -> str:
        """As a technology names it: "dram:hbm2"."""
        return f"dram:{self._entry.attributes['interface']}"

    @property
    def node_nm(self) -> float:
        """NaN: the figures belong to an interface."""
        return math.nan

    @property
    def voltage_v(self) -> float:
        """Supply voltage that the interface's standard sets."""
        return self._entry.voltage_v or self.table.voltage_v

    def energy_pj(self, component: Component, action: str) -> Quantity:
        """Energy of one bit read or written."""
        if component.kind != "dram" or action not in self._entry.actions:
            raise EnergyError(
                f"{component.name}: {self.name} has no {component.text} {action} energy; "
                f"it has: dram {'/'.join(self._entry.actions)} energy"
            )
        return per_bit(self.table, self._entry)

    def area_um2(self, component: Component) -> Quantity:
        """None is known: raises `EnergyError`."""
        raise EnergyError(f"{component.name}: {self.name} is off the chip and has no area")

    def leakage_mw(self, component: Component) -> Quantity:
        """None is known: raises `EnergyError`."""
        raise EnergyError(f"{component.name}: {self.name} is off the chip and has no leakage")


def per_bit(table: Table, entry: Entry) -> Quantity:
    """A DRAM entry's figure, one bit of it."""
    bits = int(entry.attributes["access_bits"])
    how = "" if bits == 1 else f"{entry.value:g} {entry.unit} over {bits} bits"
    return table.quantity(entry).times(1 / bits, how)


def _sources(figures: Sequence[Quantity]) -> str:
    """The sources of several figures, each once."""
    return "; ".join(dict.fromkeys(figure.source for figure in figures))


def _unstated(entry: Entry, component: Component) -> str:
    names = [name for name in component.attributes if name not in entry.attributes]
    return f"{', '.join(names)} not stated there" if names else ""


def _states(entry: Entry, component: Component) -> bool:
    return all(component.attributes.get(k) == v for k, v in entry.attributes.items())


def _many_ports(component: Component) -> bool:
    return max(component.attributes["read_ports"], component.attributes["write_ports"]) > 1
