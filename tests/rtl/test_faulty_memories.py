"""Faulty memories in hardware: the core is its model, and its registers are set at run time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.faulty.bank import FaultyBank
from archsim.memories.faulty.cell_faults import HALF_BIT
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.laws import Columns
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memories.protected.scratchpad import Secded
from archsim.memory import Plain
from rtl.cases import random_case
from rtl.conformance import check
from rtl.core.memory import Words, rtl_of
from rtl.core.settings import SettingsChain, chain_bits
from rtl.memories.faulty.fault_layer import FaultLayer, Layout
from rtl.registry import core_of, settings_in
from rtl.simulators import runner

SMALL = Plain(capacity_bytes=64)
SUMS: dict[str, Any] = {"accumulator_memory": Plain(capacity_bytes=512), "bias_words": 16}
EVERYTHING: dict[str, Any] = {
    "column_shape": 0.5, "persistent": 0.4, "draw": 3, "zero_to_one": 0.5, "one_to_zero": 0.3,
    "protected_bits": (3,),
}  # fmt: skip


def design_of(kind: str, **faults: Any) -> Any:
    """A small design both of whose scratchpads of operands fail."""
    wide = replace(SMALL, capacity_bytes=512)
    both: dict[str, Any] = {
        "ifmap_memory": Faulty(inner=SMALL if kind in ("weight_stationary", "output_stationary")
                               else wide, chip=5, **faults),
        "weight_memory": Faulty(inner=SMALL if kind in ("weight_stationary", "output_stationary")
                                else wide, chip=5, **faults),
    }  # fmt: skip
    if kind == "floats":
        return TensorCore(octets=1, group_columns=2, rows=4, length=2, **both, **SUMS)
    if kind == "vectors":
        return Vsq(lanes=2, vector=4, hold_cycles=2, **both, **SUMS)
    dataflow: Any = kind
    return Systolic(rows=2, columns=2, operand_bits=4, dataflow=dataflow, **both, **SUMS)


@pytest.mark.parametrize(
    ("kind", "faults"),
    [
        ("weight_stationary", {"rate": 0.0}),
        ("weight_stationary", {"rate": 0.2}),
        ("output_stationary", {"rate": 1.0}),
        ("output_stationary", {"rate": 0.4, **EVERYTHING}),
        pytest.param("input_stationary", {"rate": 0.05}, marks=pytest.mark.slow),
        pytest.param("floats", {"rate": 0.1}, marks=pytest.mark.slow),
        ("vectors", {"rate": 0.02}),
    ],
)
def test_a_core_with_faulty_memories_is_its_model(kind: str, faults: Any) -> None:
    design = design_of(kind, **faults)
    assert design_from_record(design_record(design), "it") == design
    assert design.exact == (faults["rate"] == 0)
    case = random_case(7, 1, design)
    assert check(case, runner(design, "amaranth")).equal
    if faults["rate"] == 0:
        return
    good = replace(
        design, ifmap_memory=design.ifmap_memory.inner, weight_memory=design.weight_memory.inner
    )
    right = random_case(7, 1, good).answer().transfers["ofmap"]
    seen = case.answer().transfers["ofmap"]
    assert (seen.cycle == right.cycle).all() and (seen.payload != right.payload).any()


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "number", "protected"),
    [
        ("weight_stationary", 2, False),
        pytest.param("output_stationary", 5, False, marks=SLOW),
        pytest.param("output_stationary", 8, True, marks=SLOW),
        pytest.param("input_stationary", 5, False, marks=SLOW),
        pytest.param("floats", 5, False, marks=SLOW),
        pytest.param("vectors", 5, False, marks=SLOW),
        pytest.param("vectors", 8, True, marks=SLOW),
    ],
)
def test_a_core_with_faulty_accumulators_is_its_model(
    kind: str, number: int, protected: bool
) -> None:
    """Every addition reads what a row held, and the output stage once more."""
    good = design_of(kind, rate=0.0)
    faults = {**EVERYTHING, "protected_bits": ()}
    rate = 0.3 if protected else 0.05  # code words with one error are right again
    memory: Any = Faulty(inner=SUMS["accumulator_memory"], rate=rate, chip=9, **faults)
    if protected:
        memory = Secded(inner=memory, data_bits=good.use("accumulator").lane_bits[0])
    design = replace(good, accumulator_memory=memory)
    assert not design.exact
    case: Any = random_case(7, number, design)
    assert check(case, runner(design, "amaranth")).equal
    right = replace(case, design=good).answer().transfers["ofmap"]
    assert (case.answer().transfers["ofmap"].payload != right.payload).any()


BIASES: Any = {
    "faulty": FaultyBank(rate=0.2, chip=5, **EVERYTHING),
    "parity": ParityBank(inner=FaultyBank(rate=0.05, chip=5), data_bits=1 << 10),
    "secded": SecdedBank(inner=FaultyBank(rate=0.05, chip=6), data_bits=1 << 10),
}
"""Memories of biases, by kind."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("output_stationary", "faulty"),
        pytest.param("weight_stationary", "parity", marks=pytest.mark.slow),
        pytest.param("input_stationary", "secded", marks=pytest.mark.slow),
        pytest.param("floats", "secded", marks=pytest.mark.slow),
        pytest.param("vectors", "faulty", marks=pytest.mark.slow),
    ],
)
def test_a_core_with_faulty_biases_is_its_model(kind: str, name: str) -> None:
    good = design_of(kind, rate=0.0)
    design = replace(good, bias_memory=BIASES[name])
    assert design_from_record(design_record(design), "it") == design
    run, seen = runner(design, "amaranth"), []
    for number in (1, 2):
        case: Any = random_case(7, number, design)
        assert check(case, run).equal
        right = replace(case, design=good).answer().transfers["ofmap"]
        seen.append((case.answer().transfers["ofmap"].payload != right.payload).any())
    assert any(seen)


@pytest.mark.parametrize("latency", [1, 3])
@pytest.mark.parametrize(
    "more", [{}, {"law": Columns(shape=0.3), "persistent": 0.5, "draw": 77, "stuck": 0.6}]
)
def test_a_layer_set_at_run_time_reads_what_the_map_says(latency: int, more: Any) -> None:
    """Registers of another chip at another rate, shifted in bit by bit."""
    at_reset = FaultMap(words=1 << 31, word_bits=24, chip=1, rate=0.0, **more)
    other = replace(at_reset, chip=2**32 - 9, rate=0.3)
    layout = Layout(faults=at_reset)
    layer = FaultLayer(faults=at_reset, bits=16, address_bits=9, first_bit=8, latency=latency)
    init, wanted = layout.settings(), Layout(faults=other).settings()
    chain = SettingsChain(bits=init.bits, init=init.init)
    rng = np.random.default_rng(latency)
    halves, addresses = rng.integers(0, 2, 16), rng.integers(0, 512, 16)
    words = rng.integers(0, 1 << 16, 16)
    top = Module()
    top.submodules.layer, top.submodules.chain = layer, chain
    top.d.comb += layer.settings.eq(chain.o)
    seen: dict[str, list[int]] = {"before": [], "behind": []}

    async def bench(ctx: Any) -> None:
        for name in seen:
            for at in range(len(words) + latency):
                if at < len(words):
                    ctx.set(layer.half, int(halves[at]))
                    ctx.set(layer.address, int(addresses[at]))
                if at >= latency:
                    ctx.set(layer.i, int(words[at - latency]))
                    seen[name].append(ctx.get(layer.o))
                await ctx.tick()
            for bit in range(wanted.bits):
                ctx.set(chain.shift, 1)
                ctx.set(chain.i, wanted.init >> bit & 1)
                await ctx.tick()
            ctx.set(chain.shift, 0)

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen["before"] == words.tolist()
    for word, got, half, address in zip(words, seen["behind"], halves, addresses, strict=True):
        first = (int(half) << HALF_BIT) + int(address)
        zero, one = (
            int.from_bytes(part[0, 1:3].tobytes(), "little") for part in other.masks(first, 1)
        )
        word = int(word)
        assert got == word ^ ((word & one) | (~word & zero))


def test_registers_are_ports_of_the_core_only_where_cells_fail() -> None:
    plain, faulty = Systolic(rows=2, columns=2, **SUMS), design_of("weight_stationary", rate=0.1)
    names = ("settings_shift", "settings_in", "settings_out")
    for design, there in ((plain, False), (faulty, True)):
        core: Any = core_of(design)
        core._MustUse__silence = True
        assert all((name in core.signature.members) == there for name in names)


def test_settings_of_a_user() -> None:
    design: Any = with_settings(
        EDGE_16, ["weight_memory.kind=faulty", "weight_memory.rate=0.01",
                  "weight_memory.protected_bits=[7]"],
    )  # fmt: skip
    assert design.weight_memory == Faulty(
        inner=EDGE_16.weight_memory, rate=0.01, protected_bits=(7,)
    )
    assert design_from_record(design_record(design), "it") == design


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "a faulty memory needs a rate or a voltage (of its cells, over the lowest without "
             "errors), not neither"),
        (["rate=1.5"], "rate must be from 0 to 1, not 1.5"),
        (["voltage=0.5"], "voltage: an SRAM's supply must be 0.757 to 1 of its minimum voltage"),
        (["rate=0.1", "protected_bits=[8]"], "protected_bits must be below the 8 bits of a lane, "
                                             "not 8"),
        (["rate=0.1", "protected_bits=3"], "protected_bits must be a list of bits, not 3"),
        (["rate=0.1", "chips=3"], "has no 'chips'; did you mean chip?"),
        (["rate=0.1", "column_shape=0"], "column_shape must be from 0.01 to 100, not 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(settings: Any, said: str) -> None:
    whole = ["weight_memory.kind=faulty", *(f"weight_memory.{one}" for one in settings)]
    with pytest.raises(InputError) as raised:
        with_settings(EDGE_16, whole)
    assert said in str(raised.value) and "\n" not in str(raised.value)


INNER = Boveda(capacity_bytes=64, group=1, unit_words=4, expansion=4)
CELLS = Faulty(inner=INNER, rate=0.08)


def compressed_of(kind: str, **faults: Any) -> Any:
    """A small design both of whose scratchpads of operands are compressed, of cells that fail."""
    inner = replace(INNER, capacity_bytes=128 if kind == "floats" else 64)
    memory = replace(CELLS, inner=inner, **faults)
    both: dict[str, Any] = {"ifmap_memory": memory, "weight_memory": memory}
    if kind == "floats":
        return TensorCore(octets=1, group_columns=2, rows=4, length=2, **both, **SUMS)
    dataflow: Any = kind
    return Systolic(rows=2, columns=2, dataflow=dataflow, **both, **SUMS)


@pytest.mark.parametrize(
    ("kind", "faults"),
    [
        ("weight_stationary", {}),
        pytest.param("output_stationary", {**EVERYTHING, "rate": 0.2}, marks=SLOW),
        pytest.param("input_stationary", {"column_shape": 0.3, "interleave": 4}, marks=SLOW),
        pytest.param("floats", {"rate": 0.03}, marks=SLOW),
    ],
)
def test_a_core_with_faulty_compressed_memories_is_its_model(kind: str, faults: Any) -> None:
    """Words and counts: cells of rows and of directories fail, and other rows are read."""
    design = compressed_of(kind, **faults)
    assert design_from_record(design_record(design), "it") == design
    case: Any = random_case(7, 7, design, longest_words=600)
    assert check(case, runner(design, "amaranth")).equal
    good = replace(
        design, ifmap_memory=design.ifmap_memory.inner, weight_memory=design.weight_memory.inner
    )
    right, seen = replace(case, design=good).answer(), case.answer()
    assert (seen.transfers["ofmap"].payload != right.transfers["ofmap"].payload).any()
    assert (seen.transfers["ofmap"].cycle == right.transfers["ofmap"].cycle).all()
    assert any(
        seen.actions[f"{name}_row_read"] != right.actions[f"{name}_row_read"]
        for name in ("ifmap", "weight")
    )


def test_other_forms_have_no_faults_in_hardware() -> None:
    """A kind whose hardware does not know how to be seen through layers."""
    design = compressed_of("weight_stationary")
    words = Words(lanes=2, bits=8, signed=True, depth=4, use=design.use("weight"))
    with pytest.raises(InputError, match="no RTL is known for faults in the cells of a faulty"):
        rtl_of(Faulty(inner=CELLS, rate=0.1)).unit(words, by_lane=False)


KEY_BITS, DRAW_BITS = 32, 10
RATE_BITS = (1 << 24).bit_length()
"""Of the largest threshold, with which every cell fails."""


@pytest.mark.parametrize(
    ("settings", "bits"),
    [
        ("ifmap_memory.kind=faulty ifmap_memory.rate=0.01", {"ifmap": KEY_BITS + RATE_BITS}),
        ("ifmap_memory.kind=faulty ifmap_memory.rate=1 weight_memory.kind=faulty "
         "weight_memory.rate=0.01 weight_memory.persistent=0.5",
         {"ifmap": KEY_BITS + RATE_BITS, "weight": KEY_BITS + DRAW_BITS + 2 * RATE_BITS}),
    ],
)  # fmt: skip
def test_a_chain_is_as_long_as_what_memories_take(settings: str, bits: dict[str, int]) -> None:
    """Of each the key, a draw where cells fail sometimes, a threshold of each sort."""
    design: Any = with_settings(EDGE_16, ["rows=2", "columns=2", *settings.split()])
    found = settings_in(design)
    assert {name: one.bits for name, one in found.items()} == bits
    assert len(chain_bits(found)) == sum(bits.values())
    rates = {name: one.init >> (bits[name] - RATE_BITS) for name, one in found.items()}
    assert rates["ifmap"] == round(design.ifmap_memory.rate * 2**24)
