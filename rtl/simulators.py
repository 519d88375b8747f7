"""The simulators that can run a design's RTL, behind one call."""

from typing import Literal

from archsim.machine.design import Design
from rtl.benches.bench import Bench, Outcome
from rtl.conformance import Runner
from rtl.registry import core_of, verification_of

Simulator = Literal["amaranth", "verilator", "cocotb"]


def runner(design: Design, simulator: Simulator) -> Runner:
    """Something that runs benches on the RTL of `design`.

    amaranth: Amaranth's own simulator, for small designs; verilator: the emitted Verilog, stepped
    in batches; cocotb: the emitted Verilog, driven by cocotb on Verilator.
    """
    if simulator == "amaranth":
        from rtl.benches.amaranth_bench import Elaborated

        return Elaborated(lambda: core_of(design)).run
    from rtl.emit import emit

    verilog = emit(design).verilog
    if simulator == "verilator":
        from rtl.benches.verilated import Verilated

        watches = verification_of(design).watches(design)
        return Verilated(verilog, top="top", watches=watches).run
    return _CocotbRunner(verilog)


class _CocotbRunner:
    def __init__(self, verilog: str) -> None:
        self.verilog = verilog

    def __call__(self, bench: Bench) -> Outcome:
        from rtl.benches.cocotb_bench import run_cocotb

        return run_cocotb(self.verilog, "top", bench)
