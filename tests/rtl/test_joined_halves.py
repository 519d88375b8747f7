"""Both halves of a scratchpad in one SRAM: half as many, and everything else as with two."""

from dataclasses import replace
from typing import Any

import pytest

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn.design import SCNN_4PE
from archsim.machines.systolic.design import Systolic
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from archsim.simulate import simulate
from archsim.tiled.design import CoreDesign
from rtl.suite import check_random_cases
from workloads.layers import Conv2d, Network

BYTES = 1 << 11
ODD = Plain(capacity_bytes=1800)  # 75 and 112 words a half
MEMORIES: dict[str, Any] = {
    "ifmap_memory": ODD,
    "weight_memory": ODD,
    "accumulator_memory": Plain(capacity_bytes=BYTES),
}
CORES: dict[str, CoreDesign] = {
    "systolic": Systolic(rows=3, columns=2, **MEMORIES),
    "output stationary": Systolic(rows=4, columns=3, dataflow="output_stationary", **MEMORIES),
    "tensor core": TensorCore(
        octets=1, group_columns=1, rows=4, operand="int8", accumulator="int32", **MEMORIES
    ),
    "vector lanes": Vsq(lanes=2, vector=4, hold_cycles=3, **MEMORIES),
}
JOINED = ["ifmap_memory.joined_halves=true", "weight_memory.joined_halves=true"]
AROUND = {
    "as they are": [],
    "faulty": ["ifmap_memory.kind=faulty", "ifmap_memory.rate=0.02"],
    "check bits over faults": [
        "weight_memory.kind=faulty",
        "weight_memory.rate=0.02",
        "weight_memory.kind=secded",
    ],
}


def _with(design: CoreDesign, settings: list[str]) -> Any:
    return with_settings(design, settings)


@pytest.mark.parametrize("name", CORES)
def test_the_rtl_is_the_model(name: str) -> None:
    """Halves that are no power of two begin at one."""
    design = _with(CORES[name], JOINED)
    check_random_cases(design, "amaranth", seed=5, cases=3, longest_words=400)


@pytest.mark.parametrize("around", AROUND)
def test_other_kinds_stand_around_it(around: str) -> None:
    design = _with(CORES["systolic"], [*JOINED, *AROUND[around]])
    assert design.for_fpga() == replace(
        design,
        pipelined_control=True,
        ifmap_registers=int(design.ifmap_memory.read_latency_cycles == 1),
        product_registers=2,
        output_registers=2,
        accumulator_registers=1,
    )
    check_random_cases(design, "amaranth", seed=6, cases=2, longest_words=400)


def _srams(design: CoreDesign, name: str) -> list[tuple[int, int]]:
    """How many there are of a memory, and of how many words."""
    return [
        (one.count, one.attributes["depth"])
        for one in design.components
        if one.kind == "sram" and one.name == f"{name}.memory"
    ]


@pytest.mark.parametrize("name", CORES)
def test_only_memories_are_others(name: str) -> None:
    """Cycles and actions are those of two SRAMs; there is one of as many words and no choice."""
    plain = CORES[name]
    joined = _with(plain, JOINED)
    layer = Conv2d(
        name="c", channels=5, filters=7, ifmap_height=6, ifmap_width=5, kernel_height=3,
        kernel_width=3, pad_top=1,
    )  # fmt: skip
    network = Network(name="one", source="here", layers=(layer,))
    was, now = (simulate(one, network) for one in (plain, joined))
    assert (was.cycles, was.actions) == (now.cycles, now.actions)
    for memory in ("ifmap", "weight"):
        ((count, depth),), ((half, both),) = _srams(plain, memory), _srams(joined, memory)
        assert 2 * half == count
        assert both == (1 << (depth - 1).bit_length()) + depth
        assert not [
            one for one in joined.components if one.kind == "mux" and one.name == f"{memory}.memory"
        ]


def test_for_an_fpga_halves_are_joined() -> None:
    for design in CORES.values():
        found = design.for_fpga()
        assert isinstance(found, CoreDesign)
        assert found.ifmap_memory == found.weight_memory == replace(ODD, joined_halves=True)
        assert found.accumulator_memory == design.accumulator_memory
    faulty = _with(CORES["systolic"], AROUND["faulty"]).for_fpga()
    assert _with(CORES["systolic"], [*JOINED, *AROUND["faulty"]]).for_fpga() == faulty
    assert SCNN_4PE.for_fpga().activation_memory == SCNN_4PE.activation_memory


def test_plain_data_says_it_where_it_is_so() -> None:
    design = CORES["systolic"]
    assert "joined_halves" not in design_record(design)["ifmap_memory"]
    joined = _with(design, JOINED)
    assert design_record(joined)["ifmap_memory"]["joined_halves"] is True
    assert design_from_record(design_record(joined), "here") == joined


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["ifmap_memory.joined_halves=2"], "joined_halves must be true or false, not 2"),
        (["accumulator_memory.joined_halves=true"], "joined_halves of accumulator_memory must be"),
        (
            [
                "accumulator_memory.kind=faulty",
                "accumulator_memory.rate=0.1",
                "accumulator_memory.inner.joined_halves=true",
            ],
            "joined_halves of accumulator_memory must be false",
        ),
        (["ifmap_memory.kind=boveda", "ifmap_memory.joined_halves=true"], "joined_halves"),
    ],
)
def test_what_cannot_be_joined_is_refused(settings: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _with(CORES["systolic"], settings)
