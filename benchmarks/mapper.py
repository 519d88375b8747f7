"""What the default mapping of every layer takes beside the best of all legal mappings.

    python benchmarks/mapper.py [DESIGN ...] --network resnet50 > benchmarks/mapper.md

Three mappings of each layer: `--mapper rough`, the default (`fast`), and the exact one, whose
search begins with the fast one.  Seconds are of the
process's own time, one thread, compiled kernels; shapes that are alike are searched once.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import numpy as np

from archsim.layer.problem import Problem, Tiling
from archsim.machine.registry import load_design
from archsim.tiled.design import CoreDesign
from archsim.tiled.mapper import SEARCHES, Mapper
from archsim.tiled.timing import time_layer
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul


@dataclass
class Sums:
    """Of a network on a design: cycles by way, process seconds by way, the worst layer of each."""

    cycles: list[int] = field(default_factory=lambda: [0, 0, 0])
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    worst: list[float] = field(default_factory=lambda: [1.0, 1.0, 1.0])


def mapped(design: CoreDesign, problem: Problem, sums: Sums) -> list[Tiling | None]:
    """A layer's three mappings."""
    found: list[Tiling | None] = []
    for way, search in enumerate(SEARCHES):
        begin = time.process_time()
        found.append(Mapper(search=search).find("layer", problem, design))
        sums.seconds[way] += time.process_time() - begin
    return found


def measure(design: CoreDesign, network: str) -> Sums:
    """All matrix layers; the first one is mapped before, to compile."""
    layers: dict[Problem, tuple[Conv2d | MatMul, int]] = {}
    for layer in builtin(network).matrix_layers:
        problem = design.numerics.problem(layer)
        layers[problem] = layer, layers.get(problem, (layer, 0))[1] + 1
    mapped(design, next(iter(layers)), Sums())
    sums = Sums()
    for problem, (layer, many) in layers.items():
        cycles = [time_layer(design, layer, one).cycles for one in mapped(design, problem, sums)]
        for way in range(3):
            sums.cycles[way] += many * cycles[way]
            sums.worst[way] = max(sums.worst[way], cycles[way] / cycles[2])
    return sums


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("designs", nargs="*", default=["edge-16", "cloud-128"])
    parser.add_argument("--network", default="resnet50")
    asked = parser.parse_args()
    print(f"# Mappings of {asked.network}\n")
    print("`python benchmarks/mapper.py`: cycles over those of the exact mapper, in all and of the")
    print("worst layer; process seconds of all layers, shapes that are alike once.\n")
    print("| design | mapping | cycles | over exact | worst layer | s |\n|---|---|---|---|---|---|")
    for name in asked.designs:
        design = load_design(name)
        assert isinstance(design, CoreDesign)
        sums = measure(design, asked.network)
        over = np.array(sums.cycles) / sums.cycles[2]
        for way, said in enumerate(SEARCHES):
            print(
                f"| {name} | {said} | {sums.cycles[way]:,} | {over[way]:.4f} | "
                f"{sums.worst[way]:.3f} | {sums.seconds[way]:.3f} |"
            )


if __name__ == "__main__":
    main()
