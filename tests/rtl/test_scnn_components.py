"""The components by which a sparse core is priced are the hardware that is emitted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from netlists import USED, Components, Netlist, registers

from archsim.blocks import WORDS
from archsim.machines.scnn.design import Scnn
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memories.protected.bank import ParityBank, SecdedBank
from energy_models.component import Component
from energy_models.technology import load_technology
from rtl.emit import emit
from rtl.synthesis.liberty import DEFAULT_LIBRARY, read_library
from rtl.synthesis.yosys import map_to_cells

SMALL = Scnn(
    grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=8, bank_entries=16,
    weight_fifo_vectors=20, iaram_bytes=400, oaram_bytes=400, operand_bits=8,
    accumulator_bits=20, bank_queue=2,
)  # fmt: skip
WITHOUT_REGISTERS = {
    "small": SMALL,
    "odd sizes": Scnn(
        grid_rows=1, grid_columns=2, weight_lanes=2, ifmap_lanes=3, banks=8, bank_entries=5,
        weight_fifo_vectors=7, iaram_bytes=100, oaram_bytes=64, accumulator_bits=20,
        operand_bits=8, index_bits=3, bank_queue=3, filter_group=3,
    ),
    "no queue, one lane": replace(
        SMALL, weight_lanes=1, ifmap_lanes=1, bank_queue=1, banks=2, weight_fifo_vectors=1,
        index_bits=1, accumulator_bits=12,
    ),
    "macros": replace(
        SMALL, grid_rows=2, weight_lanes=4, ifmap_lanes=1, bank_entries=256, bank_queue=5,
        weight_fifo_vectors=150, iaram_bytes=2000, oaram_bytes=3000, operand_bits=16,
    ),
    "a sum a bank": replace(SMALL, bank_entries=1),
    "a sum a bank, no queue": replace(SMALL, bank_entries=1, bank_queue=1),
    "a bank": replace(SMALL, banks=1, bank_queue=4, filter_group=1, operand_bits=16),
    "compressed": replace(SMALL, activation_memory=BovedaStream(group=2)),
    "compressed, odd sizes": replace(
        SMALL, grid_columns=2, ifmap_lanes=3, index_bits=3, iaram_bytes=100, oaram_bytes=64,
        activation_memory=BovedaStream(group=1, expansion=3),
    ),
    "compressed, macros": replace(
        SMALL, ifmap_lanes=4, operand_bits=16, iaram_bytes=4000, oaram_bytes=6000,
        activation_memory=BovedaStream(group=4, expansion=1),
    ),
    "check bits": replace(
        SMALL, grid_columns=2, index_bits=3, weight_memory=SecdedBank(data_bits=22)
    ),
    "check bits, macros": replace(
        SMALL, weight_lanes=4, weight_fifo_vectors=150, weight_memory=ParityBank(data_bits=12)
    ),
}  # fmt: skip
PIPELINED = {
    f"registers, {name}": replace(WITHOUT_REGISTERS[name], pipelined_pes=True)
    for name in (
        "small",
        "odd sizes",
        "no queue, one lane",
        "macros",
        "a sum a bank, no queue",
        "a bank",
        "compressed, odd sizes",
        "check bits",
    )
}
DESIGNS = WITHOUT_REGISTERS | PIPELINED
AT_LENGTH = {
    "a sum a bank",
    "a bank",
    "compressed",
    "check bits",
    "registers, small",
    "registers, no queue, one lane",
    "registers, macros",
    "registers, a sum a bank, no queue",
    "registers, a bank",
}
"""What others have too, each in another design."""

UNITS = {
    "accumulator_banks": ("multipliers", "queues", "accumulator"),
    "requantize": ("output_stage.requantize",),
    "halo_port": ("halo",),
    "window_maximum": ("maximum",),
    "pipelined_requantize": ("output_stage.requantize",),
    "pipelined_halo_port": ("halo",),
}
"""A module of a PE, and the components that are its flip-flops, all of them, where it is there."""


@cache
def netlist_of(name: str, folder: Path) -> Netlist:
    return Netlist(DESIGNS[name], folder, USED)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for each design, the same one for all tests."""
    return cache(lambda name: tmp_path_factory.mktemp("netlist"))


def check_is_netlist(design: Scnn, components: Components, netlist: Netlist) -> None:
    """Every flip-flop, of the core and of the units that have no control; every memory's shape."""
    for module, names in UNITS.items():
        if module not in netlist.below:
            continue
        found = sum(registers(components, name) for name in names)
        assert found == design.pes * netlist.below[module]
    control = next(one for one in components if one.kind == "control")
    assert registers(components) + control.attributes["state_bits"] == netlist.flip_flops
    macros: Counter[tuple[int, int]] = Counter()
    for one in components:
        if one.kind == "sram":
            macros[one.attributes["word_bits"], one.attributes["depth"]] += one.count
    emitted: Counter[tuple[int, int]] = Counter()
    for (bits, depth), count in netlist.macros.items():
        emitted[bits, max(depth, 2)] += count
    assert macros == emitted


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in AT_LENGTH else ()) for name in DESIGNS],
)
def test_components_are_the_netlist(name: str, folders: Callable[[str], Path]) -> None:
    design = DESIGNS[name]
    check_is_netlist(design, design.components, netlist_of(name, folders(name)))


def without(components: Components, name: str, kind: str) -> Components:
    """The first component of that name and kind left out."""
    at = next(at for at, one in enumerate(components) if (one.name, one.kind) == (name, kind))
    return (*components[:at], *components[at + 1 :])


def narrower(components: Components, name: str, kind: str) -> Components:
    """A bit less in the first component of that name and kind."""

    def cut(one: Component) -> Component:
        key = next(size for size in one.attributes if size.endswith("bits"))
        return replace(one, attributes={**one.attributes, key: one.attributes[key] - 1})

    at = next(at for at, one in enumerate(components) if (one.name, one.kind) == (name, kind))
    return (*components[:at], cut(components[at]), *components[at + 1 :])


FAULTS = [
    (without, "multipliers", "register"),
    (narrower, "queues", "register"),
    (without, "accumulator", "register"),
    (narrower, "operand_stage", "register"),
    (without, "activations", "register"),
    (without, "weight_decoder", "register"),
    (narrower, "halo", "register"),
    (narrower, "maximum", "register"),
    (without, "output_stage.requantize", "register"),
    (narrower, "compress", "register"),
    (without, "bias", "register"),
    (narrower, "control", "control"),
    (narrower, "accumulator" + WORDS, "sram"),
    (without, "weight_fifo.ends" + WORDS, "sram"),
    (narrower, "weight_fifo" + WORDS, "sram"),
    (without, "oaram" + WORDS, "sram"),
]


COMPRESSED = "compressed, macros"
COMPRESSED_FAULTS = [
    (without, "unpack", "register"),
    (narrower, "pack", "register"),
    (narrower, "control", "control"),
    (narrower, "iaram.marks" + WORDS, "sram"),
    (without, "oaram.widths" + WORDS, "sram"),
    (without, "iaram" + WORDS, "sram"),
    (narrower, "oaram.marks" + WORDS, "sram"),
]


def _plain(name: str) -> str:
    """The design without compressed memories that has a component."""
    return "macros" if name.startswith(("weight_fifo", "oaram")) else "small"


@pytest.mark.parametrize(
    ("which", "fault", "name", "kind"),
    [
        *((_plain(name), fault, name, kind) for fault, name, kind in FAULTS),
        *((COMPRESSED, *fault) for fault in COMPRESSED_FAULTS),
    ],
)
def test_wrong_components_are_not_the_netlist(
    which: str,
    fault: Callable[[Components, str, str], Components],
    name: str,
    kind: str,
    folders: Callable[[str], Path],
) -> None:
    design, netlist = DESIGNS[which], netlist_of(which, folders(which))
    wrong = fault(design.components, name, kind)
    with pytest.raises(AssertionError):
        check_is_netlist(design, wrong, netlist)


@pytest.mark.parametrize(
    "change", [{"bank_hash": "dnnsim"}, {"barrier": "channel"}, {"sparsity": "weights"}]
)
def test_variants_of_the_model_have_the_same_hardware(change: dict[str, str]) -> None:
    varied = Scnn(**{"bank_queue": 2, **change})  # pyright: ignore[reportArgumentType]
    assert varied.components == Scnn(bank_queue=2).components


@pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)
def test_area_of_the_banks_is_that_of_their_netlist(tmp_path: Path) -> None:
    """Multipliers, crossbar, queues and banks, the most of a PE.  Of whole cores:
    `benchmarks/design_fit.md`."""
    library, top = read_library(DEFAULT_LIBRARY), "accumulator_banks"
    mapped = map_to_cells(emit(SMALL).verilog, library, tmp_path, top=top, split=False)
    modules = mapped.whole["modules"]

    def area(module: str) -> float:
        kinds = [cell["type"] for cell in modules[module]["cells"].values()]
        own = sum(library.cells[kind].area for kind in kinds if kind in library.cells)
        return own + sum(area(kind) for kind in kinds if kind in modules and kind != "sram")

    technology, model = load_technology("180nm"), 0.0
    for one in SMALL.components:
        if one.name in UNITS[top] + ("crossbar",):
            found = technology.area_um2(one)
            assert found is not None
            model += one.count * found.value
    assert model == pytest.approx(area(top), rel=0.1)
