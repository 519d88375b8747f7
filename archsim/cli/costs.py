"""From `--technology`, `--voltage` and `--sram-voltage` to an energy account."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.energy import DEFAULT_TECHNOLOGY, account
from archsim.energy_account import EnergyAccount
from archsim.errors import InputError, require
from archsim.result import NetworkResult
from archsim.technologies import load_technology
from energy_models.errors import EnergyError
from energy_models.technology import Technology

NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a user says of energy: a technology by name or file, "none", or nothing."""

    technology: str | None = None
    voltage_v: float | None = None
    sram_relative_voltage: float = 1.0

    @property
    def chosen(self) -> bool:
        """Whether the user asked for anything: then what cannot be priced is an error."""
        return (
            self.technology is not None
            or self.voltage_v is not None
            or self.sram_relative_voltage != 1
        )

    def check(self) -> None:
        """Refuse bad options before the simulation.  Raises `InputError`."""
        require(
            self.technology != NONE or (self.voltage_v is None and self.sram_relative_voltage == 1),
            "--voltage and --sram-voltage need a technology, not --technology none",
        )
        if self.technology != NONE:
            self.load()

    def load(self) -> Technology:
        """The technology at the voltages asked for.  Raises `InputError`."""
        try:
            return load_technology(
                self.technology or DEFAULT_TECHNOLOGY,
                voltage_v=self.voltage_v,
                sram_relative_voltage=self.sram_relative_voltage,
            )
        except EnergyError as error:
            raise InputError(str(error)) from error

    def account(self, result: NetworkResult) -> tuple[EnergyAccount | None, str]:
        """The account, or None and why not: a default that does not fit is no reason to fail.

        Raises `InputError` where the user chose a technology that cannot price the design.
        """
        if self.technology == NONE:
            return None, ""
        try:
            return account(result, self.load()), ""
        except InputError as error:
            if self.chosen:
                raise
            return None, str(error)
