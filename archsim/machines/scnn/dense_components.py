"""The hardware of DCNN, the dense core beside which a sparse one is measured, as components.

The paper (Parashar et al., ISCA 2017) gives its PEs, multipliers, 2 MB of memory and 5.9 mm²
(Table 5), and no structure.  Chosen here, all PEs alike: the 2 MB are an activation memory for
inputs and one for outputs in each PE, of words of one dot product's operands; weights are broadcast
into a FIFO of as many vectors as SCNN's; products are cut to the width of the sums and added by a
tree without registers; sums lie in two halves, each a memory of one word a cycle; requantisation is
SCNN's.  There is no crossbar, no index, no coordinate but the walks of control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import archsim.blocks as blocks
from archsim.blocks import Components, Events, adders, held_registers, registers, selectors, times
from archsim.machine import components as every
from archsim.machines.scnn.components import MULTIPLIER_BITS, low_product
from energy_models.component import Component

if TYPE_CHECKING:
    from archsim.machines.scnn.dense import Dcnn

WIDEST_WORD = 128
"""Bits of a memory macro; a wider word lies in several of them."""

CORE_STATE_BITS, PE_STATE_BITS = 1000, 60
"""Flip-flops of control, outside the PEs and in each: of the order of those of SCNN's RTL, which
walks the same loops."""

STEP: Events = {"step": 1.0}


def dcnn_components(design: Dcnn) -> tuple[Component, ...]:
    """Components in the order in which the data flow; their actions: `dense_actions.py`."""
    pes = design.pes
    return (
        every.off_chip(),
        *_memory(
            design,
            "iaram",
            (design.vector, design.activation_vectors),
            {"activation_read": 1.0},
            {"activation_write": 1.0},
        ),
        *_memory(
            design,
            "weight_fifo",
            (design.vector, design.weight_fifo_vectors),
            {"weight_read": 1.0},
            {"fifo_write": 1.0},
        ),
        *_dot_product(design, pes),
        *_accumulators(design, pes),
        *every.requantizers((design.accumulator_bits, MULTIPLIER_BITS), pes, {"output": 1.0}),
        *held_registers(
            "oaram", design.operand_bits, pes * design.vector, {"output": 1.0}
        ),  # a vector of outputs
        *_memory(
            design, "oaram", (design.vector, design.activation_vectors), {}, {"output_write": 1.0}
        ),
        every.control(CORE_STATE_BITS + pes * PE_STATE_BITS),
    )


def _memory(
    design: Dcnn, name: str, shape: tuple[int, int], read: Events, write: Events
) -> Components:
    """A memory in each PE, of (operands a word, words)."""
    lanes, depth = shape
    parts = -(-lanes * design.operand_bits // WIDEST_WORD)
    bits = -(-lanes * design.operand_bits // parts)
    pes = design.pes
    return blocks.memory(
        name + blocks.WORDS, (pes * parts, 1, bits, depth), times(read, parts), times(write, parts)
    )


def _dot_product(design: Dcnn, pes: int) -> Components:
    """Operands held and moved, products, and the tree that adds them up."""
    name, lanes, operand = "dot_product", design.vector, design.operand_bits
    kept = min(design.accumulator_bits, 2 * operand)
    multiply: Events = {"multiply": 1.0}
    return (
        *held_registers(name, operand, pes * lanes, {"activation_read": float(lanes)}),
        *registers(name, operand, pes * lanes, {"weight_read": float(lanes)}),
        *low_product(name, (operand, operand), kept, (pes * lanes, multiply)),
        *registers(name, kept, pes * lanes, multiply),
        *adders(name, design.accumulator_bits, pes * (lanes - 1), times(STEP, lanes - 1)),
        *registers(name, design.accumulator_bits, pes, STEP),
    )


def _accumulators(design: Dcnn, pes: int) -> Components:
    """Two halves of sums, an adder, and the way out."""
    name, bits = "accumulator", design.accumulator_bits
    either: Events = {"step": 1.0, "output": 1.0}
    return (
        *blocks.memory(
            name + blocks.WORDS, (2 * pes, 1, bits, design.accumulators), either, either
        ),
        *adders(name, bits, pes, STEP),
        *selectors(name, bits, 2 * pes, either),
    )
