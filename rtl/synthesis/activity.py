"""Switching activity of the emitted Verilog: cheaper than a netlist, and without energies.

The RTL runs a case under cocotb on Verilator, which counts the toggles of every net; the run is
compared with the model like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.files import scratch_folder
from rtl.benches.cocotb_bench import run_cocotb
from rtl.conformance import Case, Verdict, bench_of, judge
from rtl.emit import emit
from rtl.synthesis.saif import read_saif

__all__ = ["RtlActivity", "rtl_activity"]


@dataclass(frozen=True, kw_only=True)
class RtlActivity:
    """Toggles per net and cycle by instance ("" for the core, "array.row_0.pe_0"), its own nets.

    cycles: of the run, its last idle ones among them.
    """

    cycles: int
    toggles_per_cycle: Mapping[str, float]
    verdict: Verdict


def rtl_activity(case: Case) -> RtlActivity:
    """Run a case on the emitted Verilog and read its activity.

    Raises `ToolchainError` if Verilator or what it needs is missing.
    """
    expected = case.answer()
    with scratch_folder("archsim-saif") as folder:
        path = folder / "activity.saif"
        bench = bench_of(case, expected)
        outcome = run_cocotb(emit(case.design, top="top").verilog, "top", bench, saif=path)
        found = read_saif(path).per_cycle(outcome.cycles)
    inside = {
        path.partition(".")[2]: rate
        for path, rate in found.items()
        if path.partition(".")[0] == "top"
    }
    return RtlActivity(
        cycles=outcome.cycles,
        toggles_per_cycle=inside,
        verdict=judge(case, expected, outcome),
    )
