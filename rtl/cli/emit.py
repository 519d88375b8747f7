"""`archsim emit`: a design as Verilog."""

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.output import write_new
from archsim.designs.registry import load_design, with_settings
from archsim.errors import InputError


def emit_design(
    design: Annotated[str, typer.Argument(help="A registered design or a TOML file.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A new .v file; without it, to stdout.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change the design first: rows=16.")
    ] = None,
    top: Annotated[str, typer.Option(help="The name of the top module.")] = "top",
) -> None:
    """Emit a design as Verilog, with a manifest of its parameters and ports beside it.

    The file is what `archsim verify --simulator verilator` proves equal to the simulation.

    Example:  archsim emit edge-16 --set rows=8 --set columns=8 -o core.v
    """
    from rtl.emit import emit

    if not top.isidentifier():
        raise InputError(f"top must be a Verilog identifier, not {top!r}")
    chosen = with_settings(load_design(design), settings or [])
    if output is None:
        print(emit(chosen, top=top).verilog)
        return
    manifest = output.with_suffix(".json")
    for path in (output, manifest):
        if path.exists():
            raise InputError(f"{path} exists; give a file that does not")
    if not output.parent.is_dir():
        raise InputError(f"{output} cannot be written: {output.parent} is not a folder")
    emitted = emit(chosen, top=top)
    write_new(output, emitted.verilog)
    write_new(manifest, emitted.manifest_json())
    lines = emitted.verilog.count("\n")
    typer.echo(f"{output}: {lines:,} lines of Verilog; {manifest}: parameters and ports", err=True)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("emit")(emit_design)
