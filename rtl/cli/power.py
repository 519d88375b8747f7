"""`archsim power`: energy of a layer in a design's netlist, by module."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archsim.cli.options import AsJson, DesignName, Settings
from archsim.cli.output import output_console, progress_bar
from archsim.core.core_design import CoreDesign
from archsim.core.integer_numerics import IntegerNumerics
from archsim.core.numerics import Drawing
from archsim.designs.registry import load_core
from archsim.errors import InputError, nearest, require
from energy_models.errors import EnergyError
from rtl.toolchain import ToolchainError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands

if TYPE_CHECKING:
    from rtl.synthesis.power import PowerReport
    from rtl.tile_conformance import TileCase

DIFFERENT = 1
FAILED = 2


def power(  # noqa: PLR0913
    design: DesignName,
    workload: Annotated[
        str | None,
        typer.Argument(help="A network; without it, a small product of random matrices."),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(help="The layer of the network, a small one.")
    ] = None,
    density: Annotated[float, typer.Option(help="Of random operands: fraction not zero.")] = 1.0,
    range_bits: Annotated[
        int | None, typer.Option(help="Of random operands: bits that they use, of the design's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random operands.")] = 0,
    liberty: Annotated[
        Path | None,
        typer.Option(metavar="FILE.lib", help="Cell library; without it, Debian's osu018."),
    ] = None,
    settings: Settings = None,
    depth: Annotated[int, typer.Option(help="Levels of the hierarchy to print.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Energy of a layer in a design's netlist, by module, from what really switches.

    The netlist of `archsim synth` computes the layer gate by gate, and every transfer is compared
    with the model (exit code 1 if any differs).  No wires, glitches, clock tree or memories.

    Example:

    \b
      archsim power edge-16 --set rows=4 --set columns=4 --density 0.3
    """
    from rtl.synthesis.liberty import DEFAULT_LIBRARY
    from rtl.synthesis.power import PowerMeter, refuse_hopeless

    require(depth >= 0, f"--depth must not be negative, not {depth}")
    chosen = load_core(design, settings or [], "power")
    try:
        case = _case(chosen, _operands(chosen, (workload, layer), density, range_bits, seed))
        refuse_hopeless(case)
        with progress_bar("starting", quiet=as_json) as bar:

            def show(phase: str, done: int, total: int | None) -> None:
                bar.update(bar.task_ids[0], description=phase, completed=done, total=total)

            found = PowerMeter.of(chosen, liberty or DEFAULT_LIBRARY, progress=show).run(case)
    except (EnergyError, ToolchainError) as error:
        print(f"archsim: {' '.join(str(error).split())}", file=sys.stderr)
        raise typer.Exit(FAILED) from error
    if as_json:
        print(json.dumps(found.record(), indent=2))
    else:
        _print(found, depth)
    if found.verdict is None or not found.verdict.equal:
        raise typer.Exit(DIFFERENT)


def _operands(
    design: CoreDesign,
    place: tuple[str | None, str | None],
    density: float,
    range_bits: int | None,
    seed: int,
) -> tuple[Conv2d | MatMul, Operands]:
    """The layer (workload, name) and its operands; random ones unless the network has real ones."""
    from archsim.cli.choose import WorkloadOptions, load_workload
    from archsim.simulate import operands_of

    workload, name = place
    numerics = design.numerics
    if range_bits is not None:
        if not isinstance(numerics, IntegerNumerics):
            raise InputError(
                f"--range-bits is for cores that take integers as they are, not a {design.kind}"
            )
        require(
            2 <= range_bits <= numerics.source_bits,
            f"--range-bits must be from 2 to the design's {numerics.source_bits}, not {range_bits}",
        )
        numerics = replace(numerics, operand_bits=range_bits)
    options = WorkloadOptions(density=density, seed=seed)
    if workload is None:
        require(name is None, "--layer is of a network; name the network too")
        _, filters, channels = design.mnk
        layer = MatMul(name="random", m=32, n=4 * filters, k=4 * channels)
        return layer, numerics.synthetic(layer, Drawing(density=density, seed=seed))
    loaded = load_workload(workload, options)
    layers = {one.name: one for one in loaded.network.matrix_layers}
    require(name is not None, f"--layer must name one of: {', '.join(layers)}")
    assert name is not None
    if name not in layers:
        raise InputError(f"{workload} has no matrix layer {name!r}; {nearest(name, layers)}")
    source = loaded.operands(numerics)
    assert source is not None
    return layers[name], operands_of(source, layers[name])


def _case(design: CoreDesign, chosen: tuple[Conv2d | MatMul, Operands]) -> "TileCase":
    from archsim.simulate import plan_tiling
    from rtl.tile_conformance import TileCase, free_services

    layer, operands = chosen
    return TileCase(
        design=design,
        layer=layer,
        tiling=plan_tiling(design, layer, None),
        operands=operands,
        services=free_services(),
    )


def _print(found: "PowerReport", depth: int) -> None:
    from rtl.synthesis.power_table import closing, heading, module_table

    console = output_console()
    console.print(heading(found))
    console.print(module_table(found, depth))
    console.print(closing(found))


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("power", short_help="Energy of a layer in a design's netlist, by module.")(power)
