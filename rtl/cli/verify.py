"""`archsim verify`: prove a design's RTL equal to its model."""

import json
import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from archsim.cli.options import DesignName, Force, Settings
from archsim.cli.output import phase, progress_bar, shown
from archsim.core.design import Design
from archsim.designs.registry import design_name, load_design, with_settings
from archsim.errors import require, require_seed, require_within
from archsim.files import new_folder, require_new

if TYPE_CHECKING:
    from rtl.conformance import Case, Verdict

DIFFERENT = 1

Simulator = Literal["amaranth", "verilator", "cocotb"]
WaveFormat = Literal["fst", "vcd"]


def verify(  # noqa: PLR0913
    design: DesignName,
    cases: Annotated[int, typer.Option(help="How many random layers, tilings and stalls.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the cases.")] = 0,
    only: Annotated[
        int | None, typer.Option("--case", help="Run just this case of the seed again.")
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
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="The verdict as JSON.")] = False,
) -> None:
    """Prove a design's RTL equal to its model: every transfer, cycle for cycle, bit for bit.

    Random layers, tilings and stalls on every port run on the RTL and in the model; the last line
    says how many transfers were compared.  Exit code 1 if anything differs.  --waves lays both
    sides of one case side by side: a word crosses at the same time in both.

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
    if waves is not None:
        require(simulator == "cocotb", f"--waves is for --simulator cocotb, not {simulator}")
        require(only is not None, "--waves is of one case; name it with --case")
        require_new(waves, folder=True)
    chosen = with_settings(load_design(design), settings or [])
    numbers = list(range(cases)) if only is None else [only]
    command = ["archsim", "verify", design, *(f"--set={setting}" for setting in settings or [])]
    repeat = f"{shlex.join(command)} --simulator {simulator} --seed {seed}"
    request = _Request(chosen, simulator, seed, numbers, repeat, waves, wave_format)
    summary = _run(request, quiet=as_json)
    if waves is not None:
        summary["waves"] = [str(waves / name) for name in (f"rtl.{wave_format}", "model.vcd")]
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        if waves is not None:
            print(shown(f"waves: {', '.join(summary['waves'])}"))
        for difference in summary["differences"]:
            print(f"differs: {json.dumps(difference)}")
        print(_closing(summary))
    if summary["differences"]:
        raise typer.Exit(DIFFERENT)


@dataclass(frozen=True)
class _Request:
    design: Design
    simulator: Simulator
    seed: int
    numbers: list[int]
    repeat: str
    waves: Path | None
    wave_format: WaveFormat


@contextmanager
def _check(request: _Request) -> "Generator[Callable[[Case], Verdict]]":
    """What checks a case; while it is open, waves are made ready under their folder's name."""
    if request.waves is None:
        from rtl.conformance import check
        from rtl.simulators import runner

        run = runner(request.design, request.simulator)
        yield lambda case: check(case, run)
    else:
        from rtl.case_waves import check_with_waves

        suffix = f".{request.wave_format}"
        with new_folder(request.waves) as folder:
            yield lambda case: check_with_waves(case, folder, suffix=suffix)


def _run(request: _Request, *, quiet: bool) -> dict[str, Any]:
    """Raises `InputError` for a design of which no case can be drawn, before anything is built."""
    from rtl.cases import random_case

    random_case(request.seed, request.numbers[0], request.design)
    verdicts: list[Verdict] = []
    building = f"building for {request.simulator}"
    with progress_bar(building, quiet=quiet) as bar, _check(request) as check:
        if request.simulator != "cocotb":  # which builds when it first runs
            phase(bar, "verifying")
        for done, number in enumerate(request.numbers, 1):
            verdicts.append(check(random_case(request.seed, number, request.design)))
            bar.update(
                bar.task_ids[0],
                description="verifying",
                completed=done,
                total=len(request.numbers),
            )
    return {
        "design": design_name(request.design),
        "simulator": request.simulator,
        "seed": request.seed,
        "cases": len(verdicts),
        "transfers": sum(verdict.transfers for verdict in verdicts),
        "cycles": sum(verdict.cycles for verdict in verdicts),
        "cycle_differences": sum(verdict.cycle_differences for verdict in verdicts),
        "value_differences": sum(verdict.value_differences for verdict in verdicts),
        "action_differences": sum(len(verdict.counts) for verdict in verdicts),
        "differences": [
            {**verdict.record(), "repeat": f"{request.repeat} --case {number}"}
            for verdict, number in zip(verdicts, request.numbers, strict=True)
            if not verdict.equal
        ],
    }


def _closing(summary: dict[str, Any]) -> str:
    equal = not summary["differences"]
    return (
        f"{summary['design']} on {summary['simulator']}: {_count(summary['cases'], 'case')}, "
        f"{summary['transfers']:,} transfers in {summary['cycles']:,} cycles, "
        f"{_count(summary['cycle_differences'], 'cycle difference')}, "
        f"{_count(summary['value_differences'], 'value difference')}, "
        f"{_count(summary['action_differences'], 'action difference')}: "
        + ("model and RTL are equal" if equal else "MODEL AND RTL DIFFER")
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify")(verify)
