"""`archsim power`: energy of a layer in a design's netlist, by module."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archsim.cli.options import AsJson, DesignName, Settings
from archsim.cli.output import output_console, progress_bar
from archsim.errors import InputError, nearest, require
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from energy_models.errors import EnergyError
from rtl.toolchain import ToolchainError
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands
from workloads.steps import one_step, step_operands

if TYPE_CHECKING:
    from rtl.synthesis.power import PowerReport

DIFFERENT = 1
FAILED = 2


def power(  # noqa: PLR0913
    design: DesignName,
    workload: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORKLOAD]",
            help="A network; without it, a small layer of random operands: a product of matrices, "
            "for sparse cores a convolution.",
        ),
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
    Cores of at most 2 million gates; of the sparse core, a few small PEs.

    Example:

    \b
      archsim power edge-16 --set rows=4 --set columns=4 --density 0.3
      archsim power scnn --set grid_rows=2 --set grid_columns=2 --set weight_lanes=2 \\
        --set ifmap_lanes=2 --set banks=8 --density 0.4
    """
    from rtl.layer_case import layer_case
    from rtl.synthesis.liberty import DEFAULT_LIBRARY
    from rtl.synthesis.power import PowerMeter, refuse_hopeless

    require(depth >= 0, f"--depth must not be negative, not {depth}")
    chosen = with_settings(load_design(design), settings or [])
    try:
        case = layer_case(chosen, *_operands(chosen, (workload, layer), density, range_bits, seed))
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
    design: Design,
    place: tuple[str | None, str | None],
    density: float,
    range_bits: int | None,
    seed: int,
) -> tuple[Conv2d | MatMul, Operands]:
    """The layer (workload, name) and its operands; random ones unless the network has real ones."""
    from archsim.cli.choose import WorkloadOptions, load_workload
    from archsim.simulate import operands_of
    from rtl.layer_case import random_layer

    workload, name = place
    intake = design.intake
    if range_bits is not None:
        widest = intake.source_bits
        narrow = intake.narrowed(max(2, min(range_bits, widest)))
        if narrow is None:
            raise InputError(
                f"--range-bits is for cores that take integers as they are, not a {design.kind}"
            )
        require(
            2 <= range_bits <= widest,
            f"--range-bits must be from 2 to the design's {widest}, not {range_bits}",
        )
        intake = narrow
    options = WorkloadOptions(density=density, seed=seed, as_words=True)
    if workload is None:
        require(name is None, "--layer is of a network; name the network too")
        random = random_layer(design)
        return random, intake.synthetic(random, Drawing(density=density, seed=seed))
    loaded = load_workload(workload, options)
    layers = {one.name: one for one in loaded.network.matrix_layers}
    require(name is not None, f"--layer must name one of: {', '.join(layers)}")
    assert name is not None
    if name not in layers:
        raise InputError(f"{workload} has no matrix layer {name!r}; {nearest(name, layers)}")
    source = loaded.operands(intake)
    assert source is not None
    layer = layers[name]
    return one_step(layer), step_operands(layer, operands_of(source, layer), 0)


def _print(found: "PowerReport", depth: int) -> None:
    from rtl.synthesis.power_table import closing, heading, module_table

    console = output_console()
    console.print(heading(found))
    console.print(module_table(found, depth))
    console.print(closing(found))


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("power")(power)
