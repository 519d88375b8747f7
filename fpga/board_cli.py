"""`archsim fpga build` and `archsim fpga run`: a bitstream for a board, a network through one."""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from archsim.cli.options import AsJson, DesignName, Force, Settings
from archsim.cli.output import output_console, phase, progress_bar, shown
from archsim.errors import InputError, UserError, require
from archsim.files import new_folder
from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from fpga.boards import BOARDS, board_named
from fpga.places import PLACES

SIMULATED = "simulated"


def on_board(design: str, settings: list[str] | None) -> Design:
    """A design as it is built for a board: with an FPGA's registers, unless settings say else."""
    return with_settings(load_design(design).for_fpga(), settings or [])


def build_for_board(  # noqa: PLR0913
    design: DesignName,
    board: Annotated[str, typer.Option(help=f"One of {', '.join(BOARDS)}.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="A new folder for all that is made."),
    ],
    settings: Settings = None,
    seeds: Annotated[
        int, typer.Option(help="Seeds of the placer that are tried, from 1; the fastest is kept.")
    ] = 1,
    divisor: Annotated[
        int | None,
        typer.Option(
            help="Of the board's clock, a power of two. Without: at most 25 MHz are left."
        ),
    ] = None,
    baud: Annotated[int, typer.Option(help="Bits a second of the board's serial port.")] = 115_200,
    network: Annotated[
        list[str] | None,
        typer.Option(
            help="Whose inferences a second are told (a workload or a file); may be repeated. "
            "Without: resnet50."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Build a bitstream: the design behind a byte link at the board's serial port.

    Cores have the registers that an FPGA wants (systolic arrays pipelined_control,
    ifmap_registers=1, product_registers=2, output_registers=2, accumulator_registers=1) unless
    --set says otherwise.
    DIR/deploy has the bitstream, the emitted Verilog and its manifest; DIR/report a page
    (index.html) of what it takes of the chip, how fast it is and where every cell lies, the same as
    JSON, and the tools' logs; DIR/driver a script that runs a layer. Each step that was done is
    found again: an interrupted build goes on where it was.

    Example:

    \b
      archsim fpga build edge-16 --set rows=2 --set columns=2 --board ulx3s-85k -o board/
    """
    from fpga.board_page import board_page, build_record, network_times
    from fpga.build import build
    from fpga.floor_plan import save_floor_plan

    chosen = on_board(design, settings)
    where = board_named(board)
    times = network_times(chosen, network or ["resnet50"])
    require(1 <= seeds <= 64, f"--seeds must be from 1 to 64, not {seeds}")
    with new_folder(output) as folder, progress_bar("emitting", quiet=as_json) as bar:
        for part in ("deploy", "report", "driver"):
            (folder / part).mkdir()
        with _larger_told(design, where.name):
            made = build(
                chosen,
                where,
                folder=folder / "deploy",
                seeds=range(1, seeds + 1),
                divisor=divisor,
                baud=baud,
                progress=lambda what: phase(bar, what),
            )
        for log in ("yosys.log", "nextpnr.log", "nextpnr.json", PLACES):
            (folder / "deploy" / log).rename(folder / "report" / log)
        save_floor_plan(folder / "report" / PLACES, folder / "report" / "floor_plan.svg")
        page = board_page(
            *(made, chosen, where),
            places=folder / "report" / PLACES,
            times=times,
            command_line=shlex.join(["archsim", *sys.argv[1:]]),
        )
        (folder / "report" / "index.html").write_text(page, encoding="utf-8")
        text = json.dumps(build_record(made, where, times), indent=2) + "\n"
        (folder / "report" / "ooc_synth_and_timing.json").write_text(text, encoding="utf-8")
        driver = DRIVER.format(design=design, settings=list(settings or []), baud=baud)
        (folder / "driver" / "driver.py").write_text(driver, encoding="utf-8")
    if as_json:
        print(text, end="")
    else:
        _show_build(made, where, chosen, times)


@contextmanager
def _larger_told(design: str, board: str) -> Iterator[None]:
    """Who builds what is too large is told what finds the largest."""
    try:
        yield
    except InputError as error:
        if "must be smaller" not in str(error):
            raise
        how = f"archsim fpga fit {design} --board {board} finds the largest that fits"
        raise InputError(f"{error}; {how}") from error


def _show_build(made: Any, board: Any, design: Design, times: Sequence[Any]) -> None:
    from fpga.board_page import rate_text
    from fpga.fit import taken

    console = output_console()
    console.print(f"{design.summary} on {board.says}")
    table = Table()
    table.add_column("module", overflow="fold")
    for heading in ("LUT4", "carry", "flip-flops", "block RAM", "DSP"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = [*made.by_module.items()][:12]
    for name, cells in [*rows, ("all", asdict(made.cells))]:
        counts = [cells[key] for key in ("lut4", "carry", "flip_flops", "block_rams", "dsps")]
        table.add_row(name, *(f"{count:,}" for count in counts))
    console.print(table)
    speeds = ", ".join(f"{hz / 1e6:.1f}" for hz in made.fmax_hz.values())
    path = made.path
    verdict = "is fast enough" if made.meets_clock else "is TOO SLOW: raise --divisor"
    console.print(
        f"{speeds} MHz (seeds {', '.join(made.fmax_hz)}): {verdict} for the clock of "
        f"{made.clock_hz / 1e6:g} MHz; slowest path {path.start} to {path.end}, "
        f"{path.logic_ns:.2f} ns in cells and {path.routing_ns:.2f} ns in wires"
    )
    used = taken(made.cells, board.chip).items()
    shares = (f"{takes / has:.1%} of {has:,} {name}" for name, (takes, has) in used if has)
    console.print(f"of the chip: {', '.join(shares)}")
    for one in times:
        rate = rate_text(one, made.clock_hz)
        console.print(f"{shown(one.network)} at {made.clock_hz / 1e6:g} MHz: {rate}")
    console.print(f"bitstream's SHA-256 {made.sha256}")


def run_on_board(  # noqa: PLR0913
    design: DesignName,
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="A packaged network or an ONNX file.")
    ],
    settings: Settings = None,
    port: Annotated[
        str, typer.Option(help="A serial port such as /dev/ttyUSB0, or simulated.")
    ] = SIMULATED,
    baud: Annotated[int, typer.Option(help="Of a serial port; as built.")] = 115_200,
    photo: Annotated[int, typer.Option(help="Which of a packaged network's photographs.")] = 0,
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE.npz", help="Of an ONNX file: its input.")
    ] = None,
    cycles: Annotated[
        bool, typer.Option("--cycles/--no-cycles", help="Compare the emitted core's cycles too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a whole network through the emitted hardware, layer by layer, beside the model.

    Every word of every ofmap, and every counted action, must be the model's; what follows a layer
    is computed from the hardware's words. Pooling, sums of branches and softmax are the host's.
    The simulated board is the emitted Verilog with its byte link in Verilator: SqueezeNet on 8 x 8
    takes minutes. With --cycles the core without its link runs too, cycle for cycle.

    Example:

    \b
      archsim fpga run edge-16 squeezenet-imagenet --set rows=8 --set columns=8
      archsim fpga run edge-16 squeezenet-imagenet --set rows=4 --port /dev/ttyUSB0
    """
    from fpga.host.network import network_on_board
    from fpga.host.session import Session

    chosen = on_board(design, settings)
    model, image = _network(workload, photo, input_file)
    with (
        progress_bar("building the board", quiet=as_json) as bar,
        _opened(chosen, port, baud) as board,
    ):
        session = Session(board, chosen)
        core = _core(chosen) if cycles else None

        def tell(layer: Any) -> None:
            phase(bar, f"{layer.name} has crossed")

        phase(bar, "the first layer")
        found = network_on_board(session, model, image, core=core, progress=tell)
        crossed = getattr(board, "cycle", None)
    record = {"design": chosen.summary, "network": workload, "port": port, **found.record()}
    if crossed is not None:
        record["board_cycles"] = crossed
    if as_json:
        print(json.dumps(record, indent=2))
    else:
        _show_run(record)


def _opened(design: Design, port: str, baud: int) -> Any:
    if port == SIMULATED:
        from rtl.benches.byte_board import ByteBoard
        from rtl.emit import emit

        return ByteBoard(emit(design, top="core", interface="link").verilog, top="core")
    try:
        import serial
    except ModuleNotFoundError:
        raise InputError(
            "the Python module serial is missing; install it with: pip install 'archsim[fpga]'"
        ) from None
    try:
        return serial.Serial(port, baud, timeout=1.0)
    except (OSError, ValueError) as error:
        raise UserError(f"{port} cannot be opened as a serial port: {error}") from None


def _core(design: Design) -> Any:
    from rtl.benches.verilated import Verilated
    from rtl.emit import emit

    return Verilated(emit(design).verilog)


def _network(workload: str, photo: int, input_file: Path | None) -> tuple[Any, Any]:
    """A model with one input, and what it is given."""
    from archsim.cli.choose import WorkloadOptions, load_workload
    from workloads.onnx_model import load_model

    found = load_workload(workload, WorkloadOptions(input_file=input_file))
    if found.model is None or found.feeds is None:
        raise InputError(
            f"{workload} has no values: a packaged network runs on a board (archsim list "
            f"workloads), or an ONNX file with --input FILE.npz"
        )
    feeds = found.feeds() if input_file is not None or not photo else _photo(found.feeds, photo)
    require(len(feeds) == 1, f"{workload} must have one input, not {len(feeds)}")
    (image,) = feeds.values()
    return load_model(found.model), image


def _photo(feeds: Any, photo: int) -> dict[str, Any]:
    try:
        return feeds(photo)
    except TypeError:
        raise InputError("--photo is of packaged networks with photographs") from None


def _show_run(record: dict[str, Any]) -> None:
    console = output_console()
    console.print(f"{record['design']}, {record['network']} through port {record['port']}")
    table = Table()
    table.add_column("layer", overflow="fold")
    compared = record["layers"] and record["layers"][0]["core_cycles"] is not None
    for heading in ("words", "cycles with the link", *(["cycles of the core"] if compared else [])):
        table.add_column(heading, justify="right")
    for layer in record["layers"]:
        row = [layer["name"], f"{layer['words']:,}", f"{layer['cycles']:,}"]
        table.add_row(*row, *([f"{layer['core_cycles']:,}"] if compared else []))
    console.print(table)
    words = sum(layer["words"] for layer in record["layers"])
    same = "the same" if record["same_top1_as_float"] else "not the same"
    console.print(
        f"{len(record['layers'])} layers, {words:,} words: hardware and model are equal in every "
        f"word and action{' and, of the core, every cycle' if compared else ''}; class "
        f"{record['top1']}, {same} as in float; {record['retries']} requests sent again"
    )


DRIVER = '''\
"""Runs a random layer on the board and compares it with the model.  archsim[fpga] is needed.

    python driver.py /dev/ttyUSB0
"""

import sys

import serial

from archsim.layer.intake import Drawing
from archsim.machine.registry import load_design, with_settings
from fpga.host.network import layer_on_board
from fpga.host.session import Session
from rtl.layer_case import random_layer

design = with_settings(load_design({design!r}).for_fpga(), {settings!r})
with serial.Serial(sys.argv[1], {baud}, timeout=1.0) as port:
    session = Session(port, design)
    layer = random_layer(design)
    _, found = layer_on_board(session, layer, design.intake.synthetic(layer, Drawing()))
    print(f"{{found.name}}: {{found.words:,}} words equal to the model, {{found.cycles:,}} cycles")
'''
"""The script of DIR/driver."""
