"""Make the SRAM grids of `energy_models` again, every figure by running CACTI.

    python benchmarks/sram_grid.py --cacti cacti/cacti                      # all: a quarter hour
    python benchmarks/sram_grid.py --cacti cacti/cacti --node 45 --cell itrs-lstp
    python benchmarks/sram_grid.py --cacti cacti/cacti --check 20           # twenty points again

`benchmarks/cacti.py` says how to get the binary, and how it is configured.  One file for each node
and cell; with --check nothing is written, and the exit code is 1 if a point has changed.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cacti import SOURCE, TEMPERATURE_K, Bank, Cacti, CactiError
from rich.console import Console
from rich.progress import track

from energy_models.sram_grid import CELLS, FIGURES, NODES_NM, PORTS, file_of

WORD_BITS = (8, 16, 24, 32, 48, 64, 96, 128)
LEAST_DEPTH = 32
LEAST_BITS = 512
FINE_BITS = 2**23
MOST_BITS = 2**28
FIELDS = ("ports", "word_bits", "depth", *FIGURES)


def depths(word_bits: int) -> Iterator[int]:
    """Powers of two and what lies halfway, up to 1 MiB; powers of two alone up to 32 MiB.

    Nothing under 32 words or 64 bytes: there CACTI finds no organisation, or refuses.
    """
    depth = LEAST_DEPTH
    while word_bits * depth <= MOST_BITS:
        halfway = depth * 3 // 2
        for each in (depth, halfway):
            bits = word_bits * each
            if LEAST_BITS <= bits <= (MOST_BITS if each == depth else FINE_BITS):
                yield each
        depth *= 2


def banks(node_nm: int, cell: str) -> list[Bank]:
    """All points of one file."""
    return [
        Bank(node_nm=node_nm, cell=cell, ports=ports, word_bits=word_bits, depth=depth)
        for ports in PORTS
        for word_bits in WORD_BITS
        for depth in depths(word_bits)
    ]


def header(cacti: Cacti, node_nm: int, cell: str) -> str:
    """What the figures are and where they are from."""
    return (
        f"# source = {SOURCE}\n"
        f"# command = python benchmarks/sram_grid.py --cacti PATH --node {node_nm} --cell {cell}\n"
        f"# node_nm = {node_nm}\n"
        f"# cell = {cell}\n"
        f"# voltage_v = {cacti.voltage_v(node_nm, cell):g}\n"
        f"# temperature_k = {TEMPERATURE_K}\n"
    )


def write_grid(cacti: Cacti, node_nm: int, cell: str, console: Console) -> None:
    """Measure all points of a node and cell, and keep them; says which CACTI refuses."""
    lines = [header(cacti, node_nm, cell), ",".join(FIELDS) + "\n"]
    for bank in track(banks(node_nm, cell), f"{cell} {node_nm} nm", console=console):
        try:
            found = cacti.measure(bank)
        except CactiError as error:
            console.print(f"left out: {bank}: {error}")
            continue
        figures = ",".join(f"{found[name]:.6g}" for name in FIGURES)
        lines.append(f"{bank.ports},{bank.word_bits},{bank.depth},{figures}\n")
    file_of(node_nm, cell).write_text("".join(lines), encoding="utf-8")


def check(cacti: Cacti, files: Sequence[tuple[int, str]], count: int, console: Console) -> bool:
    """Measure `count` points of the files again, chosen at random; whether all are as kept."""
    kept = [(node, cell, row) for node, cell in files for row in _rows(file_of(node, cell))]
    same = True
    for node_nm, cell, row in random.Random(0).sample(kept, min(count, len(kept))):
        bank = Bank(
            node_nm=node_nm, cell=cell, ports=row["ports"],
            word_bits=int(row["word_bits"]), depth=int(row["depth"]),
        )  # fmt: skip
        found = cacti.measure(bank)
        for name in FIGURES:
            if f"{found[name]:.6g}" != row[name]:
                same = False
                console.print(f"{bank}: {name} is {found[name]:.6g}, kept {row[name]}")
    return same


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make or check the grids."""
    parser = argparse.ArgumentParser(description="Make the SRAM grids by running CACTI.")
    parser.add_argument("--cacti", type=Path, required=True, help="the binary")
    parser.add_argument("--node", type=int, choices=NODES_NM, help="only this one")
    parser.add_argument("--cell", choices=CELLS, help="only this one")
    parser.add_argument("--check", type=int, metavar="COUNT", help="points to measure again")
    options = parser.parse_args(arguments)
    if not options.cacti.is_file():
        parser.error(f"no CACTI binary at {options.cacti}; benchmarks/cacti.py says how to get one")
    cells = [options.cell] if options.cell else CELLS
    nodes = [options.node] if options.node else NODES_NM
    files = [(node_nm, cell) for cell in cells for node_nm in nodes]
    console, cacti = Console(stderr=True), Cacti(options.cacti)
    if options.check is not None:
        return 0 if check(cacti, files, options.check, console) else 1
    for node_nm, cell in files:
        write_grid(cacti, node_nm, cell, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
