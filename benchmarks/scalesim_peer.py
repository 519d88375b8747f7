"""Compare archsim with SCALE-Sim 3.0.0, an independent simulator of systolic arrays.

    python benchmarks/scalesim_peer.py --network resnet50 --rows 128 --columns 128 --dataflow ws
    python benchmarks/scalesim_peer.py --network gemms --rows 16 --columns 16 --dataflow os

Runs SCALE-Sim (https://pypi.org/project/scalesim/) on the matrix layers of a built-in network, in
a virtual environment of its own, and prints its compute cycles beside ours:

* serial: `serial_cycles` with each layer as one tile, the figure that means what SCALE-Sim's does;
* real: the cycles that `simulate` gives with the scratchpads and off-chip memory of `cloud-128`.

SCALE-Sim is given one image and one group (it knows neither batch nor groups; the count is
multiplied), and the part of the padded ifmap that the kernel visits (it rounds the ofmap up).  Its
"Total Cycles" is the number of the last cycle, counted from 0: one is added.  See
`benchmarks/scalesim.md`.  Needs a Unix system.
"""

from __future__ import annotations

import argparse
import configparser
import csv
import datetime
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from archsim.layer.problem import Tiling, problem_of
from archsim.machines.systolic.design import CLOUD_128, Systolic
from archsim.memory import OffChip, Plain
from archsim.result import LayerResult
from archsim.simulate import simulate
from archsim.tiled.timing import time_layer
from workloads.builtin import builtin, networks
from workloads.layers import Conv2d, MatMul, Network

PACKAGES = ("scalesim==3.0.0", "numpy<2.4")
"""SCALE-Sim 3.0.0 assigns one-element arrays to scalars, which NumPy 2.4 refuses."""

Layers = Sequence[Conv2d | MatMul]

DATAFLOWS = {"ws": "weight_stationary", "os": "output_stationary", "is": "input_stationary"}

GEMMS = (
    (1, 1, 1), (1, 1, 129), (1, 129, 1), (129, 1, 1), (1, 37, 53), (41, 1, 59), (43, 61, 1),
    (2, 3, 5), (7, 11, 13), (31, 29, 23), (47, 53, 67), (97, 101, 103), (8, 8, 8), (9, 9, 9),
    (16, 16, 16), (17, 17, 17), (32, 32, 32), (33, 33, 33), (65, 64, 63), (64, 65, 129),
    (100, 10, 1000), (128, 96, 64),
)  # fmt: skip
"""M, N, K: ones, primes, multiples of the usual arrays and one more."""

_SRAM = dict.fromkeys(("IfmapSramSzkB", "FilterSramSzkB", "OfmapSramSzkB"), 65536)
_OFFSETS = {"IfmapOffset": 0, "FilterOffset": 500_000_000, "OfmapOffset": 1_000_000_000}
_BUFFERS = dict.fromkeys(("ReadRequestBuffer", "WriteRequestBuffer"), 64)
_BANKS = {"CustomLayout": 0, "SRAMBankBandwidth": 10, "SRAMBankNum": 10, "SRAMBankPort": 2}
CONFIG: dict[str, dict[str, Any]] = {
    "general": {"run_name": "peer"},
    "architecture_presets": {**_SRAM, **_OFFSETS, **_BUFFERS},
    "layout": {side + key: _BANKS[key] for side in ("Ifmap", "Filter") for key in _BANKS},
    "sparsity": {"SparsitySupport": False},
    "run_presets": {"InterfaceBandwidth": "CALC", "UseRamulatorTrace": False},
}
"""Every key that its reader demands; CALC is the mode without stalls."""

DRIVER = """
import platform, sys
from importlib.metadata import version
from scalesim import scale_sim, simulator

class Announced(simulator.layer_sim):
    def run(self):
        super().run()
        print("layer done", flush=True)

simulator.layer_sim = Announced
cfg, topology, layout, out = sys.argv[1:]
tool = scale_sim.scalesim(True, False, config=cfg, topology=topology, layout=layout)
tool.run_scale(top_path=out)
found = (version("scalesim"), version("numpy"), platform.python_version())
print("SCALE-Sim {}, NumPy {}, Python {}".format(*found))
"""
"""SCALE-Sim at its fastest: no traces written, no bars; it only says when a layer is done."""


def peer_shape(layer: Conv2d | MatMul) -> list[int]:
    """H, W, R, S, C, K and the stride: a row of SCALE-Sim's topology for one image and group.

    A product M × N × K is what its own GEMM input makes of it: a kernel 1 × K on M × K.  The file
    has one stride and no dilation, but neither changes the number of pixels or taps.
    """
    if isinstance(layer, MatMul):
        return [layer.m, layer.k, 1, layer.k, 1, layer.n, 1]
    stride = layer.stride_height if layer.stride_height == layer.stride_width else 1
    r, s, groups = layer.kernel_height, layer.kernel_width, layer.groups
    height, width = (layer.ofmap_height - 1) * stride + r, (layer.ofmap_width - 1) * stride + s
    return [height, width, r, s, layer.channels // groups, layer.filters // groups, stride]


def times(layer: Conv2d | MatMul) -> int:
    """Images × groups: how often the layer does what SCALE-Sim is asked."""
    return layer.batch * (layer.groups if isinstance(layer, Conv2d) else 1)


@dataclass(frozen=True)
class PeerRun:
    """SCALE-Sim's compute cycles of each row, and what the process took."""

    cycles: tuple[int, ...]
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    versions: str


def peer_python(folder: Path, say: Callable[[str], None]) -> Path:
    """The interpreter of the virtual environment at `folder`, made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"making {folder} with {', '.join(PACKAGES)}")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if subprocess.run([python, "-c", "import scalesim"], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def _write_inputs(folder: Path, design: Systolic, layers: Layers) -> list[str]:
    """SCALE-Sim's configuration, topology and (empty) layout; returns their paths."""
    dataflow = next(short for short, name in DATAFLOWS.items() if name == design.dataflow)
    config = configparser.ConfigParser()
    config.read_dict(CONFIG)
    array = {"ArrayHeight": design.rows, "ArrayWidth": design.columns, "Dataflow": dataflow}
    config.read_dict({"architecture_presets": array})
    paths = [folder / name for name in ("peer.cfg", "topology.csv", "layout.csv")]
    with paths[0].open("w") as file:
        config.write(file)
    # rows are numbered: "DP" in a name would mean a depthwise layer
    rows = [", ".join(map(str, [f"l{at}", *peer_shape(layer)])) for at, layer in enumerate(layers)]
    paths[1].write_text("\n".join(["header", *(f"{row}," for row in rows), ""]))
    paths[2].write_text("header\n")
    return [str(path) for path in paths]


def run_peer(
    python: Path, design: Systolic, layers: Layers, on_layer: Callable[[], None]
) -> PeerRun:
    """Run SCALE-Sim on the layers, in one process, as its users do."""
    with tempfile.TemporaryDirectory(prefix="archsim-scalesim-") as folder:
        command = [python, "-c", DRIVER, *_write_inputs(Path(folder), design, layers), folder]
        line = ""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                if line == "layer done\n":
                    on_layer()
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise SystemExit(f"SCALE-Sim ended with status {process.returncode}")
        with (Path(folder) / "peer" / "COMPUTE_REPORT.csv").open(newline="") as file:
            records = list(csv.DictReader(file, skipinitialspace=True))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    # the report gives the number of the last cycle, counted from 0
    cycles = tuple(int(float(at["Total Cycles"])) + 1 - int(at["Stall Cycles"]) for at in records)
    return PeerRun(cycles, wall, cpu, peak, line.strip())


def designs(rows: int, columns: int, dataflow: str) -> tuple[Systolic, Systolic]:
    """The array with scratchpads that hold any layer and ports that never wait; as `cloud-128`."""
    real = replace(CLOUD_128, rows=rows, columns=columns, dataflow=DATAFLOWS[dataflow])
    whole = Plain(capacity_bytes=2**30)
    memories = dict.fromkeys(("ifmap_memory", "weight_memory", "accumulator_memory"), whole)
    return replace(real, **memories, bias_words=2**20, off_chip=OffChip()), real


@dataclass(frozen=True, kw_only=True)
class Row:
    """One layer in both simulators; all cycles and folds are of all images and groups."""

    name: str
    m: int
    n: int
    k: int
    times: int
    peer_folds: int
    peer_cycles: int
    folds: int
    serial_cycles: int
    cycles: int
    explained: bool
    reason: str
    largest_wait: str


def fold_cycles(design: Systolic, m: int, n: int, k: int) -> int:
    """Cycles of one fold when nothing overlaps: stationary words, skew and moving words."""
    skew = design.rows + design.columns - 2
    moving = {"weight_stationary": m, "input_stationary": n}
    return skew + (k if design.dataflow not in moving else design.rows + moving[design.dataflow])


def compare(design: Systolic, layer: Conv2d | MatMul, peer_cycles: int, real: LayerResult) -> Row:
    """Put SCALE-Sim's cycles of one image and group beside ours, with the reason computed."""
    problem, rows = problem_of(layer), design.rows
    m, n = problem.out_height * problem.out_width, problem.filters
    runs, run = problem.kernel_height, problem.kernel_width * problem.channels
    if problem.dilation_width > 1:
        runs, run = runs * problem.kernel_width, problem.channels
    k, often = runs * run, problem.images * problem.groups
    down = (-(-k // rows), runs * -(-run // rows))  # folds on the rows: theirs, ours
    if design.dataflow == "output_stationary":
        down = (-(-m // rows), -(-m // rows))
    across = -(-(m if design.dataflow == "input_stationary" else n) // design.columns)
    theirs, ours = across * down[0], across * down[1] * often
    fold = fold_cycles(design, m, n, k)
    tile = Tiling(
        pixel_rows=problem.out_height, pixel_columns=problem.out_width,
        filters=n, channels=problem.channels,
    )  # fmt: skip
    result = time_layer(design, layer, tile)
    reason = f"K: {runs}·⌈{run}/{rows}⌉ = {down[1]}, not ⌈{k}/{rows}⌉ = {down[0]}"
    # SCALE-Sim obeys its formula, and we the same formula with our folds: nothing else differs
    explained = peer_cycles == theirs * fold
    explained &= (result.folds, result.serial_cycles) == (ours, ours * fold)
    wait = max(real.where, key=lambda cause: (cause != "computing") * real.where[cause])
    return Row(
        name=layer.name, m=m, n=n, k=k, times=often,
        peer_folds=theirs * often, peer_cycles=peer_cycles * often,
        folds=result.folds, serial_cycles=result.serial_cycles, cycles=real.cycles,
        explained=explained, reason="" if down[0] == down[1] else reason,
        largest_wait=f"{wait} {100 * real.where[wait] / real.cycles:.0f} %",
    )  # fmt: skip


def time_ours(design: Systolic, network: Network, repeats: int) -> tuple[float, float]:
    """Seconds of the first `simulate`, which loads compiled code, and the median of the rest."""
    first, *rest = timeit.repeat(lambda: simulate(design, network), number=1, repeat=repeats + 1)
    return first, statistics.median(rest)


def network_of(name: str, limit: int | None) -> Network:
    """The matrix layers of a built-in network, or the spread of products called "gemms"."""
    if name != "gemms":
        network = builtin(name)
        return replace(network, layers=network.matrix_layers[:limit])
    layers = [MatMul(name=f"{m}x{n}x{k}", m=m, n=n, k=k) for m, n, k in GEMMS[:limit]]
    return Network(name=name, layers=tuple(layers), source="benchmarks/scalesim_peer.py")


def run_record(options: argparse.Namespace, run: PeerRun, layers: Layers) -> dict[str, Any]:
    """What `--write` keeps of SCALE-Sim's run: nothing of ours."""
    keys = ("network", "rows", "columns", "dataflow", "limit")
    said = [f"--{key} {value}" for key in keys if (value := getattr(options, key)) is not None]
    rows = [
        {"name": at.name, "shape": peer_shape(at), "times": times(at), "cycles": cycles}
        for at, cycles in zip(layers, run.cycles, strict=True)
    ]
    return {
        **{key: getattr(options, key) for key in keys[:3]},
        "dataflow": DATAFLOWS[options.dataflow],
        "command": f"python benchmarks/scalesim_peer.py {' '.join(said)}",
        "date": datetime.date.today(),
        "versions": run.versions,
        "machine": f"{platform.system()} {platform.machine()}",
        "wall_seconds": round(run.wall_seconds, 1),
        "cpu_seconds": round(run.cpu_seconds, 1),
        "peak_bytes": run.peak_bytes,
        "total_cycles": sum(row["cycles"] * row["times"] for row in rows),
        "layers": rows,
    }


HEADER = """# Compute cycles of SCALE-Sim, measured; written by benchmarks/scalesim_peer.py --write.
# Source: SCALE-Sim 3.0.0 from PyPI, its COMPUTE_REPORT.csv: "Total Cycles" + 1 - "Stall Cycles", in
# InterfaceBandwidth CALC.  A run is one process; its command, date and versions stand beside it.
# shape: ifmap height, ifmap width (the padded part that the kernel visits), kernel height, kernel
# width, channels, filters (of one group), stride.  A product M x N x K is [M, K, 1, K, 1, N, 1].
# times: images x groups, each of which takes `cycles`; total_cycles sums cycles x times.
"""


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Put the run into the file, in the place of an earlier one of the same command."""
    text = path.read_text(encoding="utf-8") if path.exists() else "run = []"
    kept = [run for run in tomllib.loads(text)["run"] if run["command"] != record["command"]]
    keys = ("network", "rows", "columns", "dataflow")
    runs = sorted([*kept, record], key=lambda run: [run[key] for key in keys])
    path.write_text(HEADER + "".join(map(_toml, runs)), encoding="utf-8")


def _toml(run: dict[str, Any]) -> str:
    def text(pair: tuple[str, Any]) -> str:
        value = pair[1] if isinstance(pair[1], datetime.date) else json.dumps(pair[1])
        return f"{pair[0]} = {value}"

    *entries, (_, layers) = run.items()
    rows = [f"  {{ {', '.join(map(text, layer.items()))} }}," for layer in layers]
    return "\n".join(["", "[[run]]", *map(text, entries), "layers = [", *rows, "]", ""])


NOTE = """K: each row of the kernel, a run of S·C adjacent ifmap elements (C where dilated), is cut
into folds on its own, because im2col is done in hardware by unaligned vector reads; SCALE-Sim cuts
the whole window, R·S·C.  ×: images × groups, one after the other; SCALE-Sim counts one.
real: folds overlap, and operands and results cross the off-chip memory's ports."""


def print_table(console: Console, rows: Sequence[Row]) -> None:
    """Cycles of every layer and the total, and the rules by which they differ."""
    table = Table("layer", "M × N × K", "×")
    for heading in ("SCALE-Sim", "serial", "ratio", "real"):
        table.add_column(heading, justify="right")
    for heading in ("folds of serial that differ", "in real, beside computing"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row.name, f"{row.m} × {row.n} × {row.k}", "" if row.times == 1 else str(row.times),
            f"{row.peer_cycles:,}", f"{row.serial_cycles:,}",
            f"{row.serial_cycles / row.peer_cycles:.3f}", f"{row.cycles:,}",
            row.reason if row.explained else f"NOT EXPLAINED {row.reason}", row.largest_wait,
        )  # fmt: skip
    keys = ("peer_cycles", "serial_cycles", "cycles")
    peer, ours, real = (sum(getattr(row, key) for row in rows) for key in keys)
    table.add_section()
    table.add_row("total", "", "", f"{peer:,}", f"{ours:,}", f"{ours / peer:.3f}", f"{real:,}")
    console.print(table)
    console.print(NOTE)


SPEED = """SCALE-Sim: {scalesim_seconds:.1f} s ({scalesim_cpu_seconds:.1f} s of CPU, \
{scalesim_peak_bytes:,} bytes). archsim: {archsim_seconds:.6f} s, the median of {repeats} runs; \
the first, which loads or compiles its kernels, {archsim_first_seconds:.2f} s. {speedup:,.0f} ×"""


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare archsim with SCALE-Sim 3.0.0.")
    names = ("gemms", *networks())
    venv = platformdirs.user_cache_path("archsim") / "scalesim-3.0.0"
    say = parser.add_argument
    say("--network", default="resnet50", choices=names, metavar="NAME", help=", ".join(names))
    say("--rows", type=int, default=128, help="of the array")
    say("--columns", type=int, default=128, help="of the array")
    say("--dataflow", choices=DATAFLOWS, default="ws")
    say("--limit", type=int, help="only the first LIMIT layers")
    say("--repeats", type=int, default=50, help="how often archsim is timed")
    say("--write", type=Path, help="keep SCALE-Sim's counts in this TOML file")
    say("--json", action="store_true", help="figures as JSON on standard output")
    say("--venv", type=Path, default=venv, help=f"SCALE-Sim's environment, default {venv}")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both; 1 if a difference has no explanation."""
    options = options_of(arguments)
    notes = Console(stderr=True)
    network = network_of(options.network, options.limit)
    layers = network.matrix_layers
    serial, real = designs(options.rows, options.columns, options.dataflow)
    first, median = time_ours(real, network, options.repeats)
    python = peer_python(options.venv, notes.print)
    shown = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress("SCALE-Sim", *shown, console=notes) as bar:
        task = bar.add_task("", total=len(layers))
        run = run_peer(python, serial, layers, lambda: bar.advance(task))
    answers = zip(layers, run.cycles, simulate(real, network).layers, strict=True)
    rows = [compare(serial, *answer) for answer in answers]
    if options.write:
        write_record(options.write, run_record(options, run, layers))
    cost = {
        "scalesim_seconds": run.wall_seconds, "scalesim_cpu_seconds": run.cpu_seconds,
        "scalesim_peak_bytes": run.peak_bytes, "archsim_first_seconds": first,
        "archsim_seconds": median, "speedup": run.wall_seconds / median,
    }  # fmt: skip
    if options.json:
        print(json.dumps({"versions": run.versions, **cost, "layers": list(map(asdict, rows))}))
    else:
        console = Console()
        print_table(console if console.is_terminal else Console(width=140), rows)
        print(SPEED.format(repeats=options.repeats, **cost))
    return 0 if all(row.explained for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
