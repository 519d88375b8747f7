"""The components by which a core is priced are the hardware that is emitted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from netlists import USED, Components, Netlist, registers

from archsim import EDGE_16, Plain
from archsim.machines.systolic.design import DATAFLOWS
from archsim.machines.tensorcore.design import TensorCore
from archsim.machines.vsq.design import Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.tiled.components import waiting_bits
from archsim.tiled.design import CoreDesign, kibibytes
from energy_models.component import Component
from energy_models.technology import load_technology
from rtl.emit import emit
from rtl.synthesis.liberty import DEFAULT_LIBRARY, read_library
from rtl.synthesis.yosys import map_to_cells

DESIGNS = [
    replace(EDGE_16, rows=4, columns=5),
    replace(EDGE_16, rows=1, columns=1),
    replace(EDGE_16, rows=3, columns=7, operand_bits=4, gather_units=70),
    replace(EDGE_16, rows=8, columns=8, accumulator_memory=Plain(capacity_bytes=8192)),
    replace(EDGE_16, rows=2, columns=3, product_registers=2, output_registers=2),
    replace(EDGE_16, rows=3, columns=2, accumulator_registers=1).for_fpga(),
    replace(EDGE_16, rows=5, columns=2, ifmap_registers=1),
    replace(EDGE_16, rows=2, columns=4, operand_bits=16, accumulator_bits=40, output_registers=2),
    replace(EDGE_16, rows=2, columns=4, output_registers=1),
]


@pytest.mark.parametrize(
    ("number_", "dataflow"),
    [
        # quickly: the first design in every dataflow, each other one in one
        pytest.param(n, dataflow, marks=pytest.mark.slow if n and (n + at) % 3 else ())
        for n in range(len(DESIGNS))
        for at, dataflow in enumerate(DATAFLOWS)
    ],
)
def test_components_are_the_netlist(number_: int, dataflow: str, tmp_path: Path) -> None:
    """All flip-flops of the array; all of the core but for the few that addresses need."""
    design = replace(DESIGNS[number_], dataflow=dataflow)
    netlist = Netlist(design, tmp_path)
    array = netlist.units["array"]
    begin = design.rows + 1 if dataflow == "output_stationary" else 0  # tokens of the first step
    assert array - begin <= registers(design.components, "array.") <= array
    control = next(one for one in design.components if one.kind == "control")
    counted = registers(design.components) + control.attributes["state_bits"]
    assert counted == pytest.approx(netlist.flip_flops, rel=0.003)
    check_packer(design.components, netlist)
    macros: Counter[tuple[int, int]] = Counter()
    for one in design.components:
        if one.kind == "sram":
            macros[one.attributes["word_bits"], one.attributes["depth"]] += one.count
    assert macros == netlist.macros


def check_packer(components: Components, netlist: Netlist) -> None:
    """The flip-flops of the packer, and of the places that travel to it, exactly."""
    stages = [name for name, one in netlist.modules.items() if "packer" in one["cells"]]
    (stage,) = (name for name in stages if "queue" in netlist.modules[name]["cells"])
    packer = netlist.placed(stage, "packer", "packing", "place_delay")
    assert registers(components, "output_stage.packer") == packer


MEMORIES: dict[str, Any] = {
    "ifmap_memory": kibibytes(16),
    "weight_memory": kibibytes(32),
    "accumulator_memory": kibibytes(32),
}
VSQ = {
    "W4/A4/4/6": Vsq(lanes=4, vector=4, hold_cycles=4, **MEMORIES),
    "rounded, gated": Vsq(
        lanes=2,
        vector=6,
        hold_cycles=3,
        weight_scale_bits=8,
        activation_scale_bits=8,
        scale_product_bits=8,
        gated=True,
        **MEMORIES,
    ),
    "a register behind the ifmap": Vsq(
        lanes=4, vector=4, hold_cycles=4, ifmap_registers=1, **MEMORIES
    ),
    "for an FPGA": Vsq(lanes=4, vector=4, hold_cycles=4, **MEMORIES).for_fpga(),
    "W8/A8/-/-": Vsq(
        lanes=3,
        vector=5,
        hold_cycles=1,
        weight_bits=8,
        activation_bits=8,
        weight_scale_bits=0,
        activation_scale_bits=0,
        bias_words=64,
        **MEMORIES,
    ),
    "unsigned, two vectors a row": Vsq(
        lanes=4, vector=2, hold_cycles=7, activation_signed=False, overflow="wrap", **MEMORIES
    ),
}
TENSOR = {
    "int8": TensorCore(
        octets=1, group_columns=2, rows=4, operand="int8", accumulator="int32", **MEMORIES
    ),
    "fp16 in fp32": TensorCore(octets=1, group_columns=2, rows=4, **MEMORIES),
    "fp16 in fp16": TensorCore(octets=1, group_columns=1, rows=6, accumulator="fp16", **MEMORIES),
    "bf16, five products": TensorCore(
        octets=1, group_columns=1, length=5, rows=2, operand="bf16", bias_words=100, **MEMORIES
    ),
    "int8, for an FPGA": TensorCore(
        octets=1, group_columns=2, rows=4, operand="int8", accumulator="int32", **MEMORIES
    ).for_fpga(),
    "int8, a register behind the ifmap": TensorCore(
        octets=1,
        group_columns=2,
        rows=4,
        operand="int8",
        accumulator="int32",
        ifmap_registers=1,
        **MEMORIES,
    ),
    "int4, one product": TensorCore(
        octets=3,
        group_columns=1,
        length=1,
        rows=10,
        operand="int4",
        accumulator="int32",
        **MEMORIES,
    ),
}
CORES: dict[str, CoreDesign] = {**VSQ, **TENSOR}


@cache
def netlist_of(name: str, folder: Path) -> Netlist:
    return Netlist(CORES[name], folder, USED)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for each design, the same one for all tests."""
    return cache(lambda name: tmp_path_factory.mktemp("netlist"))


def check_is_netlist(components: Components, netlist: Netlist) -> None:
    """All flip-flops of the array, exactly, and of what adds floats; all of the core; every macro
    with its shape."""
    assert registers(components, "array.") == netlist.units["array"]
    check_packer(components, netlist)
    if "float_accumulators" in netlist.modules:
        adders = netlist.placed("float_accumulators", "adder_", "sums_delay")
        assert registers(components, "accumulator.adder") == adders
        outputs = netlist.placed("float_output_stage", "requantize_")
        assert registers(components, "output_stage.narrow") == outputs
    control = next(one for one in components if one.kind == "control")
    counted = registers(components) + control.attributes["state_bits"]
    assert counted == pytest.approx(netlist.flip_flops, rel=0.003)
    macros: Counter[tuple[int, int]] = Counter()
    for one in components:
        if one.kind == "sram":
            macros[one.attributes["word_bits"], one.attributes["depth"]] += one.count
    emitted: Counter[tuple[int, int]] = Counter()
    for (bits, depth), count in netlist.macros.items():
        emitted[bits, max(depth, 2)] += count
    assert macros == emitted


@pytest.mark.parametrize("name", CORES)
def test_components_of_a_core_are_its_netlist(name: str, folders: Callable[[str], Path]) -> None:
    check_is_netlist(CORES[name].components, netlist_of(name, folders(name)))


def without(components: Components, name: str, kind: str) -> Components:
    """The first component of that name and kind left out."""
    at = next(at for at, one in enumerate(components) if (one.name, one.kind) == (name, kind))
    return (*components[:at], *components[at + 1 :])


def narrower(components: Components, name: str, kind: str) -> Components:
    """A bit less in the first component of that name and kind."""

    def cut(one: Component) -> Component:
        first = next(i for i, size in enumerate(one.attributes) if size in ("bits", "word_bits"))
        key = list(one.attributes)[first]
        return replace(one, attributes={**one.attributes, key: one.attributes[key] - 1})

    at = next(at for at, one in enumerate(components) if (one.name, one.kind) == (name, kind))
    return (*components[:at], cut(components[at]), *components[at + 1 :])


Fault = Callable[[Components, str, str], Components]
FAULTS: list[tuple[str, Fault, str, str]] = [
    ("W4/A4/4/6", without, "array.token", "register"),
    ("W4/A4/4/6", narrower, "array.multiply", "register"),
    ("W4/A4/4/6", narrower, "array.tree", "register"),
    ("W4/A4/4/6", without, "array.collector.words", "sram"),
    ("W4/A4/4/6", without, "output_stage.requantize", "register"),
    ("W4/A4/4/6", narrower, "weight.memory", "sram"),
    ("rounded, gated", narrower, "array.hold", "register"),
    ("fp16 in fp32", narrower, "array.dot", "register"),
    ("fp16 in fp32", without, "array.column_fragments", "register"),
    ("fp16 in fp32", without, "array.control", "register"),
    ("fp16 in fp32", narrower, "array.partial_sums.words", "sram"),
    ("fp16 in fp32", without, "accumulator.adder", "register"),
    ("fp16 in fp32", narrower, "accumulator.adder", "register"),
    ("fp16 in fp32", without, "output_stage.narrow", "register"),
    ("fp16 in fp32", narrower, "output_stage.narrow", "register"),
    ("int8", without, "control.token", "register"),
    ("int8", narrower, "output_stage.packer", "register"),
    ("W4/A4/4/6", without, "output_stage.packer", "register"),
    ("int8", narrower, "accumulator.memory", "sram"),
]


@pytest.mark.parametrize("name", [name for name, one in TENSOR.items() if one.floating])
def test_multipliers_of_floats_are_those_of_the_units(
    name: str, folders: Callable[[str], Path]
) -> None:
    """One a product in the array; none where sums are added up, or leave.  The tile walker
    multiplies too: it is control."""
    modules, design = netlist_of(name, folders(name)).modules, TENSOR[name]

    def multiplications(module: str) -> int:
        kinds = [cell["type"] for cell in modules[module]["cells"].values()]
        below = [kind for kind in kinds if kind in modules and "sram" not in kind]
        return kinds.count("$mul") + sum(map(multiplications, below))

    of_units = {
        name: multiplications(cell["type"])
        for name, cell in modules["top"]["cells"].items()
        if cell["type"] in modules
    }
    multipliers = [one for one in design.components if one.kind == "multiplier"]
    assert {one.name for one in multipliers} == {"array.dot"}
    products = design.length * design.columns
    assert of_units["array"] == sum(one.count for one in multipliers) == products
    assert {name for name, found in of_units.items() if found} == {"array", "tile_walker"}


@pytest.mark.parametrize(("design", "fault", "name", "kind"), FAULTS)
def test_wrong_components_are_not_the_netlist(
    design: str, fault: Fault, name: str, kind: str, folders: Callable[[str], Path]
) -> None:
    netlist = netlist_of(design, folders(design))
    with pytest.raises(AssertionError):
        check_is_netlist(fault(CORES[design].components, name, kind), netlist)


@pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)
@pytest.mark.parametrize("name", ["W4/A4/4/6", "int8", "fp16 in fp16"])
def test_area_of_an_array_is_that_of_its_netlist(name: str, tmp_path: Path) -> None:
    """Within 10 %: blocks that were synthesised alone lack the gates of resets, and blocks between
    two measured sizes are up to 12 % off.  Of six such arrays the worst was 6.3 %."""
    design, library = CORES[name], read_library(DEFAULT_LIBRARY)
    top = {"vsq": "vector_array", "tensorcore": "tensor_array"}[design.kind]
    mapped = map_to_cells(emit(design).verilog, library, tmp_path, top=top, split=False)
    modules = mapped.whole["modules"]

    def area(module: str) -> float:
        kinds = [cell["type"] for cell in modules[module]["cells"].values()]
        own = sum(library.cells[kind].area for kind in kinds if kind in library.cells)
        return own + sum(area(kind) for kind in kinds if kind in modules and kind != "sram")

    technology = load_technology("180nm")
    model = 0.0
    for one in design.components:
        if one.name.startswith("array.") and one.kind != "sram":
            found = technology.area_um2(one)
            assert found is not None
            model += one.count * found.value
    assert model == pytest.approx(area(top), rel=0.1)


def waiting_flip_flops(netlist: Netlist) -> int:
    """Of what `waiting_bits` counts, in a core of four lanes."""
    top = netlist.modules["top"]
    banks, reader = (
        netlist.modules[top["cells"][name]["type"]] for name in ("ifmap_banks", "weight_reader")
    )
    delays = sum(
        bits
        for name, bits in netlist.units.items()
        if name.startswith(("ifmap_", "weight_")) and name.endswith("_delay")
    )
    late = netlist.below[banks["cells"]["late"]["type"]] - 8
    valid = len(reader["netnames"]["valid"]["bits"]) - 2
    return delays + late + valid + ("ifmap_reads" in top["netnames"])


@pytest.mark.parametrize(
    ("ifmap", "weight"), [(0, None), (None, 0), (0, 0), (1, 1), (0, 1)]
)  # place registers
def test_components_of_compressed_memories_are_the_netlist(
    ifmap: int | None, weight: int | None, tmp_path: Path
) -> None:
    """Rows in two banks, directories, and the flip-flops that pack, place and unpack."""
    design = replace(EDGE_16, rows=4, columns=5)
    if ifmap is not None:
        memory = Boveda(capacity_bytes=32768, group=2, place_registers=ifmap)
        design = replace(design, ifmap_memory=memory)
    if weight is not None:
        memory = Boveda(capacity_bytes=32768, group=5, unit_words=8, place_registers=weight)
        design = replace(design, weight_memory=memory)
    netlist = Netlist(design, tmp_path)
    control = next(one for one in design.components if one.kind == "control")
    counted = registers(design.components) + control.attributes["state_bits"]
    assert counted == pytest.approx(netlist.flip_flops, rel=0.003)
    macros: Counter[tuple[int, int]] = Counter()
    for one in design.components:
        if one.kind == "sram":
            macros[one.attributes["word_bits"], one.attributes["depth"]] += one.count
    assert macros == netlist.macros
    assert waiting_bits(design, design.ifmap_lanes) == waiting_flip_flops(netlist)
