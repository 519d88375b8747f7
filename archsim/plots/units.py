"""Units in which figures are read well, and numbers as texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount

_PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
    (1e-15, "f"),
    (1e-18, "a"),
)
_COUNTS = ((10**9, "billion "), (10**6, "million "), (10**3, "thousand "))
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit's name, and how many of the base unit it is."""

    name: str
    size: float

    def text(self, value: float, digits: int = 4) -> str:
        """A value in the base unit as a text, with so many significant digits at least."""
        return f"{significant(value / self.size, digits)} {self.name}"


def significant(value: float, digits: int = 4) -> str:
    """A number with so many significant digits, all of its whole part, and thousands marked."""
    if value == 0:
        return "0"
    whole = len(str(int(abs(value))))
    if whole >= digits:
        return f"{value:,.0f}"
    if abs(value) >= 1:
        return f"{value:,.{digits - whole}f}"
    return f"{value:#.{digits}g}"


def byte_unit(largest: float) -> Unit:
    """The unit in which `largest` bytes are read well."""
    for size, name in _BYTES:
        if largest >= size:
            return Unit(name=name, size=size)
    return Unit(name="bytes", size=1)


def count_unit(largest: float, what: str) -> Unit:
    """The unit in which `largest` things are read well: "million cycles"."""
    for size, name in _COUNTS:
        if largest >= size:
            return Unit(name=name + what, size=size)
    return Unit(name=what, size=1)


def si_unit(largest: float, symbol: str) -> Unit:
    """A symbol with the SI prefix in which `largest` is read well."""
    for size, prefix in _PREFIXES:
        if abs(largest) >= size:
            return Unit(name=prefix + symbol, size=size)
    return Unit(name=symbol, size=1)


def si_text(value: float, symbol: str) -> str:
    """A value in its own best unit: "1.234 mJ"."""
    return si_unit(value, symbol).text(value)


def byte_text(count: float) -> str:
    """A number of bytes in its own best unit: "1.234 MiB"."""
    return byte_unit(count).text(count)


def area_unit(largest_um2: float) -> Unit:
    """The unit in which an area given in µm² is read well."""
    if largest_um2 >= 1e4:
        return Unit(name="mm²", size=1e6)
    return Unit(name="µm²", size=1)


def energy_unit(account: EnergyAccount, largest: float) -> Unit:
    """The unit in which an energy of the account, given in the account's unit, is read well."""
    if account.unit == "pJ":
        found = si_unit(largest * 1e-12, "J")
        return Unit(name=found.name, size=found.size * 1e12)
    return si_unit(largest, account.unit)
