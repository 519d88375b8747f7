"""`archsim emit`: emit a design as Verilog, with a manifest."""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archsim.cli.options import DesignName, Force, Settings
from archsim.cli.output import progress_bar, say
from archsim.errors import require
from archsim.files import require_new, write_new
from archsim.machine.registry import load_design, with_settings

if TYPE_CHECKING:
    from archsim.machine.design import Design
    from rtl.emit import Emitted


def emit_design(  # noqa: PLR0913
    design: DesignName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.v", help="A new file; without it, to stdout."),
    ] = None,
    settings: Settings = None,
    top: Annotated[str, typer.Option(help="The name of the top module.")] = "top",
    interface: Annotated[
        str,
        typer.Option(help="streams: the core's own; axi: AXI4-Stream and AXI4-Lite; link: bytes."),
    ] = "streams",
    bench: Annotated[
        bool,
        typer.Option("--test-bench", help="A self-checking bench in plain Verilog beside it."),
    ] = False,
    force: Force = False,
) -> None:
    """Emit a design as Verilog, with a manifest of its parameters and ports beside it.

    The file is what `archsim verify --simulator verilator` proves equal to the simulation.
    With --interface axi, which needs -o, the map of its registers lies beside it too: as
    FILE.h for C, FILE.rdl in SystemRDL, FILE.html to read; FILE.sdc says the clock that the
    simulation counts in, FILE.f and FILE.core (FuseSoC) list the sources; the manifest has the map
    and the SHA-256 of each file.
    With --test-bench, FILE_tb.v offers a layer to the bare core and compares every word that leaves
    with the model's (FILE_PORT.hex), with random stalls, in Icarus or Verilator, without archsim.

    Example:

    \b
      archsim emit edge-16 --set rows=8 --set columns=8 -o core.v
      archsim emit edge-16 --interface axi -o npu.v
      archsim emit edge-16 --set rows=4 --set columns=4 --test-bench -o core.v
    """
    from rtl.emit import emit

    chosen = with_settings(load_design(design), settings or [])
    require(
        not bench or (output is not None and interface == "streams"),
        "--test-bench is of bare streams, and makes several files: name the first with -o",
    )
    if output is None:
        require(interface != "axi", "--interface axi makes several files: name the first with -o")
        with progress_bar(f"emitting {chosen.summary}"):
            verilog = emit(chosen, top=top, interface=interface).verilog
        print(verilog, end="")
        return
    require_new(output)
    manifest = output.with_suffix(".json")
    require(output.suffix in (".v", ".sv"), f"{output} must end in .v")
    require_new(manifest)
    with progress_bar(f"emitting {chosen.summary}"):
        emitted = emit(chosen, top=top, interface=interface)
    lines = emitted.verilog.count("\n")
    if interface == "axi":
        files = axi_files(chosen, emitted, output, top)
        write_new(files)
        names = ", ".join(path.name for path in files if path != output)
        say(f"{output}: {lines:,} lines of Verilog; beside it {names}")
        return
    files = {output: emitted.verilog, manifest: emitted.manifest_json() + "\n"}
    if bench:
        files |= _bench_files(chosen, output, top)
    write_new(files)
    say(f"{output}: {lines:,} lines of Verilog; {manifest}: parameters and ports")


def _bench_files(design: "Design", output: Path, top: str) -> dict[Path, str]:
    from rtl.test_bench import test_bench

    made = test_bench(design, top, output.stem)
    files = {output.with_name(name): text for name, text in made.items()}
    for path in files:
        require_new(path)
    return files


def axi_files(design: "Design", emitted: "Emitted", output: Path, top: str) -> dict[Path, str]:
    """The Verilog, what describes its registers and sources, and the manifest with hashes."""
    from rtl.axi.documents import c_header, page, system_rdl
    from rtl.axi.register_map import register_map

    registers = register_map(design)
    texts = {
        output: emitted.verilog,
        output.with_suffix(".h"): c_header(top, registers),
        output.with_suffix(".rdl"): system_rdl(top, registers),
        output.with_suffix(".html"): page(design.summary, registers),
        output.with_suffix(".sdc"): _constraints(design, emitted.manifest["clock"]["signal"]),
        output.with_suffix(".f"): f"{output.name}\n",
        output.with_suffix(".core"): FUSESOC.format(name=output.stem, top=top, file=output.name),
    }
    for path in texts:
        require_new(path)
    hashes = {path.name: sha256(text.encode()).hexdigest() for path, text in texts.items()}
    whole = {**emitted.manifest, "sha256": hashes}
    return texts | {output.with_suffix(".json"): json.dumps(whole, indent=2) + "\n"}


def _constraints(design: "Design", clock: str) -> str:
    """Of the one clock; a period that any chip can meet is for whoever knows the chip."""
    period = 1e9 / design.clock_hz
    return (
        f"# {design.clock_hz / 1e6:g} MHz, the clock of the simulation; a chip may allow less.\n"
        f"create_clock -name {clock} -period {period:.3f} [get_ports {clock}]\n"
    )


FUSESOC = """\
CAPI=2:
name: archsim:cores:{name}:0
filesets:
  rtl:
    files: [{file}]
    file_type: verilogSource
  constraints:
    files: [{name}.sdc]
    file_type: SDC
targets:
  default:
    filesets: [rtl, constraints]
    toplevel: {top}
"""
"""A core file of FuseSoC, CAPI2."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("emit")(emit_design)
