"""Lists of the sparse core behind check bits, in RTL: the core is its model, whatever is read.

A code word is of whole elements, so that an error in one may take the place of another with it;
flags lie beside, and lists end as those in failing cells do.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import Patch, seen_input
from scnn_bench import caught
from scnn_failing_designs import KINDS, drawn, read_differently, small_core
from scnn_faults import rewritten
from scnn_growing import growing

from archsim.machine.registry import design_from_record, design_record
from archsim.machines.scnn.design import Scnn
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.stream import ParityStream, SecdedStream
from archsim.memory import PlainStream
from rtl.cases import Draw
from rtl.conformance import check
from rtl.memories import protected
from rtl.memories.protected import stream
from rtl.memories.protected.codec import Decoder, Encoder
from rtl.memories.protected.stream import ProtectedActivations
from rtl.simulators import runner
from rtl.suite import DesignConformance

SLOW = pytest.mark.slow
ONE = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=1, ifmap_lanes=2, banks=2, bank_entries=24,
    weight_fifo_vectors=8, filter_group=2, iaram_bytes=60, oaram_bytes=20, index_bits=2,
    operand_bits=8, bank_queue=2,
    activation_memory=SecdedStream(data_bits=10, inner=FaultyStream(rate=0.06, chip=4)),
)  # fmt: skip
"""Of 15 bits three words of five are read without an error, one of five as zeros."""
WRONG = replace(
    ONE, activation_memory=SecdedStream(data_bits=10, inner=FaultyStream(rate=0.5, chip=4))
)
PAIRED = replace(
    ONE, ifmap_lanes=3, activation_memory=ParityStream(data_bits=20, inner=FaultyStream(rate=0.03))
)
"""Code words of two lanes, and one of the third."""
SOUND = replace(ONE, activation_memory=SecdedStream(data_bits=20))
FOUR = replace(
    ONE, grid_rows=2, grid_columns=2, weight_lanes=2, banks=4, iaram_bytes=100,
    activation_memory=SecdedStream(data_bits=20, inner=FaultyStream(rate=0.05, chip=4)),
)  # fmt: skip
TWICE = ParityStream(data_bits=20, inner=ONE.activation_memory)
BOTH = replace(
    FOUR, weight_memory=FaultyBank(rate=0.02), accumulator_memory=FaultyBank(rate=0.01),
    activation_memory=ParityStream(data_bits=10, inner=FaultyStream(rate=0.02)),
)  # fmt: skip


@pytest.mark.parametrize(
    "design",
    [
        pytest.param(ONE, id="SECDED"),
        pytest.param(PAIRED, id="parity over two lanes"),
        pytest.param(SOUND, id="sound cells"),
        pytest.param(replace(SOUND, pipelined_pes=True), id="sound cells, pipelined"),
        pytest.param(replace(ONE, activation_memory=TWICE), id="parity around SECDED"),
        pytest.param(replace(ONE, pipelined_pes=True), id="pipelined"),
        pytest.param(FOUR, marks=SLOW, id="four PEs"),
        pytest.param(BOTH, marks=SLOW, id="all memories"),
    ],
)
def test_a_core_with_check_bits_around_lists_is_its_model(design: Scnn) -> None:
    assert design_from_record(design_record(design), "it") == design
    cases = [drawn(number, design) for number in (1, 3)]
    assert any(read_differently(case, PlainStream()) for case in cases) == (
        not design.activation_memory.exact
    )
    for case in cases:
        assert check(case, runner(design, "amaranth")).equal


def test_lists_that_are_another_length_end() -> None:
    """Where three errors look like one an ofmap may be longer than the OARAM that holds it."""
    case = growing(WRONG)
    assert read_differently(case, PlainStream())
    assert any(one.strip.operands.made.vectors > WRONG.oaram_vectors for one in case.passes)
    assert check(case, runner(WRONG, "amaranth")).equal


def test_a_core_with_measured_faults_below_check_bits_is_its_model(tmp_path: Path) -> None:
    use, draws = ONE.stream_use("iaram"), np.random.default_rng(5)
    shape = 2 << use.row_bits, 30
    cells = (draws.random(shape) < 0.05) * draws.integers(1, 4, shape)
    np.savez(tmp_path / "map.npz", map=cells.astype(np.uint8))
    inner = FaultyStream(map=str(tmp_path / "map.npz"))
    design = replace(ONE, activation_memory=SecdedStream(data_bits=10, inner=inner))
    case = drawn(3, design)
    assert read_differently(case, PlainStream())
    assert check(case, runner(design, "amaranth")).equal


def memories(*fault: str) -> Patch:
    return rewritten(protected, stream, "ProtectedActivations", *fault)


FAULTS: dict[str, Patch] = {
    "the decoder sees another check bit": seen_input(
        Decoder, "i", lambda self, there: there ^ 1 << len(there) - 1
    ),
    "the encoder sees another bit": seen_input(Encoder, "i", lambda self, there: there ^ 1),
    "the first PE's faults in all": seen_input(
        ProtectedActivations, "number", lambda self, there: there & 0
    ),
    "registers of another chip": seen_input(
        ProtectedActivations, "settings", lambda self, there: there ^ 1
    ),
    "the flag is the check bits'": memories("Cat(written, own.write_data[-1])", "written"),
    "no flag is read": memories("Cat(read, other.read_data[-1])", "read"),
    "flags of the other port": memories(
        "Cat(written, own.write_data[-1])", "Cat(written, self.ifmap.write_data[-1])"
    ),
    "check bits are not written": memories(
        "Cat(written, own.write_data[-1])",
        "Cat(written & ((1 << self.codes[0].data_bits) - 1), own.write_data[-1])",
    ),
    "what is read is not decoded": memories(
        "Cat(read, other.read_data[-1])",
        "Cat(other.read_data[: len(read)], other.read_data[-1])",
    ),
    "addresses of what is written are those of what is read": memories(
        "getattr(other, member).eq(getattr(own, member))",
        'getattr(other, member).eq(getattr(own, member.replace("write_a", "read_a")))',
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) for name in FAULTS])
def test_a_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    pair = replace(ONE, grid_columns=2, iaram_bytes=10, oaram_bytes=17)
    assert any(caught(case) for case in (drawn(3, ONE), growing(WRONG), drawn(1, pair)))


class TestScnnListsWithChecks(DesignConformance):
    """In Verilog four PEs; random ones in Amaranth."""

    designs = (FOUR, BOTH)
    amaranth_cases = 12
    verilator_cases = 60
    cocotb_cases = 0
    pytestmark = SLOW

    def random_design(self, draw: Draw) -> Scnn:
        design = small_core(draw)
        faults = KINDS[draw.whole(0, 3)]
        rate, chip = (0.005, 0.05, 0.3, 1.0)[draw.whole(0, 3)], draw.whole(0, 9)
        inner: Any = FaultyStream(rate=rate, chip=chip, **faults)
        if draw.chance(0.2):
            inner = PlainStream()
        kind = (ParityStream, SecdedStream)[draw.whole(0, 1)]
        data_bits = design.element_bits * draw.whole(1, 3)
        return replace(
            design,
            activation_memory=kind(data_bits=data_bits, inner=inner),
            pipelined_pes=draw.chance(0.3),
        )
