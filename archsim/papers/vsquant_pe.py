"""The PE of vector MACs that is measured beside VS-Quant's: parts, stimuli, and the answers due.

It has LANES vector MACs of VECTOR products that share an activation vector, hold a weight vector
for PIXELS steps and have as many collectors each; a post-processing unit behind them; and a buffer
for either operand, whose rows are a vector and its scale (of weights, one for every lane).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from archsim.codecs.vector_dot import VectorMac, scale_product
from archsim.codecs.vector_output import VectorOutput
from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import VectorLaneDesign
from archsim.numbers import IntArray, saturate
from archsim.papers.vsquant_hardware import ACTIVATION_ROWS, LANES, VECTOR, WEIGHT_ROWS
from archsim.papers.vsquant_operands import PIXELS, Block
from archsim.papers.vsquant_points import Point
from energy_models.component import Component

__all__ = ["Pe", "Ports", "array_ports", "array_sums"]

GUARD_BITS = 4
"""Of a collector, beside those of a term: 16 vectors without overflow; for 8/8/-/- this makes the
24 bits of the 5 nm chip (Keller et al., IEEE Journal of Solid-State Circuits 58(4), 2023)."""

TILE_BITS = 8
"""Of the PPU's sums, beside those of a collector: 256 of them."""

Ports = Mapping[str, tuple[IntArray, tuple[int, ...]]]
"""By input port, lanes [cycles, lanes] and their widths."""


@dataclass(frozen=True, kw_only=True)
class Pe:
    """A PE at a point; product_bits: to which products of scales are rounded, None for not."""

    at: Point
    product_bits: int | None = None
    gated: bool = False

    @cached_property
    def mac(self) -> VectorMac:
        """Signed weights, unsigned activations, collectors of GUARD_BITS more than a term."""
        exact = VectorMac(
            weight=self.at.format(weight=True, signed=True),
            activation=self.at.format(weight=False, signed=False),
            scale_product_bits=self.product_bits,
        )
        return replace(exact, accumulator_bits=exact.term_bits(VECTOR) + GUARD_BITS)

    @cached_property
    def lane(self) -> VectorLaneDesign:
        """Each of the LANES."""
        return VectorLaneDesign(mac=self.mac, length=VECTOR, depth=PIXELS, gated=self.gated)

    @cached_property
    def output(self) -> VectorOutput:
        """The PPU: a row of LANES channels, which is a vector."""
        bits = self.mac.accumulator_bits + TILE_BITS
        return VectorOutput(form=self.mac.activation, lanes=LANES, sum_bits=bits)

    def buffers(self, times: int = 1) -> dict[str, Component]:
        """Row = vector and scale; of weights, one for every lane.  times: the rows."""
        mac = self.mac
        rows = {
            "activation_buffer": (ACTIVATION_ROWS, 1, mac.activation),
            "weight_buffer": (WEIGHT_ROWS, LANES, mac.weight),
        }
        return {
            name: Component(
                name=name,
                kind="sram",
                attributes={
                    "word_bits": lanes * (VECTOR * form.bits + (form.scale_bits or 0)),
                    "depth": times * depth,
                    "read_ports": 1,
                    "write_ports": 1,
                },
            )
            for name, (depth, lanes, form) in rows.items()
        }


def array_ports(pe: Pe, found: Sequence[Block]) -> Ports:
    """The steps of all blocks, one a cycle: vector by vector, for each the pixels in turn.

    "weight" has the vector of every filter, the same for all pixels; "begin" marks the first.
    """
    flags: list[IntArray] = []
    ifmap: list[IntArray] = []
    weight: list[IntArray] = []
    for block in found:
        vectors = block.weight.shape[1]
        j = np.repeat(np.arange(vectors, dtype=np.int64), PIXELS)
        pixel = np.tile(np.arange(PIXELS, dtype=np.int64), vectors)
        columns = (np.ones_like(j), pixel == 0, j == 0, j == vectors - 1, pixel)
        flags.append(np.column_stack(columns).astype(np.int64))
        ifmap.append(_words(pe.mac.activation, block.activation, block.activation_scale)[pixel, j])
        words = _words(pe.mac.weight, block.weight, block.weight_scale)
        weight.append(np.concatenate(list(words), axis=1)[j])
    together = np.concatenate(flags)
    names = ("valid", "begin", "first", "last", "slot")
    bits = (1, 1, 1, 1, (PIXELS - 1).bit_length())
    return {
        **{name: (together[:, at : at + 1], (bits[at],)) for at, name in enumerate(names)},
        "ifmap": (np.concatenate(ifmap), _widths(pe.mac.activation)),
        "weight": (np.concatenate(weight), LANES * _widths(pe.mac.weight)),
    }


def _words(form: VectorFormat, values: IntArray, scales: IntArray) -> IntArray:
    """Vectors [n, J, V] with their scales above, where the format has any."""
    return np.concatenate([values, scales[..., None]], axis=2) if form.scale_bits else values


def _widths(form: VectorFormat) -> tuple[int, ...]:
    return VECTOR * (form.bits,) + ((form.scale_bits,) if form.scale_bits else ())


def array_sums(pe: Pe, block: Block) -> tuple[IntArray, float]:
    """Sums [PIXELS, LANES] of a block, and the share of its steps whose scale product is 0."""
    scale = scale_product(pe.mac, block.weight_scale[None], block.activation_scale[:, None])
    total = np.zeros((PIXELS, LANES), np.int64)
    for j in range(block.weight.shape[1]):
        dots = block.activation[:, j] @ block.weight[:, j].T
        total = saturate(total + dots * scale[:, :, j], pe.mac.accumulator_bits)
    return total, float((scale == 0).mean())
