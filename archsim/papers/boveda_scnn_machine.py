"""What Boveda's memories do for SCNN: IARAM and OARAM of every size, plain and compressed.

The pruned SqueezeNet on its photograph, with values of 8 bits, since products of more would not fit
SCNN's accumulators of 24; containers of 16 bits, the published core's, and of 8.  On 64 PEs nearly
all layers fit, so traffic hardly falls; on 16 PEs planes are cut into strips, each of which loads
the weights anew.  A size that a kind of memory refuses is one in which even the smallest strip of
some layer does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from archsim.energy import account
from archsim.errors import InputError
from archsim.machines.scnn.design import SCNN_ISCA17, Scnn
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.papers.boveda_gains import change, energies
from archsim.papers.boveda_tensors import pruned_squeezenet
from archsim.papers.figures import Progress, Row, silent, unpublished
from archsim.simulate import simulate
from workloads.layers import Network
from workloads.onnx_import import import_onnx
from workloads.operands import Operands, from_onnx
from workloads.packaged import packaged
from workloads.sparse import NETWORK

KIBIBYTES = (4, 5, 6, 8, 10, 16, 32)
"""Of IARAM and of OARAM, in each PE."""

VALUE_BITS = 8

_SMALL = replace(SCNN_ISCA17, grid_rows=4, grid_columns=4)

SPARSE_MACHINES: Mapping[str, Scnn] = {
    "SCNN 8 × 8, containers of 16 bits": SCNN_ISCA17,
    "SCNN 4 × 4, containers of 16 bits": _SMALL,
    "SCNN 4 × 4, containers of 8 bits": replace(_SMALL, operand_bits=8),
}

MEMORIES = ("iaram", "oaram", "memories", "pack", "unpack")
"""Components of IARAM and OARAM, with what packs and unpacks."""

Key = tuple[int, bool]
"""Size in KiB; whether memories compress values."""


@dataclass(frozen=True, kw_only=True)
class SparsePoint:
    """The network on a core.  passes: of all layers; off_chip_bytes: of all ports; memories_pj,
    total_pj: energy of `MEMORIES`, and of everything."""

    passes: int
    off_chip_bytes: float
    cycles: float
    memories_pj: float
    total_pj: float


def sweep(
    machine: str, kibibytes: Sequence[int] = KIBIBYTES, progress: Progress = silent
) -> dict[Key, SparsePoint]:
    """A machine of `SPARSE_MACHINES` with memories of every size; those that it refuses are left
    out."""
    network, operands = _workload()
    found: dict[Key, SparsePoint] = {}
    for size in kibibytes:
        progress(f"{machine}: {size} KiB")
        for compressed in (False, True):
            design = with_memories(SPARSE_MACHINES[machine], size, compressed=compressed)
            try:
                found[size, compressed] = _run(design, network, operands)
            except InputError:
                continue
    return found


def with_memories(design: Scnn, kibibytes: int, *, compressed: bool = False) -> Scnn:
    """The design with IARAM and OARAM of `kibibytes` each."""
    size = 1024 * kibibytes
    memory = BovedaStream(group=design.ifmap_lanes) if compressed else design.activation_memory
    return replace(design, iaram_bytes=size, oaram_bytes=size, activation_memory=memory)


@cache
def _workload() -> tuple[Network, Mapping[str, Operands]]:
    model = pruned_squeezenet()
    feeds = packaged(NETWORK).input(0)
    return import_onnx(model), from_onnx(model, feeds, bits=VALUE_BITS)


def _run(design: Scnn, network: Network, operands: Mapping[str, Operands]) -> SparsePoint:
    result = simulate(design, network, operands=operands).without_values()
    costs = account(result)
    near = sum(
        energy for name, energy in costs.by_component.items() if name.partition(".")[0] in MEMORIES
    )
    return SparsePoint(
        passes=sum(layer.tiles for layer in result.layers),
        off_chip_bytes=float(sum(result.bytes_moved.values())),
        cycles=float(result.cycles),
        memories_pj=near,
        total_pj=costs.total,
    )


def machine_rows(machine: str, points: Mapping[Key, SparsePoint]) -> Iterator[Row]:
    """Off-chip traffic with compressed memories, of that with plain ones; where those are refused,
    of the smallest that are not."""
    group = (
        f"pruned SqueezeNet on {machine}: off-chip traffic with compressed IARAM and OARAM, of "
        "plain ones"
    )
    smallest = min((size for size, compressed in points if not compressed), default=None)
    for size in sorted({size for size, compressed in points if compressed}):
        beside = size if (size, False) in points else smallest
        if beside is None:
            continue
        ours, plain = points[size, True], points[beside, False]
        remark = (
            f"{plain.off_chip_bytes / 1e6:.2f} MB plainly; passes {plain.passes} → {ours.passes}; "
            f"cycles {change(ours.cycles, plain.cycles):+.1f} %; "
            + energies(
                change(ours.memories_pj, plain.memories_pj), change(ours.total_pj, plain.total_pj)
            )
        )
        if beside != size:
            remark = f"plain ones of this size are refused, so beside {beside} KiB: {remark}"
        figure = unpublished(
            key=f"{machine}.{size}",
            group=group,
            figure=f"{size} KiB each",
            unit="%",
            source="ours: simulated",
        )
        yield figure.row(100 * ours.off_chip_bytes / plain.off_chip_bytes, remark)


__all__ = ["KIBIBYTES", "SPARSE_MACHINES", "SparsePoint", "machine_rows", "sweep", "with_memories"]
