"""What Boveda's memories do for whole machines: off-chip traffic, cycles, energy over capacity.

Two dense cores of 1,024 MACs a cycle, a systolic array (as the TPU's) and one of dot-product units
(as a tensor core), with 16 bytes a cycle from off chip, run SqueezeNet on its photograph.  Their
ifmap and weight memories are of equal capacity, plain or compressed (`archsim.memories.boveda`);
a compressed one holds larger tiles, so that less is fetched twice.  Off-chip data are not
compressed.

A compressed memory's size is that of its rows and its directory.  `boveda_gains` compares sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from archsim.energy import account
from archsim.machines.systolic.design import Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memory import OffChip, Scratchpad
from archsim.papers.boveda_schemes import Scheme, schemes
from archsim.papers.boveda_tensors import real_tensors
from archsim.papers.figures import Progress, silent
from archsim.simulate import simulate
from archsim.tiled.design import CoreDesign, kibibytes
from workloads.layers import Network
from workloads.onnx_import import import_onnx
from workloads.operands import Operands, from_onnx
from workloads.packaged import packaged
from workloads.sparse import NETWORK

CAPACITIES = (16, 32, 64, 128, 256, 512, 1024)
"""KiB of each of the two memories."""

GROUP = 16
ACCUMULATOR_KIBIBYTES = 256

_OFF_CHIP = OffChip(bytes_per_cycle=16.0, latency_cycles=100)
_SYSTOLIC = Systolic(rows=32, columns=32, off_chip=_OFF_CHIP)
_WIDE_SYSTOLIC = replace(_SYSTOLIC, operand_bits=16, accumulator_bits=32)
_TENSOR_CORE = TensorCore(
    octets=4,
    group_columns=8,
    rows=32,
    length=16,
    operand="int8",
    accumulator="int32",
    off_chip=_OFF_CHIP,
)

Format = Literal["tensor-8", "profiled", "strict"]

MACHINES: Mapping[str, tuple[CoreDesign, Format]] = {
    "systolic 32 × 32, 8 bits, a scale a tensor": (_SYSTOLIC, "tensor-8"),
    "systolic 32 × 32, 16 bits, profiled points": (
        _WIDE_SYSTOLIC,
        "profiled",
    ),
    "systolic 32 × 32, 16 bits, points that keep all": (_WIDE_SYSTOLIC, "strict"),
    "64 units of 16 products, 8 bits, a scale a tensor": (_TENSOR_CORE, "tensor-8"),
}
"""Machine and number format, by name."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """SqueezeNet on a machine with memories of one size.

    size_bytes: of both memories, directories included.  off_chip_bytes: of all ports.
    memories_pj, total_pj: energy of the ifmap and weight memories with what packs, finds, unpacks
    and aligns words, and of everything, off-chip memory included; None where they are not asked
    for.
    """

    size_bytes: float
    off_chip_bytes: float
    cycles: float
    memories_pj: float | None = None
    total_pj: float | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """Plain and compressed memories of `kibibytes` each, without directories."""

    kibibytes: int
    plain: Point
    compressed: Point


def sweep(
    machine: str, capacities: Sequence[int] = CAPACITIES, progress: Progress = silent
) -> tuple[Step, ...]:
    """A machine of MACHINES with memories of every capacity, in rising order."""
    design, form = MACHINES[machine]
    network, operands = workload(form)
    steps: list[Step] = []
    for capacity in sorted(capacities):
        progress(f"{machine}: {capacity} KiB")
        steps.append(
            Step(
                kibibytes=capacity,
                plain=_run(with_memories(design, capacity), network, None),
                compressed=_run(
                    with_memories(design, capacity, compressed=True), network, operands
                ),
            )
        )
    return tuple(steps)


def with_memories(design: CoreDesign, capacity: int, *, compressed: bool = False) -> CoreDesign:
    """The design with ifmap and weight memories of `capacity` KiB each."""

    def memory(lanes: int) -> Scratchpad:
        if not compressed:
            return kibibytes(capacity)
        return Boveda(capacity_bytes=capacity * 1024, group=min(GROUP, lanes))

    lanes = {port.name: port.lanes for port in design.data_ports}
    return replace(
        design,
        ifmap_memory=memory(lanes["ifmap"]),
        weight_memory=memory(lanes["weight"]),
        accumulator_memory=kibibytes(ACCUMULATOR_KIBIBYTES),
    )


def _run(design: CoreDesign, network: Network, operands: Mapping[str, Operands] | None) -> Point:
    """Mapped for few bytes, which the paper counts; plain memories need no values."""
    result = simulate(design, network, operands=operands, mapper="rough").without_values()
    costs = account(result)
    near = sum(
        energy
        for name, energy in costs.by_component.items()
        if name.partition(".")[0] in ("ifmap", "weight")
    )
    return Point(
        size_bytes=sum(memory_bytes(design, name) for name in ("ifmap", "weight")),
        off_chip_bytes=float(sum(result.bytes_moved.values())),
        cycles=float(result.cycles),
        memories_pj=near,
        total_pj=costs.total,
    )


def memory_bytes(design: CoreDesign, operand: str) -> float:
    """Of an operand's memory: both halves, and the directory where there is one."""
    return design.memory(operand).total_bits(design.use(operand)) / 8


@cache
def workload(form: Format) -> tuple[Network, Mapping[str, Operands]]:
    """SqueezeNet, and its operands on a photograph in a number format."""
    known = packaged(NETWORK)
    model, feeds = known.model(), known.input(0)
    network = import_onnx(model)
    if form == "tensor-8":
        return network, from_onnx(model, feeds, bits=8)
    whole = from_onnx(model, feeds, bits=16)
    return network, _in_format(whole, schemes("photographs")[form])


def _in_format(operands: Mapping[str, Operands], scheme: Scheme) -> dict[str, Operands]:
    """The same layers with integers of another format; their results are not looked at."""
    found = dict(operands)
    for one in real_tensors("photographs"):
        values = np.ascontiguousarray(scheme.integers(one).transpose(0, 3, 1, 2))
        part = {"weight": values} if one.kind == "weights" else {"ifmap": values}
        found[one.layer] = replace(found[one.layer], bias=None, **part)
    return found


__all__ = [
    "CAPACITIES",
    "MACHINES",
    "Point",
    "Step",
    "memory_bytes",
    "sweep",
    "with_memories",
    "workload",
]
