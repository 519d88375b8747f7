"""The hardware of a sparse training machine as components.

Structural, from our own RTL (`rtl/sparsetrain.py`, `rtl/core/train_*.py`): every flip-flop of the
emitted core is here (a test counts them in the netlist), every memory with the shape it has there.

What is taken for granted: memories are read only when an action reads them, so a row in the window
is read once; all registers are clocked in every cycle; a step out of a scratchpad is priced as if
its mask were counted too.  A gate of two inputs is priced as a third
of a selector of one bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archsim.blocks import (
    Components,
    Events,
    adders,
    address_bits,
    block,
    held_registers,
    incrementers,
    multipliers,
    registers,
    selector_tree,
    selectors,
    times,
)
from archsim.machine import components as every
from archsim.machine.unit_components import FloatUnits
from archsim.machines.sparsetrain.design import COUNTER_BITS, SIDES, counted_of, events_at_once
from archsim.memory import PlainBank

if TYPE_CHECKING:
    from archsim.machines.sparsetrain.design import SparseTrain

LANE: Events = {"product": 1.0}
STEP: Events = {"step": 1.0}
OUTPUT: Events = {"output": 1.0}


def sparsetrain_components(design: SparseTrain) -> Components:
    """Components in the order in which the data flow."""
    return (
        every.off_chip(),
        *_loader(design, "row"),
        *_loader(design, "column"),
        *_scratchpads(design),
        *_masks(design),
        *_buffers(design),
        *_window(design),
        *(_pipelined(design) if design.pipelined_pes else ()),
        *_datapath(design),
        *_accumulators(design),
        *_drain(design),
        every.control(state_bits(design)),
    )


def _loader(design: SparseTrain, name: str) -> Components:
    """The ring, and each lane's choice of a value in it."""
    lanes, bits = design.lanes, design.operand_bits
    step: Events = {f"{name}_load": 1.0}
    within = (2 * lanes - 1).bit_length()
    whole = f"{name}_loader"
    return (
        *held_registers(whole, lanes * bits, 2, {f"{name}_word": 1.0}),
        *adders(whole, within, lanes, times(step, lanes)),
        *selector_tree(whole, (bits, 2 * lanes), lanes, {f"{name}_word": float(lanes)}),
    )


def _scratchpads(design: SparseTrain) -> Components:
    """Steps that are kept, and which of a step that comes and one that lies there is taken."""
    found: Components = ()
    lanes, bits = design.lanes, design.operand_bits
    for name in SIDES:
        depth = design.kept_steps(name)
        if not depth:
            continue
        whole = f"{name}_scratchpad"
        read, written = {f"{name}_again": 1.0}, {f"{name}_keep": 1.0}
        both = {**read, **written}
        found += design.scratchpad_memory.macros(
            f"{whole}.words", (1, lanes, bits, depth), read, written
        )
        found += incrementers(whole, address_bits(depth), 1, both)
        found += selectors(whole, address_bits(depth), 1, both)
        found += selectors(whole, lanes * bits, 1, {f"{name}_load": 1.0})
    return found


def _masks(design: SparseTrain) -> Components:
    """Of outputs: the one that comes, the tile's, the one that leaves; and the PEs' queues."""
    outputs, name = design.rows * design.columns, "needed"
    tile: Events = {"tile": 1.0}
    incoming: Components = ()
    if design.skip_outputs:
        incoming = held_registers(name, design.columns, design.rows, {"needed_word": 1.0})
    return (
        *incoming,
        *held_registers(f"{name}.tile", outputs, 1, tile),
        *held_registers(f"{name}.leaving", outputs, 1, tile),
        *held_registers("queue", design.own_outputs, design.pes, {**OUTPUT, "block": design.pes}),
        *incrementers("queue", design.own_outputs, design.pes, OUTPUT),
    )


def _buffers(design: SparseTrain) -> Components:
    """A bank for each row of the window, of rows in every PE, of columns in the one they are for.

    A row of the window leaves its bank once; two addresses a bank.  Pipelined PEs have memories of
    which values of a step are not zero beside them.
    """
    found: Components = ()
    banks = design.pes * design.window_rows
    for name, vectors, copies in (
        ("row", design.rows, design.pes),
        ("column", design.own_columns, 1),
    ):
        depth = 2 * vectors * design.bank_rows
        shape = (banks, design.lanes, design.operand_bits, depth)
        flags = (banks, design.lanes, 1, depth)
        written = {f"{name}_load": float(copies)}
        whole = f"{name}_buffer"
        bits = address_bits(depth)
        macros = design.bank(name).macros
        found += macros(f"{whole}.words", shape, {"fetch": 1.0}, written)
        if design.pipelined_pes:
            found += PlainBank().macros(f"{whole}.flags", flags, {"fetch": 1.0}, written)
        found += registers(whole, bits, banks, {"fetch": 1.0})
        found += incrementers(whole, bits, banks, {"fetch": 1.0})
        found += selectors(whole, bits, banks, {"fetch": 1.0})
    return found


def _window(design: SparseTrain) -> Components:
    """What is not zero and not taken yet; which lane takes what; the operands that it takes."""
    name, lanes, bits, rows = "window", design.lanes, design.operand_bits, design.window_rows
    pes, places = design.pes, len(design.window)
    gates = 2 * rows * (bits - 1) + 3 * rows + 4 * places
    kept = held_registers(name, lanes, pes * rows, STEP) if rows > 1 or design.pipelined_pes else ()
    turned = selector_tree(name, (2 * lanes * bits, rows), pes * rows, times(STEP, rows))
    apart, ring = 0, design.segment_lanes  # lanes whose place is another where they are split
    if design.segments > 1:
        asides = [place.aside for place in design.window]
        apart = sum(
            (lane + aside) % lanes != lane // ring * ring + (lane + aside) % ring
            for aside in asides
            for lane in range(lanes)
        )
        gates += 3 * -(-2 * apart // lanes) + 1
    return (
        *selectors(name, lanes, -(-gates * pes // 3), times(STEP, gates / 3)),
        *(selectors(name, bits, 2 * pes * apart, times(STEP, 2 * apart)) if apart else ()),
        *kept,
        *turned,
        *selector_tree(name, (bits, places), 2 * pes * lanes, times(LANE, 2)),
    )


def _pipelined(design: SparseTrain) -> Components:
    """Of PEs with registers between their steps: what is in the window, what lanes chose, the
    lowest output of a queue; products of integers."""
    lanes, bits, pes = design.lanes, design.operand_bits, design.pes
    rows, places = 2 * design.window_rows, len(design.window)
    products = registers("multipliers", 2 * bits, pes * lanes, LANE)
    return (
        *registers("window", lanes * bits, pes * rows, times(STEP, rows)),
        *registers("window", lanes, pes * places, times(STEP, places)),
        *registers("queue", design.own_outputs - 1, pes, OUTPUT),
        *(() if design.floating else products),
    )


def _datapath(design: SparseTrain) -> Components:
    """Multipliers, and the sum of a step and of a dot product."""
    lanes, bits, pes = design.lanes, design.operand_bits, design.pes
    total = design.accumulator_bits
    if design.floating:
        return (*registers("operands", bits, 2 * pes * lanes, times(LANE, 2)), *_floats(design))
    found: Components = (
        *registers("operands", bits, 2 * pes * lanes, times(LANE, 2)),
        *multipliers("multipliers", (bits, bits), pes * lanes, LANE),
    )
    wide, count = 2 * bits, lanes
    while count > 1:
        pairs = count // 2
        found += adders("sum", min(wide + 1, total), pes * pairs, times(STEP, pairs))
        wide, count = wide + 1, count - pairs
    segments = design.segments
    return (
        *found,
        *(selectors("sum", design.step_bits, pes * segments, STEP) if segments > 1 else ()),
        *registers("sum", design.step_bits, pes * segments, STEP),
        *registers("sum", total, pes * segments, STEP),
        *adders("sum", total, pes * segments, STEP),
    )


def _floats(design: SparseTrain) -> Components:
    """Products of floats, aligned and added up; and sums that take them in, rounded each time."""
    pes, segments, total = design.pes, design.segments, design.accumulator_bits
    lanes = FloatUnits(name="multipliers", dot=design.dot, count=pes, busy=STEP)
    step = FloatUnits(name="sum", dot=design.dot, count=pes, busy=STEP)
    sums = FloatUnits(name="sum", dot=design.dot, count=pes * segments, busy=STEP)
    exponent = design.dot.datapath.exponent_bits
    apart: Components = ()
    if segments > 1:  # the largest exponent, and the sum, of a segment or of all lanes
        apart = selectors("sum", design.step_bits + exponent, pes * segments, STEP)
    return (
        *lanes.products(LANE),
        *step.partial(),
        *apart,
        *registers("sum", design.step_bits, pes * segments, STEP),
        *sums.joined(),
        *sums.rounded(),
        *selectors("sum", total, 2 * pes * segments, times(STEP, 2)),
        *registers("sum", total, pes * segments, STEP),
    )


def _accumulators(design: SparseTrain) -> Components:
    """Two halves in each PE: of the tile that is computed, and of the one that leaves."""
    name, pes, bits = "accumulators", design.pes, design.accumulator_bits
    banks = pes * design.segments
    shape = (2 * banks, 1, bits, design.segment_outputs)
    read: Events = {**OUTPUT, "word": float(pes)}
    added = () if design.floating else adders(name, bits, banks, OUTPUT)
    return (
        *design.accumulator_memory.macros(f"{name}.words", shape, read, OUTPUT),
        *added,
        *selector_tree(name, (bits, design.segments), pes, {"word": float(pes)}),
        *selectors(name, bits, pes, {"word": float(pes)}),
    )


def _drain(design: SparseTrain) -> Components:
    """Which words leave, and which of their lanes."""
    name, outputs, word = "drain", design.own_outputs, {"word": 1.0}
    return (
        *held_registers(name, outputs, 1, word),
        *incrementers(name, outputs, 1, word),
        *registers(name, design.pes, 1, word),
        *block("mux", name, {"bits": min(design.accumulator_bits, 64), "ways": 2}, design.pes,
               {"select": times(word, design.pes)}),
    )  # fmt: skip


def state_bits(design: SparseTrain) -> int:
    """Flip-flops of control: of loaders, PEs, the drain, and the three blocks under way."""
    return (
        _loader_bits(design, design.rows, 1)
        + _loader_bits(design, design.columns, design.pes)
        + sum(address_bits(one) + 2 for one in map(design.kept_steps, SIDES) if one)
        + design.pes * _pe_bits(design)
        + 2 + address_bits(design.own_outputs)
        + _core_bits(design)
    )  # fmt: skip


def _loader_bits(design: SparseTrain, vectors: int, spread: int) -> int:
    """The ring's level, place and word; the walk over vectors and steps."""
    lanes, rows = design.lanes, design.window_rows
    ring = (2 * lanes).bit_length() + (2 * lanes - 1).bit_length() + 1
    counts = 2 * vectors.bit_length() + 2 * design.depth.bit_length()
    even = (design.bank_rows & -design.bank_rows).bit_length() - 1
    address = address_bits(2 * vectors // spread * design.bank_rows) - even
    line = (design.bank_rows - 1).bit_length()
    return ring + counts + address + line + (rows - 1).bit_length() + (spread - 1).bit_length() + 1


def _pe_bits(design: SparseTrain) -> int:
    """Its output in three stages, the flags of each; steps left, and the window's first bank."""
    output = address_bits(design.segment_outputs)
    steps = design.depth.bit_length() + (design.window_rows - 1).bit_length()
    segments = design.segments
    within = (segments - 1).bit_length()
    parts = 2 * segments + within if segments > 1 else 0  # taken, a cycle later; which one leaves
    begins = segments if design.floating else 0
    more = _pipelined_bits(design) if design.pipelined_pes else 0
    return (2 + segments) * output + 3 + 2 * segments + parts + steps + begins + more


def _pipelined_bits(design: SparseTrain) -> int:
    """Beside them: the queue's numbers and what is under way to them; the output that comes; the
    window's first bank, one bit each; a cycle later how many rows are done, and from which banks
    rows come; what goes beside operands and products.

    Where all of an output is in the window at once, rows come from the same banks always.
    """
    rows, segments = design.window_rows, design.segments
    walks = design.depth > rows
    apart = segments if segments > 1 else 0
    number, output = address_bits(design.own_outputs), address_bits(design.segment_outputs)
    queue = 3 * (number + apart) + 3 * 2 + 2 + 1 + apart
    beside = (1 if design.floating else 2) * (2 + output + apart)
    first = (rows if walks else 0) - (rows - 1).bit_length()
    late = (rows.bit_length() if rows > 1 else 0) + (rows * rows if walks else rows)
    return queue + 1 + output + apart + first + late + beside


def _core_bits(design: SparseTrain) -> int:
    """Commands, of which the computed block keeps its steps and two flags; what is under way."""
    command = sum(one.bits for one in design.block_fields)
    needed = 0
    if design.skip_outputs:
        needed = design.rows.bit_length() + (design.rows - 1).bit_length()
    # Of the computed block; under way; halves; blocks in hand.
    flags = 2 + 3 + 3 + 2 + (design.segments > 1)
    counters = COUNTER_BITS * (len(counted_of(design)) - (not design.skip_outputs))
    counters += sum(most.bit_length() for most in events_at_once(design).values())
    return 2 * command + design.depth.bit_length() + flags + needed + counters


__all__ = ["sparsetrain_components", "state_bits"]
