"""How far mappings are from the best of all, over all built-in networks and random designs.

    python benchmarks/mapper_gap.py > benchmarks/mapper_gap.md     half an hour
    python benchmarks/mapper_gap.py --each 2 --json > gap.json

Of every network, on every design, one layer is drawn (a layer that a network has n times, n times
as often); with `--each 2`, of two networks that are drawn for each design.  Each is mapped by
`--mapper rough`, by `fast` and by `exact`; where the exact search is given up after STEPS steps the
pair is left out, and counted.  Cycles are those of the schedule.  Seconds are of the process's own
time, one thread, compiled kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
os.environ.update(ONE_THREAD)

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402

from archsim import CLOUD_128, EDGE_16, Plain  # noqa: E402
from archsim.errors import InputError  # noqa: E402
from archsim.machine.registry import load_design  # noqa: E402
from archsim.machines.systolic.design import DATAFLOWS  # noqa: E402
from archsim.memory import OffChip  # noqa: E402
from archsim.tiled import mapper  # noqa: E402
from archsim.tiled.design import CoreDesign  # noqa: E402
from archsim.tiled.mapper import SEARCHES, Mapper  # noqa: E402
from archsim.tiled.timing import time_layer  # noqa: E402
from workloads.builtin import networks  # noqa: E402
from workloads.language.shipped import language_models  # noqa: E402
from workloads.layers import Conv2d, MatMul  # noqa: E402
from workloads.named import shapes_named  # noqa: E402
from workloads.steps import one_step  # noqa: E402

STEPS = 1 << 20
"""Of the exact search, a layer."""

OTHERS = ("volta", "vsq-16", "vsq-5nm", "vsq-baseline")


def random_design(chance: random.Random) -> CoreDesign:
    """Two of three systolic, 8 to 256 rows and columns, any dataflow; else another named machine.

    Scratchpads of 16 KiB to 2 MiB, a channel of 4 to 256 bytes a cycle and up to 400 cycles'
    latency; all drawn by their logarithm.
    """
    memories = {
        name: Plain(capacity_bytes=int(2 ** chance.uniform(14, 21)))
        for name in ("ifmap_memory", "weight_memory", "accumulator_memory")
    }
    rate, latency = 2 ** chance.uniform(2, 8), chance.choice((0, 50, 100, 200, 400))
    channel = OffChip(bytes_per_cycle=round(rate, 1), latency_cycles=latency)
    changes: dict[str, Any] = {**memories, "off_chip": channel}
    if chance.random() < 1 / 3:
        design = load_design(chance.choice(OTHERS))
        assert isinstance(design, CoreDesign)
        return replace(design, **changes)
    sides = {name: int(2 ** chance.uniform(3, 8)) for name in ("rows", "columns")}
    base = chance.choice((EDGE_16, CLOUD_128))
    return replace(base, dataflow=chance.choice(DATAFLOWS), **sides, **changes)


@dataclass
class Gaps:
    """Of a network: cycles [pairs, 3] and seconds [3] by mapper, and how many were given up."""

    cycles: list[list[int]] = field(default_factory=list[list[int]])
    seconds: list[float] = field(default_factory=lambda: [0.0] * 3)
    given_up: int = 0
    none_fits: int = 0

    def add(self, design: CoreDesign, layer: Conv2d | MatMul) -> None:
        """Map a layer in all ways."""
        problem, cycles = design.numerics.problem(layer), list[int]()
        for way, search in enumerate(SEARCHES):
            begin = time.process_time()
            try:
                tiling = Mapper(search=search).find("layer", problem, design)
            except InputError:
                self.given_up += 1
                return
            self.seconds[way] += time.process_time() - begin
            if tiling is None:
                self.none_fits += 1
                return
            cycles.append(time_layer(design, layer, tiling).cycles)
        self.cycles.append(cycles)

    def row(self) -> dict[str, Any]:
        """Over exact: in all, the mean of layers, and the worst layer; of rough and fast."""
        if not self.cycles:
            return {"pairs": 0, "given_up": self.given_up, "none_fits": self.none_fits}
        cycles = np.array(self.cycles, np.float64)
        over = cycles / cycles[:, 2:]
        return {
            "pairs": len(cycles),
            "given_up": self.given_up,
            "none_fits": self.none_fits,
            "total": (cycles.sum(axis=0) / cycles[:, 2].sum())[:2].tolist(),
            "mean": over.mean(axis=0)[:2].tolist(),
            "worst": over.max(axis=0)[:2].tolist(),
            "seconds_a_layer": [one / max(1, len(cycles)) for one in self.seconds],
        }


def measure(designs: int, names: Sequence[str], each: int, seed: int) -> dict[str, Gaps]:
    """So many networks of each design; kernels are compiled before."""
    mapper.MOST_STEPS = STEPS
    chance, gaps = random.Random(seed), {name: Gaps() for name in names}
    layers = {name: [one_step(one) for one in shapes_named(name).matrix_layers] for name in names}
    small = MatMul(name="small", m=9, n=9, k=9)
    Gaps().add(EDGE_16, small)
    console = Console(stderr=True)
    drawn = track(range(designs), "designs", console=console, disable=not console.is_terminal)
    for _ in drawn:
        design = random_design(chance)
        for name in chance.sample(names, min(each, len(names))):
            gaps[name].add(design, chance.choice(layers[name]))
    return gaps


def in_all(gaps: dict[str, Gaps]) -> Gaps:
    """All networks as one."""
    return Gaps(
        cycles=[one for each in gaps.values() for one in each.cycles],
        seconds=[sum(way) for way in zip(*(each.seconds for each in gaps.values()), strict=True)],
        given_up=sum(each.given_up for each in gaps.values()),
        none_fits=sum(each.none_fits for each in gaps.values()),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Mappings against the best of all.")
    parser.add_argument("networks", nargs="*", help="all built-in ones if none is named")
    parser.add_argument("--designs", type=int, default=200, help="random designs, default 200")
    parser.add_argument("--each", type=int, default=1000, help="networks a design, default all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    names = asked.networks or [*networks(), *language_models()]
    gaps = measure(asked.designs, names, asked.each, asked.seed)
    rows = {name: one.row() for name, one in {**gaps, "all": in_all(gaps)}.items()}
    if asked.json:
        print(json.dumps(rows, indent=2))
        return
    many = min(asked.each, len(names))
    print("# Mappings against the best of all\n")
    call = " ".join(["python benchmarks/mapper_gap.py", *(arguments or sys.argv[1:])])
    print(f"`{call}`, {asked.designs} random designs, on each a layer of")
    print(
        f"each of {many} networks: cycles over those of the exact mapper, in all, mean and worst of"
    )
    print("layers; process time of the searches a layer.\n")
    print("| network | layers | given up | mapper | in all | mean | worst | ms a layer (exact) |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        if not row["pairs"]:
            continue
        for way, search in enumerate(SEARCHES[:2]):
            ms = [1000 * row["seconds_a_layer"][at] for at in (way, 2)]
            print(
                f"| {name} | {row['pairs']} | {row['given_up']} | {search} | "
                f"{row['total'][way]:.4f} | {row['mean'][way]:.4f} | {row['worst'][way]:.3f} | "
                f"{ms[0]:.3f} ({ms[1]:.1f}) |"
            )


if __name__ == "__main__":
    main()
