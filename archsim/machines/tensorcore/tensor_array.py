"""A tensor core: four-element dot-product units in octets, fed with fragments of two matrices.

    S[r, c] <- (+0 if first else S[r, c]) + sum over e of A[r, e] · B[e, c]

for a block of `rows` × `columns` sums and one slice of k elements, a *set*.  Units, octets, thread
groups, SETs and STEPs are those of NVIDIA's Volta as measured and modelled by Raihan, Goli,
Aamodt, "Modeling Deep Learning Accelerator Enabled GPUs", ISPASS 2019.  What of the timing is
theirs and what is chosen here is in `docs/contracts/tensor-array.md`, the cycle contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from archsim.arithmetic.dot_product import VOLTA_FP32, DotProduct
from archsim.arithmetic.formats import FloatFormat
from archsim.errors import InputError, require, require_positive
from archsim.numbers import IntArray, ceil_div

__all__ = ["TensorArrayDesign", "TensorRows", "TensorSets"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorSets:
    """n sets, int64 each.

    begin_cycles [n]: of slot 0, at least a set apart.  first [n]: 1 where the block's sums begin
    anew.  last [n]: 1 where they leave.  ifmap [n, rows, k], weight [n, k, columns]: patterns.
    """

    begin_cycles: IntArray
    first: IntArray
    last: IntArray
    ifmap: IntArray
    weight: IntArray

    def __len__(self) -> int:
        return len(self.begin_cycles)


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorRows:
    """The rows that leave, in order: cycles [n] at the output, sums [n, columns] as patterns."""

    cycles: IntArray
    sums: IntArray


@dataclass(frozen=True, kw_only=True)
class TensorArrayDesign:
    """2 · octets · group_columns dot-product units, for blocks of `rows` × `columns` sums.

    dot: the unit; its length is k.  octets: pairs of thread groups.  group_columns: units of a
    thread group.  rows: P, even: the first half belongs to thread group 0 of every octet, the
    second half to its thread group 1.

    A set is P *passes*, one a cycle, in which all units are busy.  Pass p computes, in thread
    group g of octet o, unit j, the sum of row g·P/2 + p mod P/2 and of column
    (2·o + ⌊p / (P/2)⌋) · group_columns + j.
    """

    dot: DotProduct = VOLTA_FP32
    octets: int = 2
    group_columns: int = 4
    rows: int = 8

    def __post_init__(self) -> None:
        require_positive(octets=self.octets, group_columns=self.group_columns, rows=self.rows)
        require(self.rows % 2 == 0, f"rows must be even, not {self.rows}")
        require(
            self.dot.length <= self.set_cycles,
            f"dot.length must be at most {self.set_cycles}, the cycles of a set, "
            f"not {self.dot.length}",
        )

    @property
    def columns(self) -> int:
        """F: columns of a block of sums, as many as there are units."""
        return 2 * self.octets * self.group_columns

    @property
    def places(self) -> tuple[IntArray, IntArray]:
        """Of each sum of a block, the unit that makes it, and its pass: [rows, columns] each.

        Unit j of thread group g in octet o is number (2 · o + g) · group_columns + j.
        """
        row, column = np.indices((self.rows, self.columns))
        block, j = np.divmod(column, self.group_columns)
        octet, half = np.divmod(block, 2)
        group, place = np.divmod(row, self.group_rows)
        return (2 * octet + group) * self.group_columns + j, half * self.group_rows + place

    @property
    def group_rows(self) -> int:
        """P / 2: rows of a thread group, and passes of a column block."""
        return self.rows // 2

    @property
    def step_passes(self) -> int:
        """Passes of an HMMA STEP: 4 with narrow floats, else 2; at most what divides P.

        Also the initiation interval between STEPs, in cycles.
        """
        return gcd(self.rows, 4 if self._narrow else 2)

    @property
    def collect_cycles(self) -> int:
        """From the issue of a pass to its operands at the units: C and A read, B and C selected,
        operand registers."""
        return 3

    @property
    def pack_cycles(self) -> int:
        """1 if two sums share a register of 32 bits, which they do as floats of up to 16 bits."""
        return int(self._narrow)

    @property
    def write_cycles(self) -> int:
        """From a unit's result, packed, to the sum read anew: result register, write."""
        return 2

    @property
    def result_cycles(self) -> int:
        """From the issue of a pass to the first cycle whose read finds its sums written."""
        return self.collect_cycles + self.dot.latency_cycles + self.pack_cycles + self.write_cycles

    @property
    def chain_cycles(self) -> int:
        """From the first pass of a STEP to that of the same STEP of the next set, at the least:
        step_passes − 1 + result_cycles."""
        return self.step_passes - 1 + self.result_cycles

    @property
    def set_cycles(self) -> int:
        """T = max(P, chain_cycles): from one set to the next."""
        return max(self.rows, self.chain_cycles)

    @property
    def drain_start_cycles(self) -> int:
        """From the first pass of a block's last set to the read of its row 0: all is written."""
        return self.rows - 1 + self.result_cycles

    @property
    def array_latency_cycles(self) -> int:
        """From slot T − 1 of a block's last set to its row 0 at `sums`: 2 + drain_start_cycles."""
        return 2 + self.drain_start_cycles

    def wmma_cycles(self, k: int) -> int:
        """From the first pass of a block of k products a sum to its last row at `sums`.

        (⌈k / dot.length⌉ − 1) · T + drain_start_cycles + P.  With P = 8 and k = 16 that is a
        tensor core's half of a warp's m16n16k16.
        """
        require_positive(k=k)
        before = (self._sets(k) - 1) * self.set_cycles
        return before + self.drain_start_cycles + self.rows

    def step_completions(self, k: int = 16) -> IntArray:
        """Cycles from the first pass to the end of STEP t of set s, [sets, STEPs a set].

        s · T + t · step_passes + chain_cycles: then a read finds all sums of the STEP written.
        """
        require_positive(k=k)
        sets = np.arange(self._sets(k), dtype=np.int64)
        steps = np.arange(self.rows // self.step_passes, dtype=np.int64)
        return sets[:, None] * self.set_cycles + steps * self.step_passes + self.chain_cycles

    def compute(self, sets: TensorSets) -> TensorRows:
        """The rows of sums that the array answers, and the cycles in which they are at `sums`.

        Chunks are added in the order of the sets, each by `dot`.  Row r of a block is at `sums`
        T + drain_start_cycles + 1 + r cycles after slot 0 of its last set.  Raises InputError for
        arrays of other shapes, for what is not a pattern, for sets that follow each other too
        soon, and for a first set without `first`.
        """
        self._check(sets)
        shape = (self.rows, self.columns, self.dot.length)
        block = np.zeros(shape[0] * shape[1], np.int64)
        blocks: list[IntArray] = []
        for n in range(len(sets)):
            if sets.first[n]:
                block = np.zeros_like(block)
            a = np.broadcast_to(sets.ifmap[n][:, None, :], shape).reshape(-1, shape[2])
            b = np.broadcast_to(sets.weight[n].T, shape).reshape(-1, shape[2])
            block = self.dot.compute(a, b, block)
            if sets.last[n]:
                blocks.append(block.reshape(shape[:2]))
        row_0 = sets.begin_cycles[sets.last == 1] + self.set_cycles + self.drain_start_cycles + 1
        cycles = row_0[:, None] + np.arange(self.rows, dtype=np.int64)
        sums = np.array(blocks, np.int64).reshape(-1, self.columns)
        return TensorRows(cycles=cycles.reshape(-1), sums=sums)

    @property
    def _narrow(self) -> bool:
        accumulator = self.dot.accumulator
        return isinstance(accumulator, FloatFormat) and accumulator.bits <= 16

    def _sets(self, k: int) -> int:
        return ceil_div(k, self.dot.length)

    def _check(self, sets: TensorSets) -> None:
        n, k = len(sets), self.dot.length
        largest = (1 << self.dot.operand.bits) - 1
        require(n > 0, "there must be at least one set")
        for name, shape, most in (
            ("begin_cycles", (n,), 1 << 62),
            ("first", (n,), 1),
            ("last", (n,), 1),
            ("ifmap", (n, self.rows, k), largest),
            ("weight", (n, k, self.columns), largest),
        ):
            _check_array(name, getattr(sets, name), shape, most)
        apart = np.diff(sets.begin_cycles)
        if (apart < self.set_cycles).any():
            raise InputError(
                f"begin_cycles must be at least {self.set_cycles} apart, not {apart.min()}"
            )
        require(sets.first[0] == 1, "first must be 1 in the first set, not 0")


def _check_array(name: str, values: IntArray, shape: tuple[int, ...], most: int) -> None:
    require(values.shape == shape, f"{name} must be of shape {shape}, not of {values.shape}")
    require(values.dtype == np.int64, f"{name} must be int64, not {values.dtype}")
    outside = (values < 0) | (values > most)
    if outside.any():
        raise InputError(f"{name} must be 0 to {most}, not {values[outside][0]}")
