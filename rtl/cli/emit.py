"""`archsim emit`: emit a design as Verilog, with a manifest."""

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import DesignName, Force, Settings
from archsim.cli.output import progress_bar, say
from archsim.errors import require
from archsim.files import require_new, write_new
from archsim.machine.registry import load_design, with_settings


def emit_design(
    design: DesignName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.v", help="A new file; without it, to stdout."),
    ] = None,
    settings: Settings = None,
    top: Annotated[str, typer.Option(help="The name of the top module.")] = "top",
    force: Force = False,
) -> None:
    """Emit a design as Verilog, with a manifest of its parameters and ports beside it.

    The file is what `archsim verify --simulator verilator` proves equal to the simulation.

    Example:

    \b
      archsim emit edge-16 --set rows=8 --set columns=8 -o core.v
    """
    from rtl.emit import emit

    chosen = with_settings(load_design(design), settings or [])
    if output is None:
        with progress_bar(f"emitting {chosen.summary}"):
            verilog = emit(chosen, top=top).verilog
        print(verilog, end="")
        return
    require_new(output)
    manifest = output.with_suffix(".json")
    require(output.suffix in (".v", ".sv"), f"{output} must end in .v")
    require_new(manifest)
    with progress_bar(f"emitting {chosen.summary}"):
        emitted = emit(chosen, top=top)
    write_new({output: emitted.verilog, manifest: emitted.manifest_json() + "\n"})
    lines = emitted.verilog.count("\n")
    say(f"{output}: {lines:,} lines of Verilog; {manifest}: parameters and ports")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("emit")(emit_design)
