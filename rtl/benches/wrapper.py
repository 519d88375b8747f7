"""The C++ text that wraps a verilated core into a bench: drivers, monitors and the clock.

The bench itself (words, gaps, …) is handed over at run time, so one compiled library serves every
bench of a core. Names in the text: `Vtop` is Verilator's class; `BENCH_FST` and `BENCH_VCD` ask
for a wave.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rtl.benches.bench import RESET_CYCLES, StreamPort

__all__ = ["wrapper_text"]

TEMPLATE = Path(__file__).with_name("wrapper.cpp.in")


def wrapper_text(
    ports: Sequence[StreamPort],
    probes: Sequence[tuple[str, int]],
    members: Mapping[str, str],
    idle: Sequence[str] = (),
) -> str:
    """The wrapper of a core with these streams and probes.

    `members` maps a Verilog port's name to its member of `Vtop`; of `clk` and `rst` either may be
    missing, as in a core without registers.  idle: inputs that are left at 0.
    """
    make, drive, sample = [], [], []
    declare = []
    make += [f"        top.{members[name]} = 0;" for name in idle]
    for number, port in enumerate(ports):
        kind = "Input" if port.direction == "i" else "Output"
        wires = [members[f"{port.name}__{part}"] for part in ("payload", "valid", "ready")]
        top_mask = (1 << ((port.bits - 1) % 8 + 1)) - 1
        declare.append(f"    {kind}<{port.word_bytes}, {top_mask}> p{number};")
        payload = f"reinterpret_cast<uint8_t*>(&top.{wires[0]})"
        make.append(f"        p{number}.attach({payload}, &top.{wires[1]}, &top.{wires[2]});")
        make.append(f"        ports[{number}] = &p{number};")
        drive.append(f"        p{number}.drive(cycle);")
        sample.append(f"        broken |= p{number}.sample(cycle, pending);")
    fields = {
        "PORTS": str(len(ports)),
        "RESET_CYCLES": str(RESET_CYCLES),
        "DECLARE": "\n".join(declare),
        "MAKE": "\n".join(make),
        "DRIVE": "\n".join(drive),
        "SAMPLE": "\n".join(sample),
        "CLOCK": f"top.{members['clk']} = level;" if "clk" in members else "(void)level;",
        "RESET": f"top.{members['rst']} = level;" if "rst" in members else "(void)level;",
        "PROBES": "\n".join(
            f"        out[{number}] = static_cast<uint64_t>(top.{members[name]});"
            for number, (name, _) in enumerate(probes)
        ),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for field, value in fields.items():
        text = text.replace(f"@{field}@", value)
    return text
