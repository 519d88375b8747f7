"""What room for more words in compressed memories is worth: `expansion` from 1 to 8.

    python benchmarks/compression_expansion.py     three minutes; prints the table of docs/boveda.md

A half of a compressed scratchpad has so many rows, and a directory for rows * expansion words: on
`edge-16`, with two trained networks on a photograph and ResNet-50 with operands drawn from a normal
distribution, and on a machine of 16 bits with the number format that leaves the most bits
(`archsim.papers.boveda_machines`).  IARAM and OARAM of the sparse core, on 4 x 4 PEs, have rows *
expansion entries of widths, indices and flags.

Everything is over plain memories of the same capacity, so that a directory's bits come on top:
stored bits are rows and entries that are in use, of ifmaps, and of weights (of the sparse core:
ofmaps); under each expansion stand off-chip bytes, cycles, energy and area, of the whole machine.
Layers are mapped by the rough mapper, for few bytes: with the fast one, for few cycles, a machine
that its array binds moves as many with a compressed memory as without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rows import chosen

from archsim.cli.choose import WorkloadOptions, load_workload
from archsim.energy import account
from archsim.machine.design import Design
from archsim.machine.registry import with_settings
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.machines.systolic.design import EDGE_16
from archsim.papers.boveda_machines import MACHINES, with_memories, workload
from archsim.result import NetworkResult
from archsim.robust.on_machine import mapped
from archsim.simulate import simulate
from workloads.layers import Network

EXPANSIONS = (1, 2, 3, 4, 8)
SPARSE = replace(SCNN_ISCA17, grid_rows=4, grid_columns=4)
TRAINED = ("squeezenet-imagenet", "face-detection-pruned")
NORMAL = WorkloadOptions(distribution="normal")
SIXTEEN_BITS = "systolic 32 × 32, 16 bits, profiled points"
KIBIBYTES = (16, 64)

Work = tuple[Network, Any]
"""A network and its operands."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of a network on a design.  stored: bits of both operands over those of plain memories."""

    stored: tuple[float, ...] = ()
    off_chip_bytes: float
    cycles: float
    energy_pj: float
    area_um2: float

    def over(self, plain: Figures) -> str:
        """Bytes, cycles, energy and area over those with plain memories."""
        ratios = (
            self.off_chip_bytes / plain.off_chip_bytes,
            self.cycles / plain.cycles,
            self.energy_pj / plain.energy_pj,
            self.area_um2 / plain.area_um2,
        )
        return ", ".join(f"{ratio:.3f}" for ratio in ratios)


def figures(design: Design, work: Work, operands: tuple[str, ...] = ()) -> Figures:
    """operands: those whose memories are compressed."""
    result = simulate(design, work[0], operands=work[1], **mapped(design)).without_values()
    costs = account(result)
    assert costs.area_um2, "the technology has areas"
    return Figures(
        stored=tuple(stored(result, one) for one in operands),
        off_chip_bytes=float(sum(result.bytes_moved.values())),
        cycles=float(result.cycles),
        energy_pj=costs.total,
        area_um2=costs.area_um2,
    )


def stored(result: NetworkResult, operand: str) -> float:
    """Bits of an operand over those that plain memories take."""
    bits, plainly = (
        sum(layer.stored[f"{operand}_{what}_bits"] for layer in result.layers if layer.stored)
        for what in ("stored", "plain")
    )
    return bits / plainly


def row(design: Design, work: Work, expansions: Sequence[int] = EXPANSIONS) -> Iterator[str]:
    """Cells of a table: stored bits, and figures for each expansion of a design's memories."""
    sparse = isinstance(design, Scnn)
    operands = ("ifmap", "ofmap") if sparse else ("ifmap", "weight")
    plain, found = figures(design, work), list[Figures]()
    for expansion in expansions:
        changes = [
            f"{memory}_memory.{change}"
            for memory in (("activation",) if sparse else operands)
            for change in ("kind=boveda", f"expansion={expansion}")
        ]
        found.append(figures(with_settings(design, changes), work, operands))
    shares = zip(*(one.stored for one in found), strict=True)
    yield ", ".join(f"{min(some):.2f} to {max(some):.2f}" for some in shares)
    yield from (one.over(plain) for one in found)


def cases() -> Iterator[tuple[str, Design, Work]]:
    """Title, design with plain memories, network and operands."""
    drawn = load_workload("resnet50", NORMAL)
    trained = [(name, load_workload(name, WorkloadOptions())) for name in TRAINED]
    for name, work in (*trained, ("resnet50, drawn", drawn)):
        yield f"edge-16, {name}", EDGE_16, (work.network, work.operands(EDGE_16.intake))
    design, form = MACHINES[SIXTEEN_BITS]
    for size in KIBIBYTES:
        title = f"{SIXTEEN_BITS}, {size} KiB each"
        yield title, with_memories(design, size), workload(form)
    for name, work in trained:
        yield f"scnn, 4 × 4, {name}", SPARSE, (work.network, work.operands(SPARSE.intake))


def main() -> None:
    print(f"| | stored bits | {' | '.join(map(str, EXPANSIONS))} |")
    print(f"|{'---|' * (2 + len(EXPANSIONS))}")
    for title, design, work in cases():
        print(f"| {title} | {' | '.join(row(design, work))} |", flush=True)


if __name__ == "__main__":
    chosen(__doc__)
    main()
