"""Toggles of a netlist beside those that Verilator counts in the RTL."""

from __future__ import annotations

from pathlib import Path

from rtl.benches.cocotb_bench import run_cocotb
from rtl.conformance import Case, bench_of
from rtl.emit import emit
from rtl.synthesis.flat_netlist import FlatNetlist
from rtl.synthesis.gate_simulation import run_gates
from rtl.synthesis.saif import read_saif

RESET_TOGGLES = 2
"""Of a net, in the reset, which only one of them counts."""


def same_toggles(case: Case, flat: FlatNetlist, folder: Path) -> int:
    """How many bits of module ports agree, in all instances; AssertionError for one that does
    not."""
    path = folder / "run.saif"
    bench = bench_of(case, case.answer())
    run_cocotb(emit(case.design).verilog, "top", bench, saif=path)
    outside = read_saif(path).toggles
    _, simulation = run_gates(flat, bench, window_cycles=bench.max_cycles)
    compared = 0
    for instance in flat.instances:
        nets = outside.get(".".join(["top", *filter(None, [instance.path])]), {})
        for port, bits in instance.gates.ports.items():
            for place, bit in enumerate(bits):
                name = port if len(bits) == 1 else f"{port}[{place}]"
                if name in nets and bit in instance.nets and port not in ("clk", "rst"):
                    counted = int(simulation.toggles[instance.nets[bit]])
                    assert abs(nets[name] - counted) <= RESET_TOGGLES, (instance.path, name)
                    compared += 1
    return compared
