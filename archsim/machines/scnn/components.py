"""The hardware of a sparse core as components, all PEs together.

Structural, from our own RTL (`rtl/scnn.py`, `rtl/core/scnn_*.py`): every flip-flop of the emitted
core is here exactly (a test counts them in the netlist), every memory with the shape it has there.
Variants that only the model has (another hash, barrier or stored operand) have the same hardware.

What is taken for granted: memories are read only when an action reads them; all registers are
clocked in every cycle.  A gate of two
inputs is priced as a third of a selector of one bit in crossbar and queues; in the operand stage it
is one with another behind it.  A product that is not sent costs nothing, nor does what toggles at
inputs of the crossbar that are not selected.  A queue moves its products up without a cost but the
clock's, and the FIFO's queue of list ends is taken to be written with every vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import archsim.blocks as blocks
from archsim.blocks import (
    Components,
    Events,
    adders,
    held_registers,
    incrementers,
    multipliers,
    registers,
    selectors,
    shifters,
    times,
)
from archsim.machine import components as every
from archsim.machines.scnn import pipelined_components as pipelined
from archsim.machines.scnn.one_hot_components import gates, one_hot, spread, strobes
from archsim.machines.scnn.widths import address_bits, decoded_weight_bits, pointer_bits
from archsim.memory import PlainBank

if TYPE_CHECKING:
    from archsim.machines.scnn.design import Scnn

POSITION_BITS, COORDINATE_BITS, PLACE_BITS, TAP_BITS = 20, 12, 15, 5
"""Of positions in lists, of places in a tile, of those of a product (signed), of taps."""

WALK_BITS = 45
"""Of where a PE's decoder of weights stands: the phase, the list of its group, the group."""

MULTIPLIER_BITS = 16
WIDEST_MUX = 16
"""Ways of one multiplexer; one of more is a tree of them."""

AXIS_BITS, LAYER_BITS = 111, 344
"""Of a command: of each PE row and PE column, and of the layer."""

CORE_STATE_BITS = 1132
"""Flip-flops of control outside the PEs that no size changes: counters of events, walks over lists,
groups, drain and windows, the decoder's walk, taken biases, which memory is the IARAM; counted in
the netlist."""

PE_STATE_BITS = 49
"""Of a PE's control: its walk over lists, phases, what waits for the output."""


DRAINED: Events = {"halo_sum": 2.0, "zeroed": 1.0, "copy_sum": 2.0, "window_read": 1.0}
"""Sums that a drain reads: a halo's and a copy's at both ends."""


def scnn_components(design: Scnn) -> Components:
    """Components in the order in which the data flow."""
    return (
        every.off_chip(),
        *_activations(design),
        *_weights(design),
        *_operand_stage(design),
        *_multipliers(design),
        *_crossbar(design),
        *_banks(design),
        *_halo(design),
        *_exchange(design),
        *_output(design),
        every.control(scnn_state_bits(design)),
    )


def _lanes(design: Scnn) -> int:
    return design.weight_lanes * design.ifmap_lanes


def _words(
    design: Scnn, name: tuple[str, str], shape: tuple[int, int, int], read: Events, write: Events
) -> Components:
    """Memories of (number in a PE, bits, depth); name: whose kind ("weight", ...), and its own."""
    number, bits, depth = shape
    sizes = (design.pes * number, 1, bits, depth)
    return design.bank(name[0]).macros(name[1] + blocks.WORDS, sizes, read, write)


def _memory(design: Scnn, name: str) -> Components:
    """The IARAM or OARAM, as its kind stores vectors."""
    memory, found = design.activation_memory, ()
    for part, (number, bits, depth), read, write in memory.words(design.stream_use(name)):
        shape = (design.pes * number, 1, bits, depth)
        found += memory.macros(part + blocks.WORDS, shape, read, write)
    return found


def _positions(name: str, lanes: int, count: int, events: Events) -> Components:
    """Positions in a list from its indices, lane behind lane; the last one is kept."""
    busy = times(events, lanes)
    return (
        *adders(name, POSITION_BITS, lanes * count, busy),
        *incrementers(name, POSITION_BITS, lanes * count, busy),
        *shifters(name, POSITION_BITS, lanes * count, busy),
        *selectors(name, COORDINATE_BITS, lanes * count, busy),  # the lower part
        *registers(name, POSITION_BITS, count, events),
    )


def _addresses(name: str, factor: int, bits: int, number: tuple[int, Events]) -> Components:
    """(row · Wacc + column) · Kp of `bits` bits, of rows with `factor` bits."""
    count, busy = number
    return (
        *low_product(name, (min(factor, bits), min(COORDINATE_BITS, bits)), bits, number),
        *adders(name, bits, count, busy),
        *shifters(name, bits, count, busy),
    )


def low_product(
    name: str, operands: tuple[int, int], kept: int, number: tuple[int, Events]
) -> Components:
    """Multipliers of which only the `kept` lower bits are needed: as many partial products.

    number: how many there are, and how many multiply with an action.
    """
    wide, narrow = max(operands), min(operands)
    needed = sum(min(wide, max(kept - row, 0)) for row in range(narrow))
    return multipliers(name, (wide, max(round(needed / wide), 2)), *number)


def _activations(design: Scnn) -> Components:
    """IARAM, and the decoder of its vectors."""
    name, pes, lanes = "activations", design.pes, design.ifmap_lanes
    step: Events = {"iaram_read": 1.0}
    each, number = times(step, lanes), pes * lanes
    return (
        *_memory(design, "iaram"),
        *(pipelined.fetched(design) if design.pipelined_pes else ()),
        *_positions(name, lanes, pes, step),
        *adders(name, PLACE_BITS - 1, 2 * number, times(each, 2)),
        *_addresses(name, PLACE_BITS - 1, address_bits(design), (number, each)),
        *adders(name, COORDINATE_BITS + 1, 2 * pes, times(step, 2)),  # bases of the phase
    )


def _weights(design: Scnn) -> Components:
    """The decoder of the broadcast, or of each PE, and the FIFO of each PE."""
    depth, lanes = design.weight_fifo_vectors, design.weight_lanes
    ends: Events = {"fifo_write": 1.0}
    pointers = design.pes, 1, pointer_bits(design), depth
    name = "weight_fifo.ends" + blocks.WORDS
    sound = PlainBank()
    flags = sound.macros(
        "weight_fifo.flags" + blocks.WORDS, (design.pes, 1, 1, depth), {"weight_read": 1.0}, ends
    )
    more = pipelined.decoded(design) if design.pipelined_pes else ()
    if not design.weights_as_crossed:
        stored = decoded_weight_bits(design)
        return (
            *_weight_decoders(design, 1, {"weight_write": 1.0}),
            *more,
            *_fifo(design, stored if design.pipelined_pes else stored + 1),
            *(flags if design.pipelined_pes else ()),
            *design.weight_memory.macros(name, pointers, ends, ends),
        )
    return (
        *more,
        *_weight_decoders(design, design.pes, {"weight_read": 1.0}),
        *registers("weight_decoder", WALK_BITS, design.pes, {}),
        *registers("weight_decoder", POSITION_BITS, 1, {"weight_write": 1.0}),  # counts lists
        *_fifo(design, lanes * design.element_bits),
        *flags,
        *sound.macros(name, pointers, ends, ends),
    )


def _fifo(design: Scnn, bits: int) -> Components:
    """Vectors of so many bits in every PE, as the FIFO's kind keeps them."""
    shape = 1, bits, design.weight_fifo_vectors
    return _words(
        design, ("weight", "weight_fifo"), shape, {"weight_read": 1.0}, {"fifo_write": 1.0}
    )


def _weight_decoders(design: Scnn, count: int, decoded: Events) -> Components:
    """So many decoders of weights; decoded: vectors that they decode."""
    name, bits, lanes = "weight_decoder", address_bits(design), count * design.weight_lanes
    each = times(decoded, design.weight_lanes)
    return (
        *_positions(name, design.weight_lanes, count, decoded),
        *shifters(name, TAP_BITS, lanes, each),
        *_addresses(name, TAP_BITS, bits, (lanes, each)),
        *adders(name, bits, lanes, each),
    )


def _operand_stage(design: Scnn) -> Components:
    """Places and addresses of a pair's products, and which of them the banks take."""
    name, pes, lanes = "operand_stage", design.pes, _lanes(design)
    number, queue = pes * lanes, design.bank_queue
    pair: Events = {"pair": float(lanes)}
    tried: Events = {"pair": float(lanes), "conflict_cycle": float(lanes)}
    bank_bits = (design.banks - 1).bit_length()
    before = lanes * (lanes - 1) // 2
    places = (
        *adders(name, (PLACE_BITS + TAP_BITS) // 2, 2 * number, times(pair, 2)),
        *incrementers(name, PLACE_BITS, 2 * number, times(pair, 2)),  # compared with the region
        *adders(name, address_bits(design), number, pair),
    )
    if design.pipelined_pes:
        waiting = (queue - 1).bit_length()
        return (
            *places,
            *selectors(name, 1, pes * before * bank_bits, times(pair, before * bank_bits / lanes)),
            *_wide_selectors(name, (waiting, design.banks), number, pair),
            *pipelined.sending(design),
        )
    return (
        *places,
        *selectors(name, 1, pes * before * bank_bits, times(tried, before * bank_bits / lanes)),
        *_wide_selectors(name, (queue - 1, design.banks), number, tried),
        *selectors(name, 1, pes * _ranks(lanes, queue), times(tried, _ranks(lanes, queue) / lanes)),
        *registers(name, lanes if lanes > 1 else 0, pes, times(tried, 1 / lanes)),
    )


def _ranks(lanes: int, queue: int) -> int:
    """Gates that count, up to Q, what is before each product of a pair in its bank's queue."""
    return sum(
        _total([1] * number + [queue - 1] * (queue > 1), queue)[1] for number in range(lanes)
    )


def _total(parts: list[int], most: int) -> tuple[int, int]:
    """A sum of counts of so many bits: its bits, and the gates of the tree that adds them up."""
    if len(parts) < 2:
        return (parts[0] if parts else 0), 0
    if most == 1:
        return 1, len(parts) - 1
    middle = (len(parts) + 1) // 2
    (one, first), (other, second) = (
        _total(half, most) for half in (parts[:middle], parts[middle:])
    )
    bits = min(one + other, most)
    ways = sum(min(one, n + 1) - max(0, n + 1 - other) + 1 for n in range(bits))
    return bits, first + second + ways


def _multipliers(design: Scnn) -> Components:
    """Products, cut to the width of the sums, and the registers behind them."""
    name, pes, lanes, operand = "multipliers", design.pes, _lanes(design), design.operand_bits
    kept = min(design.accumulator_bits, 2 * operand)
    product: Events = {"product": 1.0}
    pair: Events = {"pair": 1.0, "conflict_cycle": 1.0}
    return (
        *low_product(name, (operand, operand), kept, (pes * lanes, product)),
        *registers(name, kept, pes * lanes, product),
        *registers(name, address_bits(design), pes * lanes, product),
        *registers(name, lanes * design.bank_queue + 1, pes, pair),
    )


def _entry_bits(design: Scnn) -> int:
    """Of a sum's place in its bank, as it travels with a product."""
    return address_bits(design) - (design.banks - 1).bit_length()


def _crossbar(design: Scnn) -> Components:
    """To every place of every bank's queue any product, by AND-OR; then the queues."""
    name, pes, lanes, queue = "crossbar", design.pes, _lanes(design), design.bank_queue
    bits = design.accumulator_bits + _entry_bits(design)
    banks, bank_bits = pes * design.banks, (design.banks - 1).bit_length()
    product: Events = {"product": 1.0}
    waiting = bits + 2
    moved: Events = times(product, 2 * waiting if queue > 1 else 0)
    return (
        *gates(name, banks * lanes * max(bank_bits - 1, 0), times(product, max(bank_bits - 1, 0))),
        *strobes(name, lanes, banks * queue, product),  # and whether one is 1
        *gates(name, banks * queue, product),  # the half
        *spread(name, (bits, design.banks * queue), pes * lanes, product),
        *one_hot(name, (bits, lanes), banks * queue, product),
        *registers("queues", waiting + 1, banks * (queue - 1), {}),
        *gates("queues", 2 * waiting * banks * (queue - 1), moved),
    )


def _wide_selectors(name: str, shape: tuple[int, int], count: int, select: Events) -> Components:
    """Multiplexers of (bits, ways); a word passes one of each level of the tree."""
    bits, ways = shape
    if bits == 0 or ways < 2:
        return ()
    full, left = divmod(ways, WIDEST_MUX)
    found: Components = ()
    for part, number in ((WIDEST_MUX, full), (left, 1)):
        if number and part > 1:
            sizes = {"bits": min(bits, blocks.WIDEST["mux"]), "ways": part}
            share = times(select, part * number / ways)
            found += blocks.block("mux", name, sizes, count * number, {"select": share})
    return (*found, *_wide_selectors(name, (bits, full + (left > 0)), count, select))


def _banks(design: Scnn) -> Components:
    """Both halves of all banks, each with an adder, and the other port, of halos and output."""
    name, bits, depth = "accumulator", design.accumulator_bits, design.bank_entries
    banks = design.pes * design.banks
    added: Events = {"accumulator_update": 1.0}
    summed: Events = {**added, "halo_sum": 1.0, "copy_sum": 1.0}
    reads: Events = {**added, **DRAINED}
    writes: Events = {**added, "halo_sum": 2.0, "zeroed": 1.0, "copy_sum": 1.0, "cleared": 1.0}
    entry, target = blocks.address_bits(depth), _entry_bits(design)
    return (
        *_words(design, (name, name), (2 * design.banks, bits, depth), reads, writes),
        *adders(name, bits, 2 * banks, summed),
        *selectors(name, bits, 2 * banks, summed),
        *registers(name, bits + target, banks, added),
        *registers(name, 3, banks, added),
        *selectors(name, bits + 2 * entry, 2 * banks, writes),
        *selectors(name, bits, 2 * banks, reads),
        *_wide_selectors(name, (bits, design.banks), design.pes, DRAINED),
        *registers(name, (design.banks - 1).bit_length(), design.pes, DRAINED),
    )


def _halo(design: Scnn) -> Components:
    """Addresses of the drain, and sums on their way to a neighbour.

    A copy's place is own + along, own − copied + depth, and so on, of either axis; a window's is
    compared with both ends of the region.
    """
    name, pes, bits = "halo", design.pes, address_bits(design)
    sent: Events = {"halo_sum": 1.0, "copy_sum": 1.0}
    placed, total = DRAINED, design.accumulator_bits
    copied: Events = {"copy_sum": 2.0}
    given: Events = {"zeroed": 1.0, "window_read": 1.0}
    return (
        *(pipelined.drained(design, placed) if design.pipelined_pes else ()),
        *adders(name, COORDINATE_BITS, 8 * pes, times(placed, 2)),
        *selectors(name, COORDINATE_BITS, 8 * pes, times(placed, 2)),
        *adders(name, COORDINATE_BITS, 14 * pes, times(copied, 4)),
        *selectors(name, COORDINATE_BITS, 8 * pes, times(copied, 2)),
        *adders(name, COORDINATE_BITS, 4 * pes, times(given, 4)),
        *_addresses(name, COORDINATE_BITS, bits, (pes, placed)),
        *adders(name, bits, pes, placed),
        *registers(name, bits, pes, placed),
        *registers(name, total + 6, pes, sent),
        *one_hot(name, (total, 4), pes, sent),
    )


def _exchange(design: Scnn) -> Components:
    """IARAM and OARAM in each other's place, with what their kind packs and unpacks."""
    address_bits = _memory_address_bits(design)
    return design.activation_memory.logic(design.stream_use("iaram"), address_bits)


def _memory_address_bits(design: Scnn) -> int:
    """Of a vector in the larger of IARAM and OARAM, and of the place behind it."""
    return blocks.address_bits(max(design.iaram_entries, design.oaram_entries) + 1)


def _output(design: Scnn) -> Components:
    """Biases, requantisation, the maximum of a window, compression into OARAM."""
    name, pes, bits = "compress", design.pes, design.ifmap_vector_bits
    made: Events = {"zeroed": 1.0, "window_read": 1.0}
    value = design.operand_bits
    left: Events = {"oaram_write": 1.0}  # a vector's lanes, one after the other
    total, lanes = design.accumulator_bits, design.ifmap_lanes
    number = pipelined.OUTPUT_REGISTERS if design.pipelined_pes else 0
    return (
        *registers("bias", total, 2 * design.filter_group + 1, {}),
        *every.registered_requantizers((total, MULTIPLIER_BITS), value, pes, number, made),
        *(pipelined.given(design, made) if design.pipelined_pes else ()),
        *registers("maximum", value, pes, made),
        *adders("maximum", value, pes, made),  # which of two is larger
        *selectors("maximum", value, 3 * pes, times(made, 3)),
        *shifters(name, min(bits, 64), pes, left),
        *held_registers(name, bits if lanes > 1 else 0, pes, left),
        *held_registers(name, bits, pes, left),
        *selectors(name, bits, pes, left),
        *_memory(design, "oaram"),
    )


def scnn_state_bits(design: Scnn) -> int:
    """Flip-flops of control, in all PEs and outside of them."""
    lane = (design.ifmap_lanes - 1).bit_length()
    pe = (
        PE_STATE_BITS + 5 * pointer_bits(design) + 5 * _memory_address_bits(design)
        + design.index_bits + lane + 1
    )  # fmt: skip
    biases = 2 * design.filter_group
    queue = every.queue_state_bits(biases) + biases.bit_length()
    command = LAYER_BITS + AXIS_BITS * (design.grid_rows + design.grid_columns)
    clearing = design.bank_entries.bit_length()
    clearing += (design.bank_entries - 1).bit_length()  # after a reset, and of a half
    places = 4 * blocks.address_bits(max(design.grid_rows, design.grid_columns))  # of lists' PEs
    in_pe, outside = design.activation_memory.state_bits(_memory_address_bits(design))
    pe, command = pe + in_pe, command + outside
    command += pipelined.state_bits(design) if design.pipelined_pes else 0
    command += clearing + places
    return design.pes * pe + CORE_STATE_BITS + queue + command + design.bank_queue
