"""Run a bench on emitted Verilog with cocotb on Verilator: the run that others can repeat."""

import pickle
from pathlib import Path

from archsim.files import scratch_folder
from archsim.wave_clock import WaveClock
from rtl.benches.bench import Bench, Outcome, ProtocolError
from rtl.benches.cocotb_build import WAVE_OPTIONS, build_simulator, run_simulator
from rtl.benches.cocotb_files import ANSWER_FILE, BENCH_FILE

DEFAULT_CLOCK = WaveClock(clock_hz=100e6)
"""Of runs that leave no wave."""

__all__ = ["run_cocotb"]


def run_cocotb(
    verilog: str,
    top: str,
    bench: Bench,
    *,
    waves: Path | None = None,
    saif: Path | None = None,
    clock: WaveClock = DEFAULT_CLOCK,
) -> Outcome:
    """Run `bench` on module `top` of `verilog`, in a simulator process of its own.

    Writes a wave to `waves` (`.fst` or `.vcd`), in the time of `clock`, or the toggles of every net
    to `saif` (`.saif`); a
    simulator writes but one kind, so both together are refused. The simulator is compiled once
    and kept. Raises `ValueError` if bench and core do not fit, `ProtocolError` if the core breaks
    the stream rule, `ToolchainError` if a tool is missing or fails.
    """
    if waves is not None and saif is not None:
        raise ValueError("waves and saif must not both be given")
    wave = waves or saif
    suffixes = (".fst", ".vcd") if waves is not None else (".saif",)
    if wave is not None and wave.suffix not in suffixes:
        raise ValueError(f"{wave.name} must end in {' or '.join(suffixes)}")
    if wave is not None and not wave.absolute().parent.is_dir():
        raise FileNotFoundError(f"no folder for {wave}")
    suffix = wave.suffix if wave is not None else ""
    assert suffix in WAVE_OPTIONS
    place = build_simulator(verilog, top, wave=suffix, unit=clock.unit if waves else "ps")
    with scratch_folder("archsim-cocotb") as folder:
        question, answer = folder / "bench.pickle", folder / "answer.pickle"
        question.write_bytes(pickle.dumps((bench, clock)))
        environment = {BENCH_FILE: str(question), ANSWER_FILE: str(answer)}
        if wave is not None:
            environment["WAVE_FILE"] = str(wave.resolve())
        module = "rtl.benches.cocotb_entry"
        run_simulator(place, top, module=module, folder=folder, environment=environment)
        found = pickle.loads(answer.read_bytes())
    if isinstance(found, (ProtocolError, ValueError)):
        raise found
    assert isinstance(found, Outcome)
    return found
