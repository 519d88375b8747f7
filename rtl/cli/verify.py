"""`archsim verify`: prove a design's RTL equal to its model."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from archsim.cli.options import DesignName, Force, Settings
from archsim.cli.output import output_console, shown
from archsim.errors import InputError, require, require_seed, require_within
from archsim.files import require_new, write_new
from archsim.machine.registry import load_design, with_settings
from rtl.cli.verdicts import Request, Simulator, verified
from workloads.counts import counted

DIFFERENT = 1

WaveFormat = Literal["fst", "vcd"]


def verify(  # noqa: PLR0913
    design: DesignName,
    cases: Annotated[int, typer.Option(help="How many random layers, tilings and stalls.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the cases.")] = 0,
    only: Annotated[
        int | None, typer.Option("--case", help="Run just this case of the seed again.")
    ] = None,
    aim: Annotated[
        str, typer.Option(help="With --case: what the case was drawn for, as `repeat` says.")
    ] = "",
    smaller: Annotated[
        str | None,
        typer.Option(
            metavar="N.N…", help="With --case: the steps to the smallest case that still failed."
        ),
    ] = None,
    simulator: Annotated[
        Simulator,
        typer.Option(help="amaranth for small designs; verilator and cocotb run the Verilog."),
    ] = "verilator",
    settings: Settings = None,
    waves: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --simulator cocotb and --case: a new folder for the waves of the case, "
            "rtl.fst and model.vcd.",
        ),
    ] = None,
    wave_format: Annotated[
        WaveFormat, typer.Option(help="Of the RTL's wave: fst is far smaller.")
    ] = "fst",
    coverage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help="Every bin: how many cases were in it, why it matters."
        ),
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON.")] = False,
) -> None:
    """Prove a design's RTL equal to its model: every transfer, cycle for cycle, bit for bit.

    Random layers, tilings and stalls on every port run on the RTL and in the model; every other
    case is drawn for situations that no case before was in.  The last line says how many transfers
    were compared, the one before how many situations there were, and which are missing.  Exit code
    1 if anything differs; the first case that does is made as small as it can be.  --waves lays
    both sides of one case side by side: a word crosses at the same time in both.

    Examples:

    \b
      archsim verify edge-16 --set rows=4 --set columns=5 --cases 50 --seed 7
      archsim verify edge-16 --set rows=4 --simulator cocotb --case 3 --waves waves/
      archsim verify scnn --set grid_rows=2 --set grid_columns=2
    """
    require(cases > 0, f"--cases must be positive, not {cases}")
    require_within("cases", **{"--cases": cases, "--case": only or 0})
    require_seed(seed)
    require(only is None or only >= 0, f"--case must not be negative, not {only}")
    require(waves is not None or wave_format == "fst", "--wave-format is of --waves; give both")
    require(only is not None or not (aim or smaller), "--aim and --smaller are of one --case")
    if waves is not None:
        require(simulator == "cocotb", f"--waves is for --simulator cocotb, not {simulator}")
        require(only is not None, "--waves is of one case; name it with --case")
        require_new(waves, folder=True)
    chosen = with_settings(load_design(design), settings or [])
    if coverage is not None:
        require_new(coverage)
    command = ["archsim", "verify", design, *(f"--set={setting}" for setting in settings or [])]
    repeat = f"{shlex.join(command)} --simulator {simulator} --seed {seed}"
    request = Request(
        design=chosen,
        simulator=simulator,
        seed=seed,
        cases=cases,
        only=only,
        aim=aim,
        smaller=_steps(smaller),
        repeat=repeat,
        waves=waves,
        wave_format=wave_format,
    )
    summary, reached = verified(request, quiet=as_json)
    if waves is not None:
        summary["waves"] = [str(waves / name) for name in (f"rtl.{wave_format}", "model.vcd")]
    if coverage is not None:
        text = json.dumps(reached.explained(), indent=2, ensure_ascii=False)
        write_new({coverage: text + "\n"})
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        _print(summary, "" if only is not None else reached.line())
    if summary["differences"]:
        raise typer.Exit(DIFFERENT)


def _print(summary: dict[str, Any], coverage: str) -> None:
    """The verdict in lines; coverage: the line about it, if there is one."""
    if "waves" in summary:
        print(shown(f"waves: {', '.join(summary['waves'])}"))
    for difference in summary["differences"]:
        print(f"differs: {json.dumps(difference)}")
    if "smallest" in summary:
        print(f"smallest: {json.dumps(summary['smallest'])}")
    if coverage:
        output_console().print(coverage)
    output_console().print(_closing(summary))


def _steps(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(step) for step in text.split(".")) if text else ()
    except ValueError:
        raise InputError(
            f"--smaller must be whole numbers with points between, not {text!r}"
        ) from None


def _closing(summary: dict[str, Any]) -> str:
    equal = not summary["differences"]
    return (
        f"{summary['design']} on {summary['simulator']}: {counted(summary['cases'], 'case')}, "
        f"{summary['transfers']:,} transfers in {summary['cycles']:,} cycles, "
        f"{counted(summary['cycle_differences'], 'cycle difference')}, "
        f"{counted(summary['value_differences'], 'value difference')}, "
        f"{counted(summary['action_differences'], 'action difference')}: "
        + ("model and RTL are equal" if equal else "MODEL AND RTL DIFFER")
    )


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify")(verify)
