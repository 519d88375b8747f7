"""Compare archsim's `SCNN_DNNSIM` with DNNsim, the simulator whose count it is, layer by layer.

    python benchmarks/dnnsim_peer.py --dnnsim PATH/DNNsim --layers 300 --seed 1

Draws layers (`drawn_layers`), writes them with their operands as DNNsim's traces, runs its binary
on them, and prints every layer whose cycles, products or conflicts are not equal, image by image;
exit code 1 if there is one.  How DNNsim is built, and what was measured: `benchmarks/dnnsim.md`.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from archsim.machines.scnn.design import SCNN_DNNSIM, Scnn
from archsim.machines.scnn.layer import layer_timing
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic

MACHINES: tuple[dict[str, int], ...] = (
    {},
    {"bank_entries": 32},
    {"bank_entries": 6},
    {"bank_entries": 1},
    {"grid_rows": 4, "grid_columns": 4, "weight_lanes": 2, "banks": 16, "bank_entries": 24},
    {"grid_rows": 2, "grid_columns": 2, "weight_lanes": 16, "ifmap_lanes": 16},
    {"grid_rows": 3, "grid_columns": 3, "weight_lanes": 3, "ifmap_lanes": 5, "bank_entries": 9},
    {"grid_rows": 2, "grid_columns": 4, "banks": 2, "bank_entries": 512},
    {"grid_rows": 6, "grid_columns": 3, "banks": 8, "bank_entries": 256},
)
"""What is other than in `SCNN_DNNSIM`: nothing; few sums, so that there are many groups of filters,
also in one conv group; other grids, also with more rows than columns; other lanes; fewer banks."""

FIGURES = ("cycles", "mults", "idle_conflicts")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A layer and how its operands are drawn.  changes: of `SCNN_DNNSIM`."""

    layer: Conv2d | MatMul
    densities: tuple[float, float]
    seed: int
    changes: Mapping[str, int]

    @property
    def design(self) -> Scnn:
        changes: dict[str, Any] = dict(self.changes)
        return replace(SCNN_DNNSIM, **changes)

    @property
    def operands(self) -> Operands:
        """Ifmap and weight of a density each."""
        ifmap, weight = (
            synthetic(self.layer, bits=8, density=density, seed=self.seed)
            for density in self.densities
        )
        return replace(ifmap, weight=weight.weight)


def drawn_layers(count: int, seed: int) -> list[Entry]:
    """Random layers: every tenth a matrix product, every ninth depthwise."""
    draw = random.Random(seed)
    found: list[Entry] = []
    for at in range(count):
        entry = Entry(
            layer=_product(draw, at) if at % 10 == 9 else _convolution(draw, at),
            densities=(_density(draw), _density(draw)),
            seed=draw.randrange(1 << 30),
            changes=MACHINES[draw.choice((0, 0, 0, *range(len(MACHINES))))],
        )
        found.append(entry if _sums_fit(entry) else replace(entry, changes={}))
    return found


def _sums_fit(entry: Entry) -> bool:
    """Whether those of one filter do; DNNsim never ends where they do not."""
    layer, design = entry.layer, entry.design
    if isinstance(layer, MatMul):
        return True
    rows = -(-layer.ofmap_height // design.grid_rows)
    return rows * -(-layer.ofmap_width // design.grid_columns) <= design.accumulators


def _density(draw: random.Random) -> float:
    return draw.choice((0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0))


def _product(draw: random.Random, at: int) -> MatMul:
    return MatMul(
        name=f"l{at}", m=draw.randint(1, 3), n=draw.randint(1, 400),
        k=draw.choice((1, 17, 255, 256, 257, 600, 1500)),
    )  # fmt: skip


def _convolution(draw: random.Random, at: int) -> Conv2d:
    kernel = (draw.randint(1, 11), draw.randint(1, 11))
    if draw.random() < 0.7:
        kernel = (kernel[0], kernel[0])
    stride, pad = draw.choice((1, 1, 1, 2, 2, 3, 4)), draw.randint(0, 5)
    low = [max(size - 2 * pad, 1) for size in kernel]
    most = draw.choice((3, 12, 45))
    groups = draw.choice((1, 1, 1, 1, 2, 2, 3, 4))
    channels, filters = groups * draw.randint(1, 9), groups * draw.randint(1, 40)
    if at % 9 == 8:
        groups = filters = channels
    if at % 23 == 22:  # a pixel, of channels enough for several folds
        channels, low, most = groups * draw.choice((100, 256, 300)), [1, 1], 0
        kernel, pad = (draw.choice((1, 1, 3)),) * 2, 1
    return Conv2d(
        name=f"l{at}", channels=channels, filters=filters, groups=groups,
        ifmap_height=low[0] + draw.randint(0, most), ifmap_width=low[1] + draw.randint(0, most),
        kernel_height=kernel[0], kernel_width=kernel[1], stride_height=stride,
        stride_width=stride, pad_top=pad, pad_bottom=pad, pad_left=pad, pad_right=pad,
        batch=draw.choice((1, 1, 1, 2, 3)),
    )  # fmt: skip


def defined_in_dnnsim(entry: Entry) -> bool:
    """Whether DNNsim does not read behind its ifmap: where filters have one channel of several, it
    looks for as many channels as there are filters.  Of a plane of one pixel channels are folded.
    """
    layer = entry.layer
    if isinstance(layer, MatMul):
        return True
    fold = 256 if layer.ifmap_height == layer.ifmap_width == 1 else 1
    channels, seen = -(-layer.channels // fold), -(-layer.channels // layer.groups // fold)
    return not (seen == 1 < channels < layer.filters)


def run_peer(binary: Path, entries: Sequence[Entry]) -> list[dict[str, list[int]]]:
    """DNNsim's figures of each image of each layer: a network for each machine."""
    found: dict[str, dict[str, list[int]]] = {}
    with tempfile.TemporaryDirectory(prefix="archsim-dnnsim-") as name:
        folder = Path(name)
        (folder / "DRAMSim2").symlink_to(binary.resolve().parent / "DRAMSim2")
        batch: list[str] = []
        for number, changes in enumerate({json.dumps(dict(one.changes)) for one in entries}):
            same = [one for one in entries if dict(one.changes) == json.loads(changes)]
            batch.append(_write_network(folder, f"n{number}", same))
        (folder / "batch").write_text("\n".join(batch), encoding="utf-8")
        run = subprocess.run(
            [binary.resolve(), "batch"], cwd=folder, capture_output=True, text=True, check=False
        )
        if run.returncode or "rror" in run.stderr:
            raise SystemExit(f"DNNsim ended with status {run.returncode}: {run.stderr}")
        for path in (folder / "results").glob("*/*.csv"):
            found |= _read_results(path)
    return [found[one.layer.name] for one in entries]


def _write_network(folder: Path, name: str, entries: Sequence[Entry]) -> str:
    """The model and traces of layers of one machine; what the batch file says of them."""
    models, traces = folder / "models" / name, folder / "net_traces" / name
    models.mkdir(parents=True)
    traces.mkdir(parents=True)
    lines: list[str] = []
    for entry in entries:
        layer, operands = entry.layer, entry.operands
        ifmap, weight = operands.ifmap, operands.weight
        if isinstance(layer, MatMul):
            lines.append(f"{layer.name},fc,1,0")
            ifmap, weight = ifmap[0], weight[0].T
        else:
            lines.append(f"{layer.name},conv,{layer.stride_height},{layer.pad_top}")
        np.save(traces / f"act-{layer.name}-0.npy", np.ascontiguousarray(ifmap, np.float32))
        np.save(traces / f"wgt-{layer.name}.npy", np.ascontiguousarray(weight, np.float32))
    (models / "model.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    design = entries[0].design
    machine = {
        "Wt": design.grid_rows, "Ht": design.grid_columns, "I": design.ifmap_lanes,
        "F": design.weight_lanes, "out_acc_size": design.accumulators, "banks": design.banks,
    }  # fmt: skip
    said = " ".join(f"{key}: {value}" for key, value in machine.items())
    experiment = f'experiment {{ architecture: "SCNN" task: "Cycles" {said} }}'
    kind = 'model: "CSV" data_type: "Fixed" quantised: true'
    return f'simulate {{ network: "{name}" {kind} {experiment} }}'


def _read_results(path: Path) -> dict[str, dict[str, list[int]]]:
    """The part for each sample, which ends with an empty line."""
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith("Per sample"):
            break
    table = csv.DictReader(iter(lambda: next(lines), ""))
    found: dict[str, dict[str, list[int]]] = {}
    for row in table:
        figures = found.setdefault(row["Layer"], {name: [] for name in FIGURES})
        for name in FIGURES:
            figures[name].append(int(row[name]))
    return found


def ours(entry: Entry) -> dict[str, list[int]]:
    """The same figures of each image."""
    design = entry.design
    lanes = design.weight_lanes * design.ifmap_lanes
    passes = layer_timing(design, entry.layer, entry.operands).passes
    return {
        "cycles": [one.cycles for one in passes],
        "mults": [int(one.pes.products.sum()) for one in passes],
        "idle_conflicts": [int(one.pes.conflict.sum()) * lanes for one in passes],
    }


def record(entry: Entry) -> dict[str, Any]:
    """An entry as plain data, from which `entry_of` makes it again."""
    layer = {
        key: value for key, value in asdict(entry.layer).items() if value not in (0, "", False)
    }
    ifmap, weight = entry.operands.ifmap, entry.operands.weight
    return {
        "shape": {"kind": "matmul" if isinstance(entry.layer, MatMul) else "conv2d", **layer},
        "densities": list(entry.densities),
        "seed": entry.seed,
        "machine": dict(entry.changes),
        "values": [int((one != 0).sum()) for one in (ifmap, weight)],
    }


def entry_of(row: Mapping[str, Any]) -> Entry:
    """What `record` has written."""
    layer = dict(row["shape"])
    kind = MatMul if layer.pop("kind") == "matmul" else Conv2d
    return Entry(
        layer=kind(**layer),
        densities=(row["densities"][0], row["densities"][1]),
        seed=row["seed"],
        changes=row["machine"],
    )


def compared(binary: Path, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A row for each layer: the entry, and figures of both."""
    started = time.perf_counter()
    theirs = run_peer(binary, entries)
    between = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for entry, peer in zip(entries, theirs, strict=True):
        mine = ours(entry)
        images = len(mine["cycles"])  # where a layer has fewer than another, the rest are zeros
        peer = {name: values[:images] for name, values in peer.items()}
        rows.append({**record(entry), "dnnsim": peer, "ours": mine})
    ended = time.perf_counter()
    print(
        f"DNNsim took {between - started:.1f} s, archsim {ended - between:.1f} s", file=sys.stderr
    )
    return rows


HEADER = """# SCNN's cycles, products and conflicts (idle multipliers) as DNNsim counts, by image.
# Written by benchmarks/dnnsim_peer.py --write.
# Source: github.com/isakedo/DNNsim, commit {commit},
# its SCNN class: its binary, built with its CMake files in Release, run on these layers as traces.
# Command: {command}
# Operands are `workloads.operands.synthetic` of the layer (8 bits, the densities of ifmap and
# weight, the seed); values: how many of ifmap and weight are not zero.  machine: what is other than
# in archsim's SCNN_DNNSIM, which has DNNsim's defaults.
"""


def written(rows: Sequence[Mapping[str, Any]], commit: str, command: str) -> str:
    """Rows as TOML, without ours."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return "{ " + ", ".join(f"{key} = {text(item)}" for key, item in items) + " }"
        return json.dumps(value)

    lines = [HEADER.format(commit=commit, command=command)]
    for row in rows:
        lines += ["[[layer]]", *(f"{key} = {text(row[key])}" for key in row if key != "ours"), ""]
    return "\n".join(lines)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare archsim's SCNN_DNNSIM with DNNsim.")
    say = parser.add_argument
    say("--dnnsim", type=Path, required=True, help="DNNsim's binary, where it was built")
    say("--layers", type=int, default=300, help="how many are drawn")
    say("--seed", type=int, default=1)
    say("--most", type=int, help="leave out layers of which an image has more products")
    say("--write", type=Path, help="keep DNNsim's counts in this TOML file")
    say("--json", action="store_true", help="every row as JSON on standard output")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both; 1 if a figure differs."""
    options = options_of(arguments)
    drawn = drawn_layers(options.layers, options.seed)
    rows = compared(options.dnnsim, [one for one in drawn if defined_in_dnnsim(one)])
    if options.most:
        rows = [row for row in rows if max(row["dnnsim"]["mults"]) <= options.most]
    other = [row for row in rows if row["dnnsim"] != row["ours"]]
    if options.write:
        place = ["git", "-C", str(options.dnnsim.resolve().parent), "rev-parse", "HEAD"]
        commit = subprocess.run(place, capture_output=True, text=True, check=True).stdout.strip()
        most = f" --most {options.most}" if options.most else ""
        command = f"dnnsim_peer.py --layers {options.layers} --seed {options.seed}{most}"
        options.write.write_text(written(rows, commit, command), encoding="utf-8")
    if options.json:
        print(json.dumps(rows))
    else:
        for row in other:
            print("not equal:", json.dumps(row))
        images = sum(len(row["ours"]["cycles"]) for row in rows)
        print(
            f"{len(rows)} layers ({images} images): {len(rows) - len(other)} equal in cycles, "
            f"products and conflicts; {len(drawn) - len(rows)} left out"
        )
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
