"""What Boveda's layout is told of a tensor, and what it takes: format, stream, footprint.

The layout itself: `archsim.codecs.boveda`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError, require, require_positive, require_whole
from archsim.numbers import IntArray, ceil_div

CONTAINERS = (4, 8, 16)

Bytes = npt.NDArray[np.uint8]
Containers = npt.NDArray[np.unsignedinteger[Any]]
Values = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class BovedaFormat:
    """How a tensor is stored.

    group: G, values along the last axis that share a width.  container_bits: B, 4, 8 or 16.
    signed: values are kept as sign and magnitude; False for what comes out of a ReLU.
    metadata: "plain" is log2 B bits a group; "same" is 1 bit that says "as the group before", or
    1 + log2 B bits.  zero_width: code 0 of a width says that the group takes no bits (not
    published; unsigned groups of width 1 then take 2).
    """

    group: int = 16
    container_bits: int = 8
    signed: bool = True
    metadata: Literal["plain", "same"] = "plain"
    zero_width: bool = False

    def __post_init__(self) -> None:
        require_positive(group=self.group)
        require_whole(4, "be 4, 8 or 16", container_bits=self.container_bits)
        require(
            self.container_bits in CONTAINERS,
            f"container_bits must be 4, 8 or 16, not {self.container_bits}",
        )
        if self.metadata not in ("plain", "same"):
            raise InputError(f"metadata must be plain or same, not {self.metadata!r}")

    @property
    def field_bits(self) -> int:
        """log2 B: bits in which a width is written."""
        return self.container_bits.bit_length() - 1

    @property
    def least_width(self) -> int:
        """Of a group that takes bits: 2 with a sign or where code 0 says "no bits", else 1."""
        return 2 if self.signed or self.zero_width else 1

    @property
    def empty_width(self) -> int:
        """Of a group of zeros."""
        return 0 if self.zero_width else self.least_width

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """(G, B, signed, zero_width), for the kernels."""
        return self.group, self.container_bits, int(self.signed), int(self.zero_width)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest value of a container."""
        half = 1 << (self.container_bits - 1)
        return (-half, half - 1) if self.signed else (0, 2 * half - 1)

    @property
    def value_type(self) -> np.dtype[Any]:
        """Of decoded values: int8 or int16, unsigned if the tensor is."""
        size = 16 if self.container_bits == 16 else 8
        return np.dtype(f"{'int' if self.signed else 'uint'}{size}")

    @property
    def row_type(self) -> np.dtype[Any]:
        """Of containers: uint8, of which 4 bits are used with B = 4, or uint16."""
        return np.dtype("uint16" if self.container_bits == 16 else "uint8")

    def fitting(self, values: npt.NDArray[Any]) -> Values:
        """The values as `value_type`, contiguous; InputError for one that does not fit."""
        require(values.dtype.kind in "iu", f"values must be integers, not {values.dtype}")
        require(values.size > 0, f"values must not be empty, as shape {values.shape} is")
        held = np.iinfo(values.dtype)
        least, largest = self.limits
        if held.min < least or held.max > largest:
            low, high = int(values.min()), int(values.max())
            if low < least or high > largest:
                self._refuse(values, low if low < least else high)
        return np.ascontiguousarray(values, self.value_type)

    def _refuse(self, values: npt.NDArray[Any], wrong: int) -> None:
        place = np.unravel_index(int(np.flatnonzero(values.ravel() == wrong)[0]), values.shape)
        at = ", ".join(str(int(axis)) for axis in place)
        name = "signed" if self.signed else "unsigned"
        bits = wrong.bit_length() if wrong >= 0 else (wrong + 1).bit_length()
        needed = bits + (self.signed or wrong < 0)
        kind = "signed" if self.signed or wrong < 0 else "unsigned"
        fitting = next((size for size in CONTAINERS if size >= needed), None)
        hint = f"{kind} containers of {fitting} bits would" if fitting else "no container would"
        raise InputError(
            f"values[{at}] must fit {name} containers of {self.container_bits} bits, "
            f"which {wrong} does not; {hint}"
        )


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Bits that a stored tensor takes.

    values: how many.  payload_bits: of their own.  tail_bits: of the zeros that fill short groups.
    padding_bits: from the end of each unit to the end of its last row.
    metadata_bits: widths.  pointer_bits: by which a unit is found.
    """

    values: int
    payload_bits: int
    tail_bits: int
    padding_bits: int
    metadata_bits: int
    pointer_bits: int

    @property
    def total_bits(self) -> int:
        data = self.payload_bits + self.tail_bits + self.padding_bits
        return data + self.metadata_bits + self.pointer_bits

    @property
    def bits_per_value(self) -> float:
        return self.total_bits / self.values

    def __add__(self, other: Footprint) -> Footprint:
        """Of both tensors together."""
        return Footprint(**{name: mine + vars(other)[name] for name, mine in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the groups of a tensor lie, by its shape alone.

    units: aligned ones.  lines: runs along the last axis.  line_groups: of each line.
    tail: values of a line's last group, 1 to G.
    """

    units: int
    lines: int
    line_groups: int
    tail: int

    @property
    def groups(self) -> int:
        return self.lines * self.line_groups

    @property
    def unit_groups(self) -> int:
        return self.groups // self.units


def places_of(shape: tuple[int, ...], aligned_axes: int, group: int) -> Places:
    """InputError for a scalar, and unless aligned_axes leave the last axis to the groups."""
    require(len(shape) > 0, "values must have at least one axis, not none")
    require_whole(0, "not be negative", aligned_axes=aligned_axes)
    require(
        aligned_axes < len(shape),
        f"aligned_axes must be at most {len(shape) - 1} of shape {shape}, not {aligned_axes}",
    )
    groups = ceil_div(shape[-1], group)
    return Places(
        units=prod(shape[:aligned_axes]),
        lines=prod(shape[:-1]),
        line_groups=groups,
        tail=shape[-1] - (groups - 1) * group,
    )


def footprint_of(
    places: Places, form: BovedaFormat, widths: Bytes, sizes: tuple[int, int]
) -> Footprint:
    """From the widths of all groups and the sizes: rows, bits of metadata."""
    rows, metadata_bits = sizes
    last = int(widths.reshape(places.lines, -1)[:, -1].sum(dtype=np.int64))
    column = int(widths.sum(dtype=np.int64))
    pointer = rows.bit_length()
    if form.metadata == "same":
        pointer += metadata_bits.bit_length()
    return Footprint(
        values=places.lines * ((places.line_groups - 1) * form.group + places.tail),
        payload_bits=(column - last) * form.group + last * places.tail,
        tail_bits=last * (form.group - places.tail),
        padding_bits=(rows * form.container_bits - column) * form.group,
        metadata_bits=metadata_bits,
        pointer_bits=pointer * places.units,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoded:
    """A stored tensor.

    rows [rows, G]: containers; container s of row r is bits 0 to B - 1 of virtual column s.
    widths [groups]: as the metadata say.  metadata [bytes]: the bits of all groups one after
    another, fields and bytes from their least significant bit.
    row_pointers [units]: first row of each unit.  metadata_pointers [units]: its first bit in
    the metadata; empty unless metadata are "same".
    metadata_bits: how many of the metadata's bits are used.
    shape, aligned_axes, format: of the tensor.

    Raises InputError for arrays that are not of these types and shapes.
    """

    rows: Containers
    widths: Bytes
    metadata: Bytes
    row_pointers: IntArray
    metadata_pointers: IntArray
    shape: tuple[int, ...]
    aligned_axes: int
    format: BovedaFormat
    metadata_bits: int

    def __post_init__(self) -> None:
        places, form = self.places, self.format
        kept = places.units if form.metadata == "same" else 0
        for name, kind, shape in (
            ("rows", form.row_type, (len(self.rows), form.group)),
            ("widths", np.dtype(np.uint8), (places.groups,)),
            ("metadata", np.dtype(np.uint8), (ceil_div(self.metadata_bits, 8),)),
            ("row_pointers", np.dtype(np.int64), (places.units,)),
            ("metadata_pointers", np.dtype(np.int64), (kept,)),
        ):
            array: npt.NDArray[Any] = getattr(self, name)
            require(
                array.dtype == kind and array.shape == shape,
                f"{name} must be {kind} of shape {shape}, not {array.dtype} of {array.shape}",
            )

    @property
    def places(self) -> Places:
        return places_of(self.shape, self.aligned_axes, self.format.group)

    @cached_property
    def footprint(self) -> Footprint:
        """Bits of what is stored, by kind."""
        return footprint_of(
            self.places, self.format, self.widths, (len(self.rows), self.metadata_bits)
        )

    @property
    def payload_bits(self) -> int:
        return self.footprint.payload_bits

    @property
    def tail_bits(self) -> int:
        return self.footprint.tail_bits

    @property
    def padding_bits(self) -> int:
        return self.footprint.padding_bits

    @property
    def pointer_bits(self) -> int:
        return self.footprint.pointer_bits

    @property
    def total_bits(self) -> int:
        return self.footprint.total_bits
