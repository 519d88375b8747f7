"""Rows or columns of a plane over PEs in a row: tiles, halos, phases of a stride.

PE i has the inputs [i · tile, (i + 1) · tile) and owns the outputs [i · own, (i + 1) · own).  Its
inputs may reach outputs of its neighbours, for which it keeps sums too; these are the halo.  Of a
strided convolution, inputs and weights that meet have equal remainders modulo the stride; each pair
of remainders is a phase.

    y + pad = y'' · stride + phase,   r = r' · stride + phase,   p = y'' − r'

Where the layer is pooled, PE i gives out the pooled outputs [i · give, (i + 1) · give), and owns
the outputs that their windows advance by; what its windows see beside is copied from neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from archsim.machines.scnn.ownership import Ownership
from archsim.machines.scnn.pooling import Window
from archsim.numbers import ceil_div

COORDINATE_BITS = 12
"""Of a coordinate within a tile or an accumulator region."""
POSITION_BITS = 20
"""Of a position in a compressed list."""
TAP_BITS = 5
"""Of a kernel row or column within a phase."""


@dataclass(frozen=True, kw_only=True)
class Axis(Ownership):
    """Rows or columns of a plane over PEs in a row.

    size, outputs: of the plane.  pad: before the first input; negative where a strip of an image
    begins behind it.  pes: PEs that are used.  tile, own: inputs and outputs of each but the last.
    anywhere: an element may be at any place, as lists have it that are read from failing cells.
    tap_limit: the last tap that may lead to an output, where weights may be at any too.
    """

    size: int
    kernel: int
    stride: int
    pad: int
    tile: int
    anywhere: bool = False
    tap_limit: int = 0

    def inputs(self, pe: int) -> range:
        """The inputs that a PE has, maybe none."""
        return range(min(pe * self.tile, self.size), min((pe + 1) * self.tile, self.size))

    def reached(self, pe: int) -> range:
        """The outputs between the first and the last that a PE's inputs may reach."""
        span = self.span(pe)
        return range(max(0, span.start), min(self.outputs, span.stop))

    def span(self, pe: int) -> range:
        """What a PE's inputs would reach in a plane without a border."""
        inputs = self.inputs(pe)
        if not inputs:
            return range(0)
        low = ceil_div(inputs[0] + self.pad - (self.kernel - 1), self.stride)
        return range(low, (inputs[-1] + self.pad) // self.stride + 1)

    def addressed(self, pe: int) -> range:
        """Outputs that a product of a PE may have as the model knows them: its span, or, where
        elements may be anywhere, all around its region that a tap leads to or from."""
        if not self.anywhere:
            return self.span(pe)
        region, beside = self.region(pe), self.last_tap
        return range(region.start - beside, region.stop + beside)

    @cached_property
    def addressed_extent(self) -> int:
        """The most of them."""
        return max(len(self.addressed(pe)) for pe in range(self.pes))

    def region(self, pe: int) -> range:
        """The outputs for which a PE has sums: all from the first to the last that it reaches,
        owns, or has in a window."""
        return self._regions[pe]

    @cached_property
    def _regions(self) -> tuple[range, ...]:
        return tuple(self._region(pe) for pe in range(self.pes))

    def _region(self, pe: int) -> range:
        parts = [part for part in (self.reached(pe), self.owned(pe), self.seen(pe)) if part]
        if not parts:
            return range(pe * self.own, pe * self.own)
        return range(min(part[0] for part in parts), max(part[-1] for part in parts) + 1)

    def first_window(self, pe: int) -> int:
        """Where a PE's first window begins in its region; below 0 in padding."""
        return pe * self.own - self.window.pad - self.region(pe).start if self.given(pe) else 0

    def below(self, pe: int) -> int:
        """Outputs of the region that the PE before owns."""
        region = self.region(pe)
        return len(range(region.start, min(region.stop, self.own_start(pe))))

    def above(self, pe: int) -> int:
        """Outputs of the region that the next PE owns."""
        region = self.region(pe)
        return len(range(max(region.start, self.own_start(pe + 1)), region.stop))

    @property
    def meets_neighbours_only(self) -> bool:
        """Whether all that PEs reach or have in windows is their own or their neighbours'."""
        return all(
            not part
            or (self.own_start(max(pe - 1, 0)) <= part[0] and part[-1] < self.own_start(pe + 2))
            for pe in range(self.pes)
            for part in (self.reached(pe), self.seen(pe))
        )

    @cached_property
    def extent(self) -> int:
        """The longest region."""
        return max(len(self.region(pe)) for pe in range(self.pes))

    @cached_property
    def most_below(self) -> int:
        return max(self.below(pe) for pe in range(self.pes))

    @cached_property
    def most_above(self) -> int:
        return max(self.above(pe) for pe in range(self.pes))

    @property
    def phases(self) -> int:
        """Phases with a tap of the kernel; they are the first ones."""
        return min(self.stride, self.kernel)

    def taps(self, phase: int) -> int:
        """Taps of the kernel in a phase."""
        return ceil_div(self.kernel - phase, self.stride)

    @property
    def last_tap(self) -> int:
        """The last one of a phase that may lead to an output."""
        return max(self.taps(0) - 1, self.tap_limit)

    def phase_inputs(self, pe: int, phase: int) -> range:
        """The inputs of a PE that are in a phase."""
        inputs = self.inputs(pe)
        skipped = (phase - inputs.start - self.pad) % self.stride
        return range(inputs.start + skipped, max(inputs.stop, inputs.start + skipped), self.stride)

    def base(self, pe: int) -> int:
        """The output of a PE's first input of phase 0 at the first tap, in its region: ⌈(first
        input + pad) / stride⌉ − first output of the region; 0 of a PE without inputs."""
        inputs = self.inputs(pe)
        if not inputs:
            return 0
        return ceil_div(inputs.start + self.pad, self.stride) - self.region(pe).start

    def threshold(self, pe: int) -> int:
        """The phase from which on it is one less: (first input + pad − 1) mod stride + 1."""
        return (self.inputs(pe).start + self.pad - 1) % self.stride + 1

    def first_output(self, pe: int, phase: int) -> int:
        """Of a PE's first place of a phase at the phase's first tap, in its region."""
        return self.base(pe) - (phase >= self.threshold(pe))

    def first_address(self, pe: int, phase: int) -> int:
        """The same in `addressed`."""
        return self.first_output(pe, phase) + self.region(pe).start - self.addressed(pe).start

    @property
    def phase_tile(self) -> int:
        """⌈tile / stride⌉: the most inputs of a PE in a phase."""
        return ceil_div(self.tile, self.stride)


def axis_of(
    plane: tuple[int, int], kernel: int, stride: int, pad: int, grid: int, window: Window
) -> Axis:
    """The axis of (inputs, outputs) over the most PEs of which only neighbours share outputs.

    PEs at the end that would have neither inputs nor outputs are not used.
    """
    size = plane[0]
    outputs = window.seen(range(window.outputs), plane[1]).stop
    for pes in range(grid, 0, -1):
        tile, give = ceil_div(size, pes), ceil_div(window.outputs, pes)
        axis = Axis(
            size=size, outputs=outputs, kernel=kernel, stride=stride, pad=pad, tile=tile,
            pes=max(ceil_div(size, tile), ceil_div(window.outputs, give)),
            own=give * window.stride, window=window,
        )  # fmt: skip
        if axis.meets_neighbours_only:
            return axis
    raise AssertionError("a single PE owns all outputs")


__all__ = ["COORDINATE_BITS", "POSITION_BITS", "TAP_BITS", "Axis", "axis_of"]
