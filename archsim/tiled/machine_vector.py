"""The columns of a machine vector: what of a design decides its timing, as numbers.

A design answers with such a vector (`CoreDesign.machine`), so that one compiled kernel runs over
many designs.  `MachineRecord` names its columns; the constants are for kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from archsim.numbers import IntArray

WEIGHT_STATIONARY, OUTPUT_STATIONARY, INPUT_STATIONARY = range(3)

(
    ROWS,  # of the array; output-stationary: pixels whose sums it holds at once
    COLUMNS,
    CHUNK,  # elements of a run that a fold takes (weight-, input-stationary: one a row)
    SLOTS,  # output-stationary: cycles a chunk takes; 0: one for each pixel of its block
    SKEW,  # a fold's cycles of filling and emptying, in `serial_cycles`
    DATAFLOW,
    IFMAP_LANES,
    IFMAP_DEPTH,
    WEIGHT_DEPTH,
    ACCUMULATOR_DEPTH,
    BIAS_DEPTH,
    IFMAP_WRITE_LATENCY,  # cycles from a tile's last word to its credit, less 1
    WEIGHT_WRITE_LATENCY,
    BIAS_WRITE_LATENCY,
    IFMAP_READ_WAIT,  # cycles by which a half is read later than where no operand waits
    WEIGHT_READ_WAIT,
    RESULT_LATENCY,
    OUTPUT_LATENCY,
    OUTPUT_QUEUE,
    OUTPUT_VECTOR,  # filters whose outputs share a scale; tiles do not cut them; 1 without
    OUTPUT_VALUE_UNITS,  # units of a value, of a scale, of a word (`archsim.tiled.packing`)
    OUTPUT_SCALE_UNITS,
    OUTPUT_WORD_UNITS,
    COMMAND_QUEUE,
    TILE_INTERVAL,
    IFMAP_WORD_BYTES,
    WEIGHT_WORD_BYTES,
    BIAS_WORD_BYTES,
    OFMAP_WORD_BYTES,
    OFFCHIP_RATE,  # rates in 1/1024 byte per cycle; 0: every port moves a word a cycle
    OFFCHIP_WEIGHT_RATE,  # 0: weights share the rate above
    OFFCHIP_LATENCY,
    OFFCHIP_BURST_BYTES,
    OFFCHIP_SHARED,
    GATHER_BITS,  # of a lane of the gather unit before the ifmap scratchpad; 0: there is none
    MACHINE_COLUMNS,
) = range(36)

MEMORIES = 4
"""Columns from IFMAP_DEPTH on that are depths of memories: they decide which tiles fit, and nothing
else."""


class MachineRecord(NamedTuple):
    """A machine vector by the names of its columns, in order."""

    rows: int
    columns: int
    chunk: int
    slots: int
    skew: int
    dataflow: int
    ifmap_lanes: int
    ifmap_depth: int
    weight_depth: int
    accumulator_depth: int
    bias_depth: int
    ifmap_write_latency: int
    weight_write_latency: int
    bias_write_latency: int
    ifmap_read_wait: int
    weight_read_wait: int
    result_latency: int
    output_latency: int
    output_queue: int
    output_vector: int
    output_value_units: int
    output_scale_units: int
    output_word_units: int
    command_queue: int
    tile_interval: int
    ifmap_word_bytes: int
    weight_word_bytes: int
    bias_word_bytes: int
    ofmap_word_bytes: int
    offchip_rate: int
    offchip_weight_rate: int
    offchip_latency: int
    offchip_burst_bytes: int
    offchip_shared: int
    gather_bits: int

    @property
    def word_bytes(self) -> tuple[int, int, int]:
        """Of words of ifmap, weight and bias."""
        return self.ifmap_word_bytes, self.weight_word_bytes, self.bias_word_bytes

    def vector(self) -> IntArray:
        """For kernels; it cannot be written."""
        vector = np.array(self, np.int64)
        vector.flags.writeable = False
        return vector


def machine_record(vector: IntArray) -> MachineRecord:
    """The inverse of `MachineRecord.vector`."""
    return MachineRecord(*vector.tolist())
