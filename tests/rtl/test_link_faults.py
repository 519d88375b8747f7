"""Memories that fail on a board: voltage, chip and rates are set through the byte link."""

import zlib
from itertools import combinations

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.registry import load_design, with_settings
from fpga.host.memories import design_as_built, exact, setting_bits
from fpga.host.network import layer_on_board
from fpga.host.session import LinkError, Session
from fpga.units import TOP, unit_verilog
from rtl.axi.register_map import register_map
from rtl.benches.byte_board import ByteBoard
from rtl.link.link_core import LinkCore
from rtl.memories.faulty.fault_layer import RATE_BITS
from workloads.layers import Conv2d, Network

HASH_BITS = 32
TIMEOUT = 6000
SMALL = [f"{name}_memory.capacity_bytes=64" for name in ("ifmap", "weight", "accumulator")]
DESIGN = with_settings(load_design("edge-16"), ["rows=2", "columns=1", "bias_words=2", *SMALL])
FAILING = with_settings(
    DESIGN, ["weight_memory.kind=faulty", "weight_memory.voltage=1.0",
             "weight_memory.protected_bits=[7]", "ifmap_memory.kind=faulty",
             "ifmap_memory.rate=0.05", "ifmap_memory.chip=4"],
)  # fmt: skip
LAYER = Conv2d(
    name="conv", channels=5, filters=3, ifmap_height=5, ifmap_width=4, kernel_height=2,
    kernel_width=2,
)  # fmt: skip


@pytest.mark.slow
def test_memories_fail_as_they_are_set() -> None:
    """Layer behind layer, each voltage and chip as the model, on the same board; then as built."""
    operands = DESIGN.intake.synthetic(LAYER, Drawing())
    model = DESIGN.machine_model()
    network = Network(name="", source="", layers=(LAYER,))
    right = model.run(network, lambda _: operands, model.taken({})).result(LAYER).ofmap
    changes = ["weight_memory.voltage=0.804", "weight_memory.chip=7"]
    low = with_settings(FAILING, changes)
    lower = with_settings(low, ["ifmap_memory.rate=0.0", "weight_memory.chip=9"])
    one_tile = Conv2d(name="one", channels=1, filters=1, ifmap_height=2, ifmap_width=2,
                      kernel_height=1, kernel_width=1)  # fmt: skip
    with ByteBoard(unit_verilog(LinkCore(design=FAILING)), top=TOP, timeout=TIMEOUT) as board:
        session = Session(board, FAILING)
        seen = [layer_on_board(session, LAYER, operands)[0]]
        for design in (low, low, lower):
            session.set_memories(design)
            layer_on_board(session, one_tile, DESIGN.intake.synthetic(one_tile, Drawing()))
            seen.append(layer_on_board(session, LAYER, operands)[0])
        other = with_settings(FAILING, ["weight_memory.protected_bits=[6]"])
        with pytest.raises(
            InputError, match="only rate, voltage, chip and draw of faulty memories"
        ):
            session.set_memories(other)
        session.reset()
        assert session.design == FAILING
        seen.append(layer_on_board(session, LAYER, operands)[0])
        session.write({"OFMAP_WORDS": 1, "CONTROL": 1})
        with pytest.raises(LinkError, match="answers WRITE with REFUSED"):
            session.set_memories(low)
    assert np.array_equal(seen[1], seen[2])
    assert np.array_equal(seen[0], seen[4])
    different = [right, seen[0], seen[1], seen[3]]
    assert all(not np.array_equal(a, b) for a, b in combinations(different, 2))


def test_a_board_without_faults_has_none_to_set() -> None:
    plain, failing = ([one.name for one in register_map(each)] for each in (DESIGN, FAILING))
    assert set(failing) - set(plain) == {"MEMORY_SETTINGS"}
    assert exact(DESIGN)
    assert not exact(FAILING)
    assert setting_bits(DESIGN) == []
    assert design_as_built(DESIGN) == DESIGN


def test_settings_in_the_order_of_the_chain() -> None:
    """The first bit goes furthest: the lowest of the last memory, whose key begins there."""
    bits = setting_bits(FAILING)
    each = HASH_BITS + RATE_BITS
    assert len(bits) == 2 * each
    weight, ifmap = bits[:each], bits[each:]
    assert not any(weight[HASH_BITS:])  # no faults at the lowest voltage without
    assert as_number(ifmap[HASH_BITS:]) == round(0.05 * 2**24)
    assert as_number(weight[:HASH_BITS]) ^ as_number(ifmap[:HASH_BITS]) == (
        4 ^ zlib.crc32(b"weight.words") ^ zlib.crc32(b"ifmap.words")
    )


def as_number(bits: list[int]) -> int:
    return sum(bit << at for at, bit in enumerate(bits))
