"""Dynamic power of a design's netlist by module, from a layer that it really computes.

The netlist of `archsim synth` is simulated gate by gate with the bench of the conformance suite:
every transfer is compared with the model, so that the figures are of a netlist that is right.
Energy is the toggles of every net times what a toggle costs (`rtl.synthesis.gates`).

Not in it: wires, glitches (delays are zero), a clock tree, memory macros (their energy is that of
an SRAM model, `energy_models.sram`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archsim.errors import InputError
from archsim.files import scratch_folder
from archsim.machine.design import Design
from archsim.machine.registry import design_name
from rtl.conformance import Case, Verdict, bench_of, judge
from rtl.registry import verification_of
from rtl.synthesis.flat_netlist import FlatNetlist, Instance, flatten
from rtl.synthesis.gate_simulation import GateSimulation, idle, run_gates
from rtl.synthesis.gates import Energy
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library
from rtl.synthesis.synthesize import synthesize
from rtl.toolchain import run_yosys

__all__ = ["ModulePower", "PowerMeter", "PowerReport", "netlist_modules", "refuse_hopeless"]

Progress = Callable[[str, int, int | None], object]

MOST_GATE_CYCLES = 20e9
"""Gates times cycles that are simulated: some ten minutes."""

GATE_CYCLES_PER_SECOND = 40e6

MOST_GATES = 2_000_000
"""A netlist takes some 2 kB of memory for each while it is read."""


@dataclass(frozen=True, kw_only=True)
class ModulePower:
    """One instance in the hierarchy, by itself (what is below it left out).

    energy: over the whole run. toggles: of its nets, the clock's left out; nets: how many.
    """

    path: str
    module: str
    cells: int
    registers: int
    area_um2: float
    leakage_mw: float
    nets: int
    toggles: int
    energy: Energy


@dataclass(frozen=True, kw_only=True)
class PowerReport:
    """Energy of a run by module. path "" is the whole core; "array" all that is in that instance.

    macs: useful multiply-accumulates, those that a sparse core skips among them. verdict: how the
    netlist compares with the model, None for a core that had nothing to do.
    """

    design_name: str
    library: str
    workload: str
    cycles: int
    macs: int
    modules: tuple[ModulePower, ...]
    verdict: Verdict | None

    def below(self, path: str = "") -> tuple[ModulePower, ...]:
        """An instance and all in it. Raises `InputError` if there is none of that path."""
        found = tuple(
            one for one in self.modules if path in ("", one.path) or one.path.startswith(f"{path}.")
        )
        if not found:
            tops = ", ".join(one.path for one in self.modules if one.path and "." not in one.path)
            raise InputError(f"the netlist has no instance {path!r}; in the core are {tops}")
        return found

    def energy(self, path: str = "") -> Energy:
        """Energy of the run."""
        return sum((one.energy for one in self.below(path)), Energy())

    def energy_per_cycle_pj(self, path: str = "") -> float:
        return self.energy(path).total_pj / self.cycles

    def energy_per_mac_pj(self, path: str = "") -> float:
        """Per useful multiply-accumulate of the layer; NaN if there is none."""
        return self.energy(path).total_pj / self.macs if self.macs else float("nan")

    def activity(self, path: str = "") -> float:
        """Toggles per net and cycle, the clock left out."""
        chosen = self.below(path)
        nets = sum(one.nets for one in chosen)
        return sum(one.toggles for one in chosen) / (nets * self.cycles) if nets else 0.0

    def record(self) -> dict[str, Any]:
        """As plain data: the whole, and each instance with all in it."""
        return {
            "design": self.design_name,
            "library": self.library,
            "workload": self.workload,
            "cycles": self.cycles,
            "macs": self.macs,
            "transfers_compared": self.verdict.transfers if self.verdict else 0,
            "netlist_equals_model": self.verdict.equal if self.verdict else None,
            "modules": [self._row(one) for one in self.modules],
        }

    def _row(self, one: ModulePower) -> dict[str, Any]:
        total = self.energy(one.path)
        return {
            "path": one.path,
            "module": one.module,
            "energy_per_cycle_pj": self.energy_per_cycle_pj(one.path),
            "energy_per_mac_pj": self.energy_per_mac_pj(one.path) if self.macs else None,
            "switching_pj": total.switching_pj / self.cycles,
            "internal_pj": total.internal_pj / self.cycles,
            "clock_pj": total.clock_pj / self.cycles,
            "activity": self.activity(one.path),
            "leakage_mw": sum(each.leakage_mw for each in self.below(one.path)),
        }


@dataclass(frozen=True, kw_only=True)
class PowerMeter:
    """A design's netlist, ready to run layers. `progress` is told phase, done, and of how many."""

    design: Design
    library: CellLibrary
    flat: FlatNetlist
    progress: Progress = lambda phase, done, total: None

    @classmethod
    def of(
        cls,
        design: Design,
        library: Path = DEFAULT_LIBRARY,
        *,
        progress: Progress = lambda phase, done, total: None,
    ) -> PowerMeter:
        """Map a design to a Liberty file's cells; the netlist is kept between processes.

        Raises as `rtl.synthesis.synthesize` does, `EnergyError` for a netlist that cannot be
        simulated (latches, asynchronous resets), and `InputError` for one of too many gates.
        """
        cells = read_library(library)
        outcome = synthesize(design, library, progress=progress)
        _refuse_large(design, outcome.synthesis.total.cells)
        progress("reading the netlist", 0, None)
        flat = flatten(netlist_modules(outcome.netlist), cells)
        return cls(design=design, library=cells, flat=flat, progress=progress)

    def run(self, case: Case) -> PowerReport:
        """Run a case; energy from its first cycle to its last.

        Raises `InputError` for a case that would take too long.
        """
        expected = case.answer()
        _refuse_long(case, expected.cycles, len(self.flat.logic.outputs))
        outcome, simulation = run_gates(
            self.flat,
            bench_of(case, expected),
            window_cycles=expected.cycles,
            progress=lambda cycle: self.progress("simulating", cycle, expected.cycles),
        )
        verdict = judge(case, expected, outcome)
        return self._report(simulation, f"layer {case.name}", case.macs, verdict)

    def idle(self, cycles: int) -> PowerReport:
        """The core after reset, with nothing offered and nothing to do."""
        return self._report(idle(self.flat, cycles), "idle", 0, None)

    def _report(
        self, simulation: GateSimulation, workload: str, macs: int, verdict: Verdict | None
    ) -> PowerReport:
        flat, toggles = self.flat, simulation.toggles.copy()
        clock = flat.ports["clk"][0]
        toggles[clock] = 2 * simulation.cycles
        return PowerReport(
            design_name=design_name(self.design),
            library=self.library.name,
            workload=workload,
            cycles=simulation.cycles,
            macs=macs,
            modules=tuple(
                _module_power(one, toggles, clock)
                for one in sorted(flat.instances, key=lambda one: one.path.split("."))
            ),
            verdict=verdict,
        )


def refuse_hopeless(case: Case) -> None:
    """Raise `InputError` for a case that is too large whatever it is mapped to."""
    gates = verification_of(case.design).least_gates(case.design)
    _refuse_large(case.design, gates, "at least ")
    _refuse_long(case, case.answer().cycles, gates, "at least")


def _refuse_large(design: Design, gates: int, how_sure: str = "") -> None:
    if gates > MOST_GATES:
        raise InputError(
            f"{design_name(design)} has {how_sure}{gates:,} gates, and netlists of at most "
            f"{MOST_GATES:,} are simulated; choose a smaller design"
        )


def _refuse_long(case: Case, cycles: int, gates: int, how_sure: str = "about") -> None:
    if gates * cycles > MOST_GATE_CYCLES:
        minutes = gates * cycles / GATE_CYCLES_PER_SECOND / 60
        raise InputError(
            f"layer {case.name} takes {cycles:,} cycles, {how_sure} {minutes:,.0f} minutes "
            f"on {gates:,} gates; choose a layer of fewer than {int(MOST_GATE_CYCLES / gates):,} "
            f"cycles, or a smaller design"
        )


def _module_power(instance: Instance, toggles: Any, clock: int) -> ModulePower:
    gates = instance.gates
    counted = instance.costed[instance.costed != clock]
    return ModulePower(
        path=instance.path,
        module=instance.module,
        cells=len(gates.cells),
        registers=gates.registers,
        area_um2=gates.area_um2,
        leakage_mw=gates.leakage_mw,
        nets=len(counted),
        toggles=int(toggles[counted].sum()),
        energy=instance.energy(toggles),
    )


def netlist_modules(netlist: str) -> Mapping[str, Any]:
    """Structural Verilog as the modules of Yosys' JSON."""
    with scratch_folder("archsim-power") as folder:
        (folder / "netlist.v").write_text(netlist, encoding="utf-8")
        run_yosys(["read_verilog netlist.v", "write_json netlist.json"], folder)
        return json.loads((folder / "netlist.json").read_text(encoding="utf-8"))["modules"]
