"""The headline figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.plots.units import area_unit, byte_text, energy_unit, si_text, significant

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount
    from archsim.result import NetworkResult


@dataclass(frozen=True, kw_only=True)
class Card:
    """One figure: `text` is shown, `value` is exact (in cycles, s, bytes, J, J·s, W, µm²)."""

    name: str
    value: float
    text: str
    note: str


def cards(result: NetworkResult, account: EnergyAccount | None) -> list[Card]:
    """Time and traffic; energy and area where they are known."""
    found = _time(result)
    return found if account is None else [*found, *_cost(account)]


def _time(result: NetworkResult) -> list[Card]:
    moved = sum(result.bytes_moved.values())
    peak = result.layers[0].macs_per_cycle if result.layers else 0
    intensity = significant(result.macs / moved, 3) if moved else "0"
    return [
        Card(
            name="Cycles",
            value=result.cycles,
            text=f"{result.cycles:,}",
            note=f"{result.macs:,} MACs",
        ),
        Card(
            name="Time",
            value=result.seconds,
            text=si_text(result.seconds, "s"),
            note=f"at {result.clock_hz / 1e6:,.6g} MHz",
        ),
        Card(
            name="Utilisation",
            value=result.utilization,
            text=f"{100 * result.utilization:.1f} %",
            note=f"of {peak:,} MACs a cycle",
        ),
        Card(
            name="Off-chip traffic",
            value=moved,
            text=byte_text(moved),
            note=f"{intensity} MACs a byte",
        ),
    ]


def _cost(account: EnergyAccount) -> list[Card]:
    to_joules = 1e-12 if account.unit == "pJ" else 1.0
    symbol = "J" if account.unit == "pJ" else account.unit
    macs = sum(account.macs)
    each = account.total / macs if macs else 0.0
    found = [
        Card(
            name="Energy",
            value=account.total * to_joules,
            text=energy_unit(account, account.total).text(account.total),
            note=f"{energy_unit(account, each).text(each, 3)} a MAC"
            if account.unit == "pJ"
            else f"{significant(each, 3)} times its MACs alone",
        ),
        Card(
            name="Energy-delay product",
            value=account.edp * to_joules,
            text=si_text(account.edp * to_joules, f"{symbol}·s"),
            note="energy × time",
        ),
    ]
    if account.power_w is not None:
        text = si_text(account.power_w, "W")
        note = "off-chip memory included"
        found.append(Card(name="Mean power", value=account.power_w, text=text, note=note))
    if account.area_um2 is not None:
        text = area_unit(account.area_um2).text(account.area_um2)
        note = f"on chip, {account.technology.node_nm:g} nm"
        found.append(Card(name="Area", value=account.area_um2, text=text, note=note))
    return found
