"""`archsim verify`: prove that a design's RTL equals its model, on random cases."""

import json
from typing import Annotated, Any, Literal

import typer

from archsim.cli.output import progress_bar
from archsim.designs.registry import design_name, load_design, with_settings
from archsim.designs.systolic import Systolic
from archsim.errors import InputError, require

DIFFERENT = 1


def verify(  # noqa: PLR0913
    design: Annotated[str, typer.Argument(help="A registered design or a TOML file.")],
    cases: Annotated[int, typer.Option(help="How many random layers, tilings and stalls.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the cases.")] = 0,
    only: Annotated[
        int | None, typer.Option("--case", help="Run just this case of the seed again.")
    ] = None,
    simulator: Annotated[
        Literal["amaranth", "verilator", "cocotb"],
        typer.Option(help="amaranth for small designs; verilator and cocotb run the Verilog."),
    ] = "verilator",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change the design first: rows=16.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON.")] = False,
) -> None:
    """Prove a design's RTL equal to its model: every transfer, cycle for cycle, bit for bit.

    Random layers, tilings and stalls on every port run on the RTL and in the model; the last line
    says how many transfers were compared.  Exit code 1 if anything differs.

    Example:  archsim verify edge-16 --set rows=4 --set columns=5 --cases 50 --seed 7
    """
    require(cases > 0, f"cases must be positive, not {cases}")
    chosen = with_settings(load_design(design), settings or [])
    numbers = range(cases) if only is None else [only]
    summary = _run(chosen, simulator, seed, numbers, quiet=as_json)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        for difference in summary["differences"]:
            print(f"differs: {json.dumps(difference)}")
        print(_closing(summary))
    if summary["cycle_differences"] or summary["value_differences"] or summary["differences"]:
        raise typer.Exit(DIFFERENT)


def _run(
    design: Systolic,
    simulator: Literal["amaranth", "verilator", "cocotb"],
    seed: int,
    numbers: "range | list[int]",
    *,
    quiet: bool,
) -> dict[str, Any]:
    from rtl.cases import random_case
    from rtl.conformance import check
    from rtl.simulators import runner
    from rtl.toolchain import ToolchainError

    try:
        run = runner(design, simulator)
    except ToolchainError as error:
        raise InputError(str(error)) from error
    verdicts = []
    with progress_bar("verifying", quiet=quiet) as bar:
        for done, number in enumerate(numbers, 1):
            verdicts.append(check(random_case(seed, number, design), run))
            bar.update(bar.task_ids[0], completed=done, total=len(numbers))
    return {
        "design": design_name(design),
        "simulator": simulator,
        "seed": seed,
        "cases": len(verdicts),
        "transfers": sum(verdict.transfers for verdict in verdicts),
        "cycles": sum(verdict.cycles for verdict in verdicts),
        "cycle_differences": sum(verdict.cycle_differences for verdict in verdicts),
        "value_differences": sum(verdict.value_differences for verdict in verdicts),
        "action_differences": sum(len(verdict.counts) for verdict in verdicts),
        "differences": [
            {
                **verdict.record(),
                "repeat": f"--seed {seed} --case {number} --simulator {simulator}",
            }
            for verdict, number in zip(verdicts, numbers, strict=True)
            if not verdict.equal
        ],
    }


def _closing(summary: dict[str, Any]) -> str:
    equal = not summary["differences"]
    return (
        f"{summary['design']} on {summary['simulator']}: {summary['cases']} cases, "
        f"{summary['transfers']:,} transfers in {summary['cycles']:,} cycles, "
        f"{summary['cycle_differences']} cycle differences, "
        f"{summary['value_differences']} value differences, "
        f"{summary['action_differences']} action differences: "
        + ("model and RTL are equal" if equal else "MODEL AND RTL DIFFER")
    )


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify")(verify)
