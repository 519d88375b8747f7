"""Bytes that cross the ofmap port beside the bytes computed, network by network.

    python benchmarks/ofmap_words.py > benchmarks/ofmap_words.md      half a minute

Outputs leave packed into whole words (docs/adr/0013-packed-ofmap.md).  *Computed* are the bits of
the values, and of the scales of their vectors where they have any; *a row a word* is what crossed
when every row of sums that was read made a word of its own.
"""

from __future__ import annotations

from math import ceil

from archsim.errors import InputError
from archsim.machine.registry import load_design
from archsim.machines.vsq.design import Vsq
from archsim.tiled import commands as cmd
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from archsim.tiled.walk import walk_layer
from workloads.builtin import builtin, networks
from workloads.layers import Conv2d, MatMul

DESIGNS = ("edge-16", "cloud-128", "tpu-v1", "volta", "vsq-5nm")
GOAL = 1.1


def computed_bits(design: CoreDesign, layer: Conv2d | MatMul) -> int:
    """Bits of a layer's outputs."""
    problem = design.numerics.problem(layer)
    pixels = problem.images * problem.groups * problem.out_height * problem.out_width
    if isinstance(design, Vsq):
        form = design.output.form
        scales = ceil(problem.filters / (form.vector or 1)) * (form.scale_bits or 0)
        return pixels * (problem.filters * form.bits + scales)
    lane_bits = next(port.lane_bits for port in design.data_ports if port.name == "ofmap")
    return pixels * problem.filters * lane_bits[0]


def network_bytes(design: CoreDesign, name: str) -> tuple[float, int, int]:
    """Of a built-in network: bytes computed, bytes moved, and moved if a row were a word."""
    word_bytes = -(-design.word_bits("ofmap") // 8)
    bits, words, rows = 0, 0, 0
    for layer in builtin(name).matrix_layers:
        problem = design.numerics.problem(layer)
        tiling = plan_tiling(design, layer, None)
        tiles = walk_layer(problem, tiling, design.machine)
        bits += computed_bits(design, layer)
        words += int(tiles[:, cmd.OUTPUT_WORDS].sum())
        rows += int((tiles[:, cmd.OUTPUT_ROWS] * tiles[:, cmd.LAST_K]).sum())
    return bits / 8, words * word_bytes, rows * word_bytes


def main() -> None:
    """Print the page."""
    print("# The ofmap port: bytes moved and bytes computed\n")
    print("Made by `python benchmarks/ofmap_words.py`. *Computed*: bits of the outputs, with the")
    print("scales of vectors. *Moved*: whole words that cross the port. *A row a word*: moved if")
    print("rows were not packed. All in MB.\n")
    print("| network | design | computed | moved | moved / computed | a row a word |")
    print("|---|---|--:|--:|--:|--:|")
    worst = 0.0
    for name in networks():
        for design_name in DESIGNS:
            design = load_design(design_name)
            assert isinstance(design, CoreDesign)
            try:
                computed, moved, rows = network_bytes(design, name)
            except InputError as error:
                reason = str(error).rpartition(": ")[2]
                print(f"| {name} | {design_name} | does not fit: {reason} | | | |")
                continue
            worst = max(worst, moved / computed)
            print(
                f"| {name} | {design_name} | {computed / 1e6:.3f} | {moved / 1e6:.3f} "
                f"| {moved / computed:.4f} | {rows / 1e6:.3f} |"
            )
    print(f"\nThe largest ratio is {worst:.4f}; the goal is {GOAL}.")


if __name__ == "__main__":
    main()
