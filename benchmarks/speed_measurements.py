"""The measurements behind `benchmarks/speed.py`.

Nothing here sets the number of threads: `speed.py` does, before it imports this.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scalesim_peer
from speed_report import Row, seconds_of

from archsim import CLOUD_128, EDGE_16, Plain, Systolic, simulate, simulate_many
from archsim.energy import account
from archsim.layer.intake import Drawing
from archsim.layer.problem import Tiling, problem_of
from archsim.machines.tensorcore.design import VOLTA
from archsim.machines.vsq.design import VSQ_5NM
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import layer_output, plan_tiling, time_layer
from energy_models.sources import forget_sources
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import synthetic
from workloads.threads import processors

NETWORK = "resnet50"
RECORDED = Path(__file__).parents[1] / "tests" / "data" / "scalesim.toml"
RTL_LAYER = "res4.1/conv2"
ROWS = COLUMNS = (8, 16, 24, 32, 48, 64, 96, 128)
KIBIBYTES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)

TYPED = {
    "help": ("archsim --help", 0.3),
    "list": ("archsim list designs", 0.4),
    "run": ("archsim run cloud-128 resnet50 --timing-only", 1.0),
}
"""What a user types, by measurement, and within how many seconds it is to be done."""

COLD_SECONDS = 12.0
COLD_REPEATS = 3


def matrix_network() -> Network:
    """ResNet-50 without its vector work, which takes no time on the array."""
    network = builtin(NETWORK)
    return replace(network, layers=network.matrix_layers)


def in_turns(
    repeats: int, *calls: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds of each call, measured in turns after one call each that is not counted."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(repeats + 1):
        for call, kept in zip(calls, times, strict=True):
            start = clock()
            call()
            if turn:
                kept.append(clock() - start)
    return times


@cache
def _scalesim_seconds(peer: bool, venv: Path) -> tuple[float, str]:
    """Of SCALE-Sim on ResNet-50, and where the figure is from."""
    serial, _ = scalesim_peer.designs(128, 128, "ws")
    if peer:
        python = scalesim_peer.peer_python(venv, lambda text: print(text, file=sys.stderr))
        run = scalesim_peer.run_peer(python, serial, matrix_network().matrix_layers, lambda: None)
        return run.wall_seconds, f"{run.versions}, measured in this run"
    runs = tomllib.loads(RECORDED.read_text(encoding="utf-8"))["run"]
    key = {"network": NETWORK, "rows": 128, "columns": 128, "dataflow": "weight_stationary"}
    (record,) = [one for one in runs if all(one[name] == key[name] for name in key)]
    said = f"{record['versions']}, RECORDED on {record['date']}: --peer measures it"
    return float(record["wall_seconds"]), said


SCALESIM = {
    "scalesim": "cycles of every layer, mapped by a rule, as SCALE-Sim maps (`mapper=rough`)",
    "scalesim-mapped": "cycles of every layer, the mapping searched for",
    "scalesim-result": "the same, and counts, bytes and ports: what `simulate` gives",
}
"""What is asked of ours, by measurement, where SCALE-Sim is asked for cycles alone."""


def scalesim(name: str, repeats: int, peer: bool, venv: Path) -> Row:
    """Timing only, against SCALE-Sim on the same layers."""
    _, real = scalesim_peer.designs(128, 128, "ws")
    network = matrix_network()
    calls = {
        "scalesim": lambda: simulate_many([real], network, mapper="rough"),
        "scalesim-mapped": lambda: simulate_many([real], network),
        "scalesim-result": lambda: simulate(real, network),
    }
    (ours,) = in_turns(5 * repeats, calls[name])
    theirs, said = _scalesim_seconds(peer, venv)
    return Row(
        name=name,
        what="ResNet-50, 128 × 128 weight-stationary, timing only, against SCALE-Sim"
        + ("" if peer else " (its recorded time)")
        + f": {SCALESIM[name]}",
        measured=theirs / statistics.median(ours),
        unit="×",
        target=100_000,
        better="higher",
        details={"archsim": seconds_of(ours), "scalesim_seconds": theirs},
        note=said,
    )


def _product_matrices(layer: Conv2d | MatMul) -> list[tuple[np.ndarray, np.ndarray]]:
    """The float32 factors M × K and K × N of a layer, unrolled beforehand; one pair a group."""
    problem = problem_of(layer)
    pixels = problem.images * problem.out_height * problem.out_width
    depth = problem.channels * problem.kernel_height * problem.kernel_width
    random = np.random.default_rng(0)
    return [
        (
            random.standard_normal((pixels, depth), np.float32),
            random.standard_normal((depth, problem.filters), np.float32),
        )
        for _ in range(problem.groups)
    ]


def _values(repeats: int, design: CoreDesign) -> tuple[list[float], list[float], int]:
    """Processor seconds of NumPy's products and of every output value on a core; and the MACs."""
    network = matrix_network()
    numerics = design.numerics
    operands = {
        layer.name: numerics.take(layer, numerics.synthetic(layer, Drawing()))
        for layer in network.matrix_layers
    }
    matrices = [pair for layer in network.matrix_layers for pair in _product_matrices(layer)]
    macs = sum(left.size * right.shape[1] for left, right in matrices)
    assert macs == network.macs

    def products() -> None:
        for left, right in matrices:
            np.matmul(left, right)

    def ours() -> None:
        simulate(design, network, operands=operands)

    plain, full = in_turns(repeats, products, ours, clock=time.process_time)
    return plain, full, macs


def values(repeats: int) -> Row:
    """Every output value, against NumPy doing just the matrix products."""
    plain, full, macs = _values(repeats, CLOUD_128)
    numpy_seconds, our_seconds = statistics.median(plain), statistics.median(full)
    return Row(
        name="values",
        what="the same on cloud-128 with every output value, over NumPy's float32 products alone",
        measured=our_seconds / numpy_seconds,
        unit="× as long",
        target=0.5,
        better="lower",
        details={
            "archsim": seconds_of(full),
            "numpy": seconds_of(plain),
            "numpy_macs_per_second": macs / numpy_seconds,
        },
        note="8-bit operands drawn beforehand; NumPy's unrolled matrices made beforehand",
    )


INTEGER_VOLTA = replace(VOLTA, operand="int8", accumulator="int32")
"""The tensor core with integers: floats in an order of their own are not a matrix product."""


def core_values(repeats: int, design: CoreDesign, what: str, target: float) -> Row:
    """Every output value on another core."""
    plain, full, _ = _values(max(3, repeats // 2), design)
    return Row(
        name=f"values-{design.kind}",
        what=f"every output value on {what}, over NumPy's float32 products",
        measured=statistics.median(full) / statistics.median(plain),
        unit="× as long",
        target=target,
        better="lower",
        details={"archsim": seconds_of(full), "numpy": seconds_of(plain)},
        note="operands quantised beforehand",
    )


def core_timing(repeats: int) -> Row:
    """Timing only, on the same two: the slower."""
    network = matrix_network()
    times = in_turns(repeats, *(lambda d=d: simulate(d, network) for d in (VOLTA, VSQ_5NM)))
    return Row(
        name="core-timing",
        what="ResNet-50's timing on volta and on vsq-5nm, the slower of both",
        measured=1e3 * max(statistics.median(kept) for kept in times),
        unit="ms",
        target=200,
        better="lower",
        details={"volta": seconds_of(times[0]), "vsq_5nm": seconds_of(times[1])},
    )


def _rtl_bench(design: Systolic, layer: Conv2d | MatMul, tiling: Tiling) -> tuple[Any, Any, Any]:
    """The conformance case of a layer behind the design's off-chip memory, answer and bench."""
    from rtl.conformance import bench_of
    from rtl.tile_conformance import TileCase

    case = TileCase(
        design=design,
        layer=layer,
        tiling=tiling,
        operands=synthetic(layer, bits=design.operand_bits),
    )
    expected = case.answer()
    return case, expected, bench_of(case, expected)


def _model_rate(design: Systolic, layer: Conv2d | MatMul) -> float:
    """Cycles per second of the model's timing of a layer."""
    (times,) = in_turns(3, lambda: time_layer(design, layer))
    return time_layer(design, layer).cycles / statistics.median(times)


def verilator(repeats: int) -> Row:
    """Cycles per second of a layer: the model's timing against the emitted RTL in Verilator."""
    from rtl.benches.verilated import Verilated
    from rtl.conformance import judge
    from rtl.emit import emit

    design = replace(EDGE_16, off_chip=CLOUD_128.off_chip)
    (layer,) = [one for one in matrix_network().matrix_layers if one.name == RTL_LAYER]
    tiling = plan_tiling(design, layer, None)
    case, expected, bench = _rtl_bench(design, layer, tiling)
    core = Verilated(emit(design).verilog, optimised=True)
    verdict = judge(case, expected, core.run(bench))
    assert verdict.equal, "the RTL differs from the model: its speed is of no interest"
    rtl: list[float] = []
    for _ in range(max(3, repeats // 3)):
        with core.start(bench) as session:
            start = time.perf_counter()
            session.step()
            rtl.append(time.perf_counter() - start)
    cycles = time_layer(design, layer).cycles
    assert cycles == expected.cycles
    timing, computing, answering = in_turns(
        repeats,
        lambda: time_layer(design, layer),
        lambda: (time_layer(design, layer), layer_output(design, layer, case.operands)),
        lambda: case.answer(),
    )
    rtl_rate = verdict.cycles / statistics.median(rtl)
    rates = [cycles / statistics.median(kept) for kept in (timing, computing, answering)]
    slowest = min(_model_rate(design, one) for one in matrix_network().matrix_layers)
    return Row(
        name="verilator",
        what=f"cycles per second of ResNet-50's {RTL_LAYER} on 16 × 16, over the RTL in Verilator",
        measured=rates[0] / rtl_rate,
        unit="×",
        target=1000,
        better="higher",
        details={
            "cycles": cycles,
            "transfers_compared": verdict.transfers,
            "verilator": seconds_of(rtl),
            "verilator_cycles_per_second": rtl_rate,
            "archsim": seconds_of(timing),
            "archsim_cycles_per_second": rates[0],
            "ratio_of_the_slowest_layer_at_that_rate_of_verilator": slowest / rtl_rate,
            "ratio_with_output_values": rates[1] / rtl_rate,
            "ratio_with_every_transfer_of_every_port": rates[2] / rtl_rate,
        },
        note="timing with automatic tiling; Verilator's stepping alone (compiled before, one "
        "thread), and its run was equal to the model's, word for word and cycle for cycle",
    )


def grid() -> list[Systolic]:
    """Designs over rows × columns × scratchpad sizes."""
    found: list[Systolic] = []
    for rows, columns, size in product(ROWS, COLUMNS, KIBIBYTES):
        memory = Plain(capacity_bytes=size * 1024)
        found.append(
            replace(
                CLOUD_128,
                rows=rows,
                columns=columns,
                ifmap_memory=memory,
                weight_memory=memory,
                accumulator_memory=memory,
            )
        )
    return found


def designs(repeats: int) -> Row:
    """Designs per second with `simulate_many`."""
    network = matrix_network()
    built = grid()
    cycles, _ = simulate_many(built, network)
    single = simulate(built[-1], network)
    assert int(cycles[-1].sum()) == single.cycles
    fitting = int((cycles >= 0).all(axis=1).sum())
    turns = max(3, repeats // 2)
    ready, whole = in_turns(
        turns,
        lambda: simulate_many(built, network),
        lambda: simulate_many(grid(), network),
    )
    return Row(
        name="designs",
        what=f"ResNet-50's timing on {len(built)} designs: rows × columns × scratchpad sizes",
        measured=len(built) / statistics.median(ready),
        unit="designs/s",
        target=2000,
        better="higher",
        details={
            "simulate_many": seconds_of(ready),
            "designs_per_second_with_their_construction": len(built) / statistics.median(whole),
            "designs_on_which_every_layer_fits": fitting,
        },
        note=f"rows and columns {ROWS}, scratchpads {KIBIBYTES} KiB each, automatic tilings; "
        "the designs constructed beforehand",
    )


def energy(repeats: int) -> Row:
    """Energy and area of a simulated network, the tables read anew each time."""
    result = simulate(EDGE_16, builtin(NETWORK))

    def anew() -> None:
        forget_sources()
        account(result, "45nm")

    cold, warm = in_turns(repeats, anew, lambda: account(result, "45nm"))
    return Row(
        name="energy",
        what="energy and area of a simulated ResNet-50, tables read anew",
        measured=1e3 * statistics.median(cold),
        unit="ms",
        target=50,
        better="lower",
        details={"tables_read": seconds_of(cold), "tables_known": seconds_of(warm)},
    )


def _typed(command: str, spent: list[float], **settings: str) -> None:
    """Run a command as a user types it, whose Python keeps compiled modules.

    spent: gets the processor's seconds, which say more than a clock where others compute too.
    """
    before = os.times()
    program, *words = command.split()
    known = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    place = Path(sysconfig.get_path("scripts")) / program
    subprocess.run([place, *words], env={**known, **settings}, check=True, capture_output=True)
    after = os.times()
    spent.append(
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def typed(name: str, repeats: int) -> Row:
    """A whole process, from what is typed to its end."""
    command, target = TYPED[name]
    spent: list[float] = []
    (times,) = in_turns(repeats, lambda: _typed(command, spent))
    return Row(
        name=name,
        what=f"{command}, as it is typed, whole process",
        measured=statistics.median(times),
        unit="s",
        target=target,
        better="lower",
        details={"process": seconds_of(times), "processor": seconds_of(spent[1:])},
        note="kernels compiled before, as from the second run on",
    )


def cold(repeats: int) -> Row:
    """The first run on a machine: an empty cache of kernels each time, all processors its own."""

    spent: list[float] = []
    names = ("ARCHSIM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
    threads = dict.fromkeys(names, str(processors()))
    command = "archsim run edge-16 resnet50 --timing-only"

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            _typed(command, spent, ARCHSIM_CACHE_DIR=folder, **threads)

    (times,) = in_turns(min(repeats, COLD_REPEATS), run)
    return Row(
        name="cold",
        what="archsim run edge-16 resnet50 --timing-only, no kernel compiled yet",
        measured=statistics.median(times),
        unit="s",
        target=COLD_SECONDS,
        better="lower",
        details={"process": seconds_of(times), "processor": seconds_of(spent[1:])},
        note=f"from an empty cache to the last line; {processors()} threads",
    )
