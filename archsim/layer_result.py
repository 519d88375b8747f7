"""What a simulation answers for a layer: frozen, additive, without where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy.typing as npt

from archsim.causes import CAUSES
from archsim.layer.problem import Tiling
from archsim.numbers import IntArray
from energy_models.frozen import frozen

if TYPE_CHECKING:
    from workloads.layers import Conv2d, MatMul, VectorWork

TRAFFIC = ("ifmap", "weight", "bias", "ofmap")


class Actions(Mapping[str, int]):
    """Action counts: a mapping with `+`."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def updated(self, counts: Mapping[str, int]) -> Actions:
        """With these counts too, or instead."""
        return Actions({**self._counts, **counts})

    def __add__(self, other: Mapping[str, int]) -> Actions:
        names = [*self, *(name for name in other if name not in self)]
        return Actions({name: self.get(name, 0) + other.get(name, 0) for name in names})

    def __repr__(self) -> str:
        return f"Actions({self._counts})"


_NO_CYCLES: Mapping[str, int] = frozen(dict.fromkeys(CAUSES, 0))
_NO_BYTES: Mapping[str, int] = frozen(dict.fromkeys(TRAFFIC, 0))
_NO_ACTIONS, _NOTHING, _NO_MAPS = Actions(), frozen(dict[str, int]()), frozen(dict[str, IntArray]())
"""What a result holds that was not told of it: one of each, as none can change."""


@dataclass(frozen=True, kw_only=True)
class AsFile:
    """A layer's ofmap as a quantised file makes it (`workloads.file_scaling`).

    values: of the ofmap.  differing: those that the core's own rounding makes otherwise, None where
    the file wants the sums; unlike_runtime: those that ONNX Runtime made otherwise, None without a
    run of it.  lacks: what the file needs and the core has not.
    """

    values: int
    differing: int | None
    unlike_runtime: int | None
    lacks: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Flat figures, as a layer has them."""
        return {
            "ofmap_values": self.values,
            "differing_values": self.differing,
            "unlike_runtime_values": self.unlike_runtime,
            "core_lacks": "; ".join(self.lacks),
        }


class Own(TypedDict, total=False):
    """What layers of one shape may differ in."""

    name: str
    kind: str
    macs: int
    work: Conv2d | MatMul | None


@dataclass(frozen=True, kw_only=True)
class LayerResult:
    """One layer.  Cycles are of the core's clock; bytes are those that cross its ports.

    Vector work is carried with its operations and takes no cycles of the array.  products: those
    that a sparse machine did multiply; None where it is every MAC.  per_pe: cycles of each PE
    [rows, columns] by what it did (`archsim.plots.pe_maps`), of machines whose PEs differ.
    stored: of every compressed memory that values were given for, the bits that the operand's tiles
    (of a sparse machine its lists) take of it, widths and directory included, and those that they
    would take plainly (<operand>_stored_bits, <operand>_plain_bits).  weight_origin, ifmap_origin:
    where the operands are from (`workloads.operands.Origin`, or "none").  ofmap: integers of a core
    of integers, numbers of one of floats; of a quantised file's operands the integers that the
    file makes, of which as_file tells.

    Layers of one shape may share what they hold, so nothing of it can be written: copy it first.
    """

    name: str
    kind: str
    macs: int
    macs_per_cycle: int
    cycles: int = 0
    serial_cycles: int = 0
    where: Mapping[str, int] = field(default_factory=lambda: _NO_CYCLES)
    bytes_moved: Mapping[str, int] = field(default_factory=lambda: _NO_BYTES)
    actions: Actions = field(default_factory=lambda: _NO_ACTIONS)
    tiles: int = 0
    folds: int = 0
    tiling: Tiling | None = None
    vector_operations: int = 0
    operands: str = "none"
    weight_origin: str = "none"
    ifmap_origin: str = "none"
    as_file: AsFile | None = None
    products: int | None = None
    stored: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    per_pe: Mapping[str, IntArray] = field(
        default_factory=lambda: _NO_MAPS, repr=False, compare=False
    )
    ofmap: npt.NDArray[Any] | None = field(default=None, repr=False, compare=False)
    work: Conv2d | MatMul | VectorWork | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("where", "bytes_moved", "stored"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.per_pe is not _NO_MAPS:
            maps = {name: _unwritable(one) for name, one in self.per_pe.items()}
            object.__setattr__(self, "per_pe", frozen(maps))
        if self.ofmap is not None:
            object.__setattr__(self, "ofmap", _unwritable(self.ofmap))

    @property
    def utilization(self) -> float:
        """MACs (of a sparse machine, products) over those possible in the layer's cycles."""
        return self.multiplied / (self.cycles * self.macs_per_cycle) if self.cycles else 0.0

    @property
    def multiplied(self) -> int:
        """Products that were made: every MAC, or what a sparse machine did of them."""
        return self.macs if self.products is None else self.products

    @property
    def stall_cycles(self) -> int:
        """Cycles in which no moving word entered the array."""
        return self.cycles - self.where["computing"]

    @property
    def total_bytes(self) -> int:
        """Bytes that crossed all ports."""
        return sum(self.bytes_moved.values())

    @property
    def groups_side_by_side(self) -> int:
        """Groups of the layer that lie side by side on the array."""
        return self.tiling.groups if self.tiling else 1

    def told(self, **own: Unpack[Own]) -> LayerResult:
        """The same of another layer of its shape, or with its work: what is held, and cannot
        change, is shared and not looked at again, as `dataclasses.replace` would."""
        other = object.__new__(LayerResult)
        other.__dict__.update(self.__dict__, **own)
        return other

    def with_operands(self, operands: Any, **changes: Any) -> LayerResult:
        """The same, saying how and from where a layer's `operands` came, and other changes."""
        return replace(
            self,
            operands=operands.scheme,
            weight_origin=operands.weight_origin,
            ifmap_origin=operands.ifmap_origin,
            **changes,
        )

    def record(self) -> dict[str, Any]:
        """Flat figures for tables and JSON; derived ones included, values left out."""
        return {
            "name": self.name,
            "kind": self.kind,
            "macs": self.macs,
            "cycles": self.cycles,
            "serial_cycles": self.serial_cycles,
            "stall_cycles": self.stall_cycles,
            "utilization": self.utilization,
            **dict(self.where),
            **{f"{name}_bytes": count for name, count in self.bytes_moved.items()},
            "tiles": self.tiles,
            "folds": self.folds,
            "products": self.multiplied,
            **dict(self.stored),
            "tiling": asdict(self.tiling) if self.tiling else None,
            "vector_operations": self.vector_operations,
            "operands": self.operands,
            "weight_origin": self.weight_origin,
            "ifmap_origin": self.ifmap_origin,
            **(self.as_file.record() if self.as_file else {}),
            "actions": dict(self.actions),
            **({"per_pe": _lists(self.per_pe)} if self.per_pe else {}),
        }


def _unwritable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, through which it cannot be written."""
    seen = values.view()
    seen.flags.writeable = False
    return seen


def _lists(maps: Mapping[str, IntArray]) -> dict[str, list[list[int]]]:
    return {name: counts.tolist() for name, counts in maps.items()}


__all__ = ["TRAFFIC", "Actions", "AsFile", "LayerResult"]
