"""What `Scnn.pipelined_pes` adds to the hardware of a sparse core, or has in its stead.

Structural, from `rtl/core/scnn_fetched.py`, `scnn_sending.py`, `scnn_pipelined_pe.py` and the
pipelined units of `scnn_halo.py`, `scnn_weights.py` and `scnn_drain.py`; every flip-flop is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.blocks import Components, Events, adders, registers, selectors, times
from archsim.machines.scnn.axis import COORDINATE_BITS, POSITION_BITS, TAP_BITS
from archsim.machines.scnn.pipeline import (
    DECODE_CYCLES,
    DRAIN_CYCLES,
    OUTPUT_CYCLES,
    OUTPUT_REGISTERS,
    STEP_CYCLES,
)
from archsim.machines.scnn.widths import address_bits, decoded_weight_bits, pointer_bits

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

PLACE_BITS, BASE_BITS, FILTER_BITS = COORDINATE_BITS + 2, COORDINATE_BITS + 1, 10
"""Of a place in a region, of a phase's first one, of a filter of a group."""

WAITING = 2
"""Words in each of a PE's two queues, of decoded activations and of pairs."""

STEP_BITS = 73
"""Of a step of the drain."""

LISTS_BITS = 24
"""Of the lists of a group that are still to be fetched."""


def _activation_bits(design: Scnn) -> int:
    """Of a vector of activations, decoded."""
    lane = design.operand_bits + 2 * PLACE_BITS + address_bits(design)
    return design.ifmap_lanes * lane + 1


def _products(design: Scnn) -> int:
    return design.weight_lanes * design.ifmap_lanes


def _pair_bits(design: Scnn) -> int:
    """Of a pair: its values, the accumulators of its products, and which are sent."""
    operands = design.operand_bits * (design.weight_lanes + design.ifmap_lanes)
    return operands + _products(design) * (address_bits(design) + 1)


def _distance_bits(design: Scnn) -> int:
    return (design.bank_queue + _products(design) - 1).bit_length()


def fetched(design: Scnn) -> Components:
    """Registers of activations on their way to the pairs, and the queue behind them."""
    lanes, pes, step = design.ifmap_lanes, design.pes, {"iaram_read": 1.0}
    values = lanes * design.operand_bits + 2
    places = values + 2 * lanes * PLACE_BITS
    stages = (
        design.ifmap_vector_bits + 1,
        values + lanes * POSITION_BITS + 2 * BASE_BITS,
        places,
        places + lanes * address_bits(design),
    )
    shown = WAITING * (_activation_bits(design) + 1)
    return tuple(
        one for bits in (*stages, shown) for one in registers("activations", bits, pes, step)
    )


def sending(design: Scnn) -> Components:
    """Which products of a pair are sent and when: ranks, distances, and what banks have to add."""
    name, pes, number = "operand_stage", design.pes, _products(design)
    pair: Events = {"pair": 1.0}
    each, cycle = times(pair, number), {"pair": 1.0, "conflict_cycle": 1.0}
    ranks = sum(before.bit_length() for before in range(1, number))
    if design.banks == 1 and number > 1:
        ranks -= 1  # whether the first product is sent is known
    count, distance = number.bit_length(), _distance_bits(design)
    whole = _pair_bits(design)
    issued = WAITING * (decoded_weight_bits(design) + 1 + _activation_bits(design) + 2)
    banks = design.banks
    queued = design.bank_queue > 1  # else nothing waits at the banks when a pair begins
    counts, behind = (banks * count, distance * banks) if queued else (0, 0)
    return (
        *adders(name, max(ranks // max(number - 1, 1), 1), pes * (number - 1), each),
        *selectors(name, 1, pes * banks * number * queued, each),  # in which bank a product is
        *adders(name, count, pes * banks * (number - 1) * queued, each),
        *adders(name, distance, 2 * pes * number, times(cycle, number)),
        *adders(name, distance, 2 * pes * banks * queued, each),
        *registers(name, issued, pes, pair),
        *registers(name, whole, 2 * pes, times(pair, 2)),
        *registers(name, ranks + counts, pes, pair),
        *registers(name, whole - number, pes, pair),
        *registers(name, (distance + 1) * number, pes, cycle),
        *registers(name, behind, pes, cycle),
    )


def decoded(design: Scnn) -> Components:
    """Registers of the decoder of weights."""
    lanes, name, crossed = design.weight_lanes, "weight_decoder", {"weight_write": 1.0}
    if design.weights_as_crossed:
        return registers(name, DECODE_CYCLES * (lanes * design.element_bits + 2), 1, crossed)
    lane = (
        DECODE_CYCLES * design.operand_bits
        + POSITION_BITS
        + 4 * TAP_BITS
        + 2 * FILTER_BITS
        + address_bits(design)
    )
    return registers(name, lanes * lane, 1, crossed)


def drained(design: Scnn, reads: Events) -> Components:
    """Registers of the addresses of a drain, and of the steps that go with them."""
    bits = address_bits(design)
    step = (DRAIN_CYCLES - STEP_CYCLES) * (STEP_BITS + 2)
    place = COORDINATE_BITS + min(COORDINATE_BITS, bits)
    return registers("halo", step + place + 3 * bits + 2 * FILTER_BITS, design.pes, reads)


def given(design: Scnn, made: Events) -> Components:
    """Registers of a sum on its way to its list, and of the vector that leaves."""
    bits = design.accumulator_bits + 2 * design.operand_bits
    return (
        *registers("compress", bits, design.pes, made),
        *registers("compress", design.ifmap_vector_bits + 1, design.pes, {"oaram_read": 1.0}),
        *registers("bias", (DRAIN_CYCLES + 1) * design.accumulator_bits, 1, made),
    )


def state_bits(design: Scnn) -> int:
    """Flip-flops of control that are more: of the PEs, and outside them."""
    queues = 2 * WAITING  # a head that is filled, and the level behind it
    stages = 4 + 2
    sent = 4 + 2 * 2  # active, whole, skip, last of the pair that is sent; skip and last before it
    sent += design.bank_queue > 1 or _products(design) > 1  # the next may come, if not always
    fifo = pointer_bits(design)
    fifo += design.weight_fifo_vectors.bit_length() + 1  # blocks that are whole
    fifo += 1  # whether a vector is here
    fifo -= 2 if design.weight_fifo_vectors == 1 else 0  # turns of ends where they have one place
    walk = 1 + LISTS_BITS
    output = 4 * 5 + 2 - 1  # what goes beside a value; the arbiter has a flag that is not here
    output += 2  # whether the PE takes part, and owns outputs
    pe = queues + stages + sent + fifo + walk + output
    entry = DRAIN_CYCLES * (design.bank_entries - 1).bit_length()
    late = DRAIN_CYCLES + OUTPUT_CYCLES  # of the end of the last drain, and of the load
    late += 0 if design.activation_memory.stepped else 1
    decoder = 0 if design.weights_as_crossed else 2 * DECODE_CYCLES + 1 + 3 + 2
    drain = STEP_CYCLES * STEP_BITS  # its steps on their way to the PEs
    drain += 2 * COORDINATE_BITS + 2  # how far they go, the ends of windows
    drain += 3 + 2 * (4 + 2 * COORDINATE_BITS + 2)  # which are the last; what is next, and first
    drain += 14  # which fields of the layer are 1
    groups = FILTER_BITS + 1  # filters of the one that is drained, whether more are to come
    groups += 1  # whether every PE has a place for weights
    return design.pes * pe + entry + late + decoder + drain + groups + _event_bits(design)


def _event_bits(design: Scnn) -> int:
    """Of events of all PEs, of weights that come and of words that leave, a cycle before they are
    counted."""
    pes, products = design.pes, _products(design)
    each = [1] * 13 + [products.bit_length()] + [design.banks.bit_length()] * 2
    each += design.activation_memory.event_bits(design.stream_use("iaram"))
    return 2 + sum((pes * ((1 << bits) - 1)).bit_length() for bits in each)


__all__ = ["OUTPUT_REGISTERS", "decoded", "drained", "fetched", "given", "sending", "state_bits"]
