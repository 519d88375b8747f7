"""One case with both its waves: what the RTL did, and beside it what the model says."""

from pathlib import Path

from archsim.wave_clock import WaveClock
from archsim.waves import Waves
from rtl.benches.cocotb_bench import run_cocotb
from rtl.conformance import Case, Verdict, check
from rtl.emit import emit


def check_with_waves(case: Case, folder: Path, *, suffix: str = ".fst") -> Verdict:
    """Run a case in cocotb and compare, as `rtl.conformance.check`; leave the waves in `folder`.

    rtl.fst (or .vcd, as `suffix` says) shows every signal of the RTL, model.vcd the crossings of
    the model.  Time is of the design's clock in both, and a word crosses at the same time in both.
    """
    verilog = emit(case.design).verilog
    expected = case.answer()
    model = folder / "model.vcd"
    with model.open("w", encoding="utf-8") as file, Waves(case.design, file) as waves:
        waves.add_layer(case.name, expected.transfers, expected.cycles)
    rtl, clock = folder / f"rtl{suffix}", WaveClock(clock_hz=case.design.clock_hz)
    return check(case, lambda bench: run_cocotb(verilog, "top", bench, waves=rtl, clock=clock))
