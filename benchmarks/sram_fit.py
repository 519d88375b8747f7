"""How far the SRAM grids' interpolation is from CACTI, and from what word width banks are split.

    python benchmarks/sram_fit.py                          # the tables of benchmarks/sram_fit.md
    python benchmarks/sram_fit.py --cacti cacti/cacti      # measures the banks again: two minutes

CACTI's own answers for banks that are not in the grids stand in `tests/data/sram_banks.csv`;
with --cacti it is written anew, from the same seed.  `benchmarks/cacti.py` says how to get CACTI.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cacti import SOURCE, TEMPERATURE_K, Bank, Cacti, CactiError
from rich.console import Console
from rich.progress import track
from sram_grid import FINE_BITS

from energy_models.component import Component
from energy_models.interpolation import power_law
from energy_models.sram import WIDEST_BITS, SramEstimator, banks_of
from energy_models.sram_grid import CELLS, FIGURES, NODES_NM, PORTS, Figures, load_grid
from energy_models.table import load_table

KEPT = Path(__file__).parents[1] / "tests" / "data" / "sram_banks.csv"
FIELDS = ("node_nm", "cell", "ports", "word_bits", "depth", *FIGURES)
RANDOM_BANKS = 20
"""Of each node, cell and ports."""

NAMED = ((72, 24 * 8192 // 72), (48, 600))
"""24 KiB of 72-bit words, 600 words of 48 bits."""

WIDE_BITS = (256, 512, 1024, 2048)
WIDE_DEPTHS = (32, 512, 4096, 32768)
DESIGN_MEMORIES = {
    "edge-16 ifmap": (8, 2048, 32),
    "edge-16 weight": (128, 2048, 2),
    "edge-16 accumulator": (512, 512, 2),
    "tpu-v1 ifmap (unified buffer)": (8, 49152, 512),
    "tpu-v1 weight": (2048, 512, 2),
    "tpu-v1 accumulator": (8192, 2048, 2),
}
"""word_bits, depth and number of the memories in `archsim.machines.systolic.design`, all 1r1w."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """CACTI's answer for a bank."""

    bank: Bank
    figures: tuple[float, ...]


def off_grid_banks() -> Iterator[Bank]:
    """Random banks inside the grids, even in the logarithm of depth; then the wide ones."""
    draw = random.Random(20141)
    for node_nm in NODES_NM:
        for cell in CELLS:
            grid = load_grid(node_nm, cell)
            for ports in PORTS:
                sizes = [*NAMED]
                while len(sizes) < RANDOM_BANKS:
                    word_bits = 8 * draw.randint(1, 16)
                    least, most = grid.depths(ports, word_bits)
                    depth = round(2 ** draw.uniform(math.log2(least), math.log2(most)))
                    if depth not in grid.columns[ports].get(word_bits, ()):
                        sizes.append((word_bits, depth))
                for word_bits, depth in sizes:
                    yield Bank(
                        node_nm=node_nm, cell=cell, ports=ports, word_bits=word_bits, depth=depth
                    )  # fmt: skip
    for node_nm in NODES_NM:
        for depth in WIDE_DEPTHS:
            for word_bits in WIDE_BITS:
                yield Bank(
                    node_nm=node_nm, cell=CELLS[0], ports="1rw", word_bits=word_bits, depth=depth
                )  # fmt: skip


def measure(cacti: Cacti, console: Console) -> None:
    """Ask CACTI for all banks and keep its answers."""
    lines = [f"# source = {SOURCE}, {TEMPERATURE_K} K; benchmarks/sram_fit.py --cacti\n"]
    lines.append(",".join(FIELDS) + "\n")
    for bank in track(list(off_grid_banks()), "CACTI", console=console):
        try:
            found = cacti.measure(bank)
        except CactiError as error:
            console.print(f"left out: {bank}: {error}")
            continue
        sizes = (bank.node_nm, bank.cell, bank.ports, bank.word_bits, bank.depth)
        figures = [f"{found[name]:.6g}" for name in FIGURES]
        lines.append(",".join([*map(str, sizes), *figures]) + "\n")
    KEPT.write_text("".join(lines), encoding="utf-8")


def kept() -> list[Measured]:
    """CACTI's answers as they stand in the file."""
    with KEPT.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [
        Measured(
            bank=Bank(
                node_nm=int(row["node_nm"]), cell=row["cell"], ports=row["ports"],
                word_bits=int(row["word_bits"]), depth=int(row["depth"]),
            ),
            figures=tuple(float(row[name]) for name in FIGURES),
        )
        for row in rows
    ]  # fmt: skip


def errors(measured: Iterable[Measured]) -> list[list[float]]:
    """For each figure, |interpolated / CACTI's − 1| of every bank."""
    found: list[list[float]] = [[] for _ in FIGURES]
    for one in measured:
        bank = one.bank
        grid = load_grid(bank.node_nm, bank.cell)
        figures, _ = grid.figures(bank.ports, bank.word_bits, bank.depth)
        for into, ours, theirs in zip(found, figures, one.figures, strict=True):
            into.append(abs(ours / theirs - 1))
    return found


def columns_of(cell: str) -> Iterator[Mapping[int, Figures]]:
    """Every column of a cell's grids: the figures by depth."""
    for node_nm in NODES_NM:
        for by_width in load_grid(node_nm, cell).columns.values():
            yield from by_width.values()


def left_out() -> list[list[float]]:
    """The same for every inner point of the grids, told from its two neighbours in depth."""
    found: list[list[float]] = [[] for _ in FIGURES]
    for column in (one for cell in CELLS for one in columns_of(cell)):
        depths = list(column)
        for low, at, high in zip(depths, depths[1:], depths[2:], strict=False):
            ends = zip(column[low], column[at], column[high], strict=True)
            for into, (a, true, b) in zip(found, ends, strict=True):
                into.append(abs(power_law((low, a), (high, b), at) / true - 1))
    return found


def row_of(what: str, found: Sequence[Sequence[float]]) -> str:
    """A line of the table: median, 90th percentile and worst of each figure."""
    cells = [
        f"{statistics.median(each):.1%} / {statistics.quantiles(each, n=10)[-1]:.1%} / "
        f"{max(each):.1%}"
        for each in found
    ]
    return f"| {what} | {len(found[0])} | {' | '.join(cells)} |"


def error_table(measured: Sequence[Measured]) -> Iterator[str]:
    """Errors of interpolation."""
    yield "| banks | number | read | write | area | leakage |"
    yield "|-|-|-|-|-|-|"
    inside = [one for one in measured if one.bank.word_bits <= WIDEST_BITS]
    yield row_of("random", errors(inside))
    for field, values in (("cell", CELLS), ("ports", PORTS), ("node_nm", NODES_NM)):
        for value in values:
            some = [one for one in inside if getattr(one.bank, field) == value]
            yield row_of(f"of these, {value}{' nm' if field == 'node_nm' else ''}", errors(some))
    fine = [one for one in inside if one.bank.word_bits * one.bank.depth <= FINE_BITS]
    yield row_of("of these, up to 1 MiB", errors(fine))
    yield row_of("of these, larger", errors(one for one in inside if one not in fine))
    yield row_of("points of the grid, told from their neighbours in depth", left_out())


def fall_table() -> Iterator[str]:
    """How often, and to what part of it, a figure falls where only the depth grows."""
    yield "| cell, depth | pairs | read | write | area | leakage |"
    yield "|-|-|-|-|-|-|"
    for cell in CELLS:
        for factor in (1.5, 2, 4, 8):
            ratios: list[list[float]] = [[] for _ in FIGURES]
            for column in columns_of(cell):
                for depth, figures in column.items():
                    for into, a, b in zip(
                        ratios, figures, column.get(int(depth * factor), ()), strict=False
                    ):
                        into.append(b / a)
            falls = [[ratio for ratio in each if ratio < 1] for each in ratios]
            cells = [f"{len(each)}, {min(each):.2f}" if each else "none" for each in falls]
            yield f"| {cell} × {factor:g} | {len(ratios[0])} | {' | '.join(cells)} |"


def wide_table(measured: Sequence[Measured]) -> Iterator[str]:
    """One wide CACTI bank over banks of 128 bits side by side: read energy and area."""
    by_bank = {one.bank: one.figures for one in measured}
    yield "| node, depth | " + " | ".join(f"{width} bits" for width in WIDE_BITS) + " |"
    yield "|-|" + "-|" * len(WIDE_BITS)
    for node_nm in NODES_NM:
        narrow = load_grid(node_nm, CELLS[0]).columns["1rw"][WIDEST_BITS]
        for depth in WIDE_DEPTHS:
            ratios: list[str] = []
            for width in WIDE_BITS:
                wide = Bank(
                    node_nm=node_nm, cell=CELLS[0], ports="1rw", word_bits=width, depth=depth
                )
                count = width // WIDEST_BITS
                read, area = (by_bank[wide][i] / (count * narrow[depth][i]) for i in (0, 2))
                ratios.append(f"{read:.2f}, {area:.2f}")
            yield f"| {node_nm} nm, {depth} words | {' | '.join(ratios)} |"


def published_table() -> Iterator[str]:
    """Beside Horowitz's caches, which are of the same node and another voltage."""
    estimator, table = SramEstimator(node_nm=45), load_table("horowitz-2014")
    yield "| 64-bit words, 45 nm | published pJ, an access | read pJ | write pJ |"
    yield "|-|-|-|-|"
    for entry in table.entries:
        if entry.component == "sram":
            depth = int(entry.attributes["depth"])
            sizes = {"word_bits": 64, "depth": depth, "read_ports": 0, "write_ports": 0}
            one = Component(name="cache", kind="sram", attributes=sizes)
            read, write = (estimator.energy_pj(one, action).value for action in ("read", "write"))
            yield f"| {depth * 8 // 1024} KiB | {entry.value:g} | {read:.3g} | {write:.3g} |"


def design_table(node_nm: int) -> Iterator[str]:
    """What the memories of our designs cost."""
    estimator = SramEstimator(node_nm=node_nm)
    yield (
        f"| {node_nm} nm | bits × words × number | banks in each "
        "| read pJ | a byte | write pJ | all, mm² | all, mW |"
    )
    yield "|-|-|-|-|-|-|-|-|"
    for name, (word_bits, depth, count) in DESIGN_MEMORIES.items():
        sizes = {"word_bits": word_bits, "depth": depth, "read_ports": 1, "write_ports": 1}
        one = Component(name=name, kind="sram", count=count, attributes=sizes)
        read, write = (estimator.energy_pj(one, action).value for action in ("read", "write"))
        area, leakage = estimator.area_um2(one).value, estimator.leakage_mw(one).value
        banks = banks_of(word_bits, depth)
        yield (
            f"| {name} | {word_bits} × {depth} × {count} | {banks.count} × {banks.word_bits} bits "
            f"| {read:.3g} | {read * 8 / word_bits:.3g} | {write:.3g} "
            f"| {count * area / 1e6:.3g} | {count * leakage:.3g} |"
        )


def tables(measured: Sequence[Measured]) -> list[list[str]]:
    """All that `benchmarks/sram_fit.md` shows, line by line."""
    made = (error_table(measured), fall_table(), wide_table(measured), published_table())
    return [list(table) for table in (*made, design_table(45), design_table(22))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; first measure again if CACTI is given."""
    parser = argparse.ArgumentParser(description="Compare the SRAM grids with CACTI.")
    parser.add_argument("--cacti", type=Path, help="the binary: measure again")
    options = parser.parse_args(arguments)
    if options.cacti is not None:
        if not options.cacti.is_file():
            parser.error(f"no CACTI binary at {options.cacti}; see benchmarks/cacti.py")
        measure(Cacti(options.cacti), Console(stderr=True))
    for table in tables(kept()):
        print(*table, "", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
