"""`archsim fpga`: designs on FPGAs: placed, built for a board, spoken to.

place: resources and clock of a design, or of Boveda's units, on a chip.
"""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import AsJson, Force, Settings
from archsim.cli.output import progress_bar
from archsim.errors import require
from archsim.files import new_folder
from archsim.machine.registry import load_design, with_settings
from fpga import tables
from fpga.board_cli import build_for_board, run_on_board
from fpga.devices import Target
from fpga.fit import check_design
from fpga.fit_cli import fit_board
from fpga.nextpnr import nextpnr_version
from fpga.place import place
from fpga.report import FpgaReport
from fpga.units import TOP, boveda_units
from rtl.emit import emit
from workloads.names import printable

BOVEDA = "boveda"


def place_design(  # noqa: PLR0913
    design: Annotated[
        str,
        typer.Argument(
            metavar="DESIGN|boveda",
            help="A registered design, a TOML file, or boveda: its compressor and decompressor.",
        ),
    ],
    family: Annotated[str, typer.Option(help="ecp5, ice40 or gowin.")] = "ecp5",
    device: Annotated[
        str,
        typer.Option(
            help="25k, 45k, 85k (ecp5); hx1k, hx8k, up5k (ice40); gw1n-1, gw1nr-9, gw2a-18 "
            "(gowin). Without: 85k, hx8k, gw2a-18."
        ),
    ] = "",
    clock_mhz: Annotated[
        float, typer.Option(help="The clock that is aimed at. To miss it is no error.")
    ] = 100.0,
    seed: Annotated[
        int, typer.Option(help="Of the placer; the clock differs by up to a fifth.")
    ] = 1,
    settings: Settings = None,
    interface: Annotated[
        str, typer.Option(help="Of a design: streams (its bare core), axi or link around it.")
    ] = "streams",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="New folder for the logs of yosys and nextpnr."
        ),
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Use an answer that was found before.")
    ] = True,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Place a design's RTL on an FPGA: look-up tables, memories, multipliers, and the clock.

    Yosys maps it; nextpnr places and routes it between registers that four pins reach, since it has
    more ports than a chip has pins.  Those registers are told apart.  No board, no bitstream.  A
    design that is too big is refused.  Units take seconds, a core of 2 × 2 some
    five minutes, larger ones up to hours: small ones first.

    The settings of boveda are group=16, container_bits=8, signed=true, zero_width=false.

    Example:

    \b
      archsim fpga place edge-16 --set rows=2 --set columns=2
      archsim fpga place core.toml --interface axi --clock-mhz 90
      archsim fpga place boveda --family ice40 --set group=8
    """
    target = Target(family=family, device=device, clock_hz=clock_mhz * 1e6, seed=seed)
    nextpnr_version(family)
    with (
        nullcontext() if output is None else new_folder(output) as logs,
        progress_bar("emitting", quiet=as_json) as bar,
    ):
        found: list[FpgaReport] = []
        for name, unit in units(design, settings or [], target, interface).items():
            found.append(
                place(
                    unit,
                    target=target,
                    name=name,
                    logs=None if logs is None else logs / name,
                    use_cache=cache,
                    progress=lambda phase, name=name: bar.update(
                        bar.task_ids[0], description=f"{name}: {phase}"
                    ),
                )
            )
    if as_json:
        print(json.dumps([report.record() for report in found], indent=2))
    else:
        tables.show(found)


def units(
    design: str, settings: list[str], target: Target, interface: str = "streams"
) -> dict[str, str]:
    """Verilog of what is placed, by name. Raises `InputError` for a design that cannot fit."""
    if design == BOVEDA:
        require(interface == "streams", f"--interface must be streams for boveda, not {interface}")
        return boveda_units(settings)
    chosen = with_settings(load_design(design), settings)
    check_design(chosen, target.chip)
    return {printable(Path(design).stem): emit(chosen, top=TOP, interface=interface).verilog}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(help="Place designs on FPGAs, build bitstreams, run networks on boards.")
    group.command("place")(place_design)
    group.command("build")(build_for_board)
    group.command("fit")(fit_board)
    group.command("run")(run_on_board)
    app.add_typer(group, name="fpga")
