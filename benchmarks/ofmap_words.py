"""Bytes that cross the ofmap port beside the bytes computed, network by network.

    python benchmarks/ofmap_words.py > benchmarks/ofmap_words.md      two minutes

Outputs leave packed into whole words (docs/adr/0013-packed-ofmap.md).  *Computed* are the bits of
the values, and of the scales of their vectors where they have any; *a row a word* is what crossed
when every row of sums that was read made a word of its own.

The sparse core's words are vectors of lists, one list a PE and filter (docs/contracts/scnn.md):
they leave zeros out, carry indices, and are not filled up by the next list.
"""

from __future__ import annotations

from math import ceil

from rows import chosen

from archsim.errors import InputError
from archsim.machine.registry import load_design
from archsim.machines.vsq.design import Vsq
from archsim.simulate import simulate
from archsim.tiled import commands as cmd
from archsim.tiled.design import CoreDesign
from archsim.tiled.timing import plan_tiling
from archsim.tiled.walk import walk_layer
from workloads.builtin import builtin, networks
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic

DESIGNS = ("edge-16", "cloud-128", "tpu-v1", "volta", "vsq-5nm")
GOAL = 1.1
SPARSE, DENSITY = ("alexnet", "resnet18", "squeezenet1.1"), 0.4


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


def sparse_bytes(name: str) -> tuple[float, int, float, str]:
    """Of a network on `scnn`: bytes computed and moved, the largest share of a layer and its name.

    Operands are drawn; computed are the outputs' values, zeros among them, without indices.
    """
    layers = builtin(name).matrix_layers
    drawn = {one.name: synthetic(one, bits=8, density=DENSITY, seed=1) for one in layers}
    found = simulate("scnn", name, operands=drawn)
    moved = {one.name: one.bytes_moved["ofmap"] for one in found.layers}
    computed = {one.name: 2 * one.ofmap_elements for one in layers}
    worst = max(computed, key=lambda one: moved[one] / computed[one])
    share = moved[worst] / computed[worst]
    return sum(computed.values()), sum(moved[one] for one in computed), share, worst


def print_sparse() -> None:
    """The sparse core's table."""
    print("\n## The sparse core\n")
    print(
        f"`scnn`, operands drawn at a density of {DENSITY} each. *Moved*: vectors of four lanes of"
    )
    print("20 bits and a flag, of which the last of a PE's and filter's list may have empty lanes:")
    print("three of four where a PE owns one output of a filter. In MB.\n")
    print("| network | computed | moved | moved / computed | most of a layer |")
    print("|---|--:|--:|--:|---|")
    for name in SPARSE:
        computed, moved, share, worst = sparse_bytes(name)
        ratio = moved / computed
        print(f"| {name} | {computed / 1e6:.3f} | {moved / 1e6:.3f} | {ratio:.3f} "
              f"| {share:.2f} ({worst}) |")  # fmt: skip


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
    print_sparse()


if __name__ == "__main__":
    chosen(__doc__)
    main()
