"""The outputs of the stepped sparse core: requantised, and as lists that leave or stay."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from scnn_lists import Pe, Side, Vector, make_list, power

from archsim.layer.problem import Problem
from archsim.machines.scnn.design import Scnn


def cells_of(values: list[int], width: int, pitch: int) -> list[tuple[int, int, Any]]:
    """Of values in rows of so many, one row a pitch behind the other."""
    return [(n // width * pitch + n % width, value, ()) for n, value in enumerate(values)]


def wrapped(value: int, bits: int) -> int:
    """As a signed number of so many bits."""
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def rounded(value: int, shift: int) -> int:
    """value / 2^shift, rounded half up."""
    return (value + 2 ** (shift - 1)) >> shift if shift else value


class Outputs:
    """The output stage of a pass.

    ifmap_kept: nothing is loaded, the ifmap is what the pass before has left; keep_ofmap: nothing
    leaves.
    """

    ifmap_kept = keep_ofmap = pooled = False
    design: Scnn
    problem: Problem
    scaling: tuple[int, int]
    bias: npt.NDArray[Any]
    rows: Side
    columns: Side
    pes: list[Pe]
    groups: list[list[int]]

    def pitch(self, width: int) -> int:
        """Of outputs in rows of so many: that of the next layer's inputs if they stay."""
        return power(self.columns.give) if self.keep_ofmap else width

    def output_lists(self) -> list[list[Vector]]:
        """Of each PE with outputs, for each filter."""
        design, dense = self.design, self.design.sparsity == "weights"
        return [
            make_list(cells_of(pe.outputs[k], width, self.pitch(width)), design.ifmap_lanes,
                      design.index_bits, dense)
            for pe, width in ((pe, len(self.columns.given(pe.column))) for pe in self.pes)
            for k in range(self.problem.filters if pe.outputs else 0)
        ]  # fmt: skip

    def list_writes(self) -> int:
        """Vectors that are written until all lists are there, places without an output as zeros."""
        found = 0
        for pe in self.pes:
            width = len(self.columns.given(pe.column))
            for values in pe.outputs.values():
                rows = [values[at : at + width] for at in range(0, len(values), width)]
                if self.keep_ofmap:
                    pitch = self.pitch(self.columns.give)
                    rows += [[]] * (self.rows.give - len(rows))
                    rows = [row + [0] * (pitch - len(row)) for row in rows]
                found += self.writes_of([value for row in rows for value in row])
        return found

    def writes_of(self, values: list[int]) -> int:
        """Of a list: a vector whenever its lanes are full, and the last when the list ends."""
        elements = zeros = 0
        for value in values:
            element = value != 0 or zeros == (1 << self.design.index_bits) - 1
            elements += element
            zeros = 0 if element else zeros + 1
        return elements // self.design.ifmap_lanes + 1

    def list_cycles(self) -> int:
        """Of a filter's output."""
        taps = self.rows.taps * self.columns.taps
        return self.rows.give * self.pitch(self.columns.give) * taps + 1

    def give_out(self, group: int, k: int, row: int, column: int) -> None:
        filter_ = self.groups[group][k]
        for pe in self.pes:
            u, v = pe.row * self.rows.give + row, pe.column * self.columns.give + column
            if u not in self.rows.given(pe.row) or v not in self.columns.given(pe.column):
                continue
            pe.figures["outputs"] += 1
            pe.figures["zeroed"] += not self.pooled
            sums = pe.sums[group % 2]
            if self.pooled:
                values = [
                    self.requantised(sums.get((p, q, k), 0), filter_)
                    for p in self.rows.places(u)
                    for q in self.columns.places(v)
                ]
                pe.figures["window_reads"] += len(values)
            else:
                values = [self.requantised(sums.pop((u, v, k), 0), filter_)]
            pe.outputs.setdefault(filter_, []).append(max(values))

    def requantised(self, value: int, filter_: int) -> int:
        total = wrapped(value, self.design.accumulator_bits)
        scaled = rounded((total + int(self.bias[filter_])) * self.scaling[0], self.scaling[1])
        if self.problem.relu:
            scaled = max(scaled, 0)
        limit = 2 ** (self.design.operand_bits - 1)
        return min(max(scaled, -limit), limit - 1)
