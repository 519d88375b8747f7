"""Building blocks: they compute what they say, and the shipped figures are what is measured."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer
from cell_libraries import needs_library
from command_line import Call
from typer.testing import CliRunner

from energy_models.errors import EnergyError
from energy_models.measured import Coefficients, load_coefficients
from rtl.cli.characterize import register
from rtl.synthesis import characterize as flow
from rtl.synthesis.blocks import BLOCKS, Block, verilog
from rtl.synthesis.characterize import characterize, flat_block, measure
from rtl.synthesis.control import MODULES, measure_control
from rtl.synthesis.flat_netlist import FlatNetlist
from rtl.synthesis.gate_simulation import GateSimulation
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library
from rtl.synthesis.yosys import map_to_cells

pytestmark = needs_library

SIZES = {
    "mac": ((4, 16),),
    "multiplier": ((6, 3),),
    "adder": ((8,),),
    "register": ((4,),),
    "mux": ((4, 6),),
    "one_hot": ((32, 3),),
    "shifter": ((12,),),
}
"""Of the shipped grid, and small."""


@cache
def library() -> CellLibrary:
    return read_library()


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FlatNetlist]:
    blocks = [(kind, size) for kind, sizes in SIZES.items() for size in sizes]
    netlist = map_to_cells(verilog(blocks), library(), tmp_path_factory.mktemp("blocks")).whole
    return {kind: flat_block(netlist["modules"], library(), kind, size) for kind, size in blocks}


def signed(value: int, bits: int) -> int:
    return value - (value >> (bits - 1) << bits)


def evaluate(flat: FlatNetlist, output: str, **inputs: int) -> int:
    simulation = GateSimulation(flat)
    for port, value in inputs.items():
        simulation.drive(port, value)
    simulation.settle()
    return simulation.read(output)


def test_blocks_compute_what_they_say(mapped: dict[str, FlatNetlist]) -> None:
    rng = np.random.default_rng(0)

    def draw(bits: int) -> int:
        return int(rng.integers(0, 1 << bits))

    for _ in range(200):
        a, b, addend = draw(4), draw(4), draw(16)
        total = addend + signed(a, 4) * signed(b, 4)
        assert evaluate(mapped["mac"], "o", a=a, b=b, addend=addend) == total % 2**16
        a, b = draw(6), draw(3)
        assert evaluate(mapped["multiplier"], "o", a=a, b=b) == signed(a, 6) * signed(b, 3) % 2**9
        a, b = draw(8), draw(8)
        assert evaluate(mapped["adder"], "o", a=a, b=b) == (a + b) % 2**8
        ways, select = draw(24), draw(3)
        chosen = ways >> 4 * min(select, 5) & 15
        assert evaluate(mapped["mux"], "o", i=ways, select=select) == chosen
        ways, way = draw(48) << 48 | draw(48), draw(2)
        chosen = (ways >> 32 * way & 0xFFFFFFFF) if way < 3 else 0
        strobe = (1 << way) % 8
        assert evaluate(mapped["one_hot"], "o", i=ways, strobe=strobe) == chosen
        word, distance = draw(12), draw(4)
        assert evaluate(mapped["shifter"], "o", i=word, distance=distance) == (
            (word << distance) % 2**12
        )


def test_registers_store(mapped: dict[str, FlatNetlist]) -> None:
    simulation = GateSimulation(mapped["register"])
    for value in (5, 10, 3):
        simulation.drive("i", value)
        simulation.settle()
        simulation.edge()
        simulation.drive("i", 0)
        simulation.settle()
        assert simulation.read("o") == value


def test_energy_of_a_register_by_hand(mapped: dict[str, FlatNetlist]) -> None:
    pins = library().cells["DFFPOSX1"].pins
    inside = {name: pin.energy.mean_pj() for name, pin in pins.items() if pin.energy is not None}
    square = library().voltage_v ** 2
    point = measure("register", (4,), mapped["register"])
    clock = 4 * (pins["CLK"].capacitance_pf * square + 2 * inside["CLK"])
    data = 4 / 2 * (pins["D"].capacitance_pf * square / 2 + inside["D"] + inside["Q"])
    assert point.energy_pj["clock"] == pytest.approx(clock)
    assert point.energy_pj["write"] == pytest.approx(clock + data, rel=0.01)
    assert point.area_um2 == 4 * 96
    assert point.leakage_mw == pytest.approx(4 * 0.160725e-6)


def test_the_shipped_figures_are_what_is_measured(mapped: dict[str, FlatNetlist]) -> None:
    shipped = load_coefficients("osu018")
    assert shipped.library_sha256 == library().digest
    for kind, sizes in SIZES.items():
        known = {point.key: point for point in shipped.points[kind]}
        for size in sizes:
            found = measure(kind, size, mapped[kind])
            assert found.cells == known[size].cells
            assert found.area_um2 == pytest.approx(known[size].area_um2, rel=1e-5)
            assert found.leakage_mw == pytest.approx(known[size].leakage_mw, rel=1e-5)
            for action, energy in found.energy_pj.items():
                assert energy == pytest.approx(known[size].energy_pj[action], rel=1e-5)


def test_strobes_of_wide_words_have_buffers(mapped: dict[str, FlatNetlist]) -> None:
    """Two for each of three strobes, since each drives 32 gates and a gate 16 pins."""
    cells = mapped["one_hot"].instances[-1].gates.cells
    assert sum(placed.cell.name == "BUFX2" for placed in cells) == 3 * 2


def test_one_strobe_at_a_time(
    mapped: dict[str, FlatNetlist], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    plain = GateSimulation.drive
    monkeypatch.setattr(flow, "EVENTS", 40)

    def drive(self: GateSimulation, port: str, value: int) -> None:
        seen.append(value)
        plain(self, port, value)

    monkeypatch.setattr(GateSimulation, "drive", drive)
    measure("one_hot", (32, 3), mapped["one_hot"])
    assert len(seen) == 41 and set(seen) == {1, 2, 4}


def test_other_random_operands_change_little(mapped: dict[str, FlatNetlist]) -> None:
    one, two = (measure("multiplier", (6, 3), mapped["multiplier"], seed=s) for s in (0, 1))
    energies = [point.energy_pj["multiply"] for point in (one, two)]
    assert energies[0] != energies[1]
    assert energies[0] == pytest.approx(energies[1], rel=0.02)


def test_the_grids_cover_the_file() -> None:
    shipped = load_coefficients("osu018")
    for kind, block in BLOCKS.items():
        assert [point.key for point in shipped.points[kind]] == list(block.sizes)
    assert [point.module for point in shipped.points["control"]] == list(MODULES)


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes of adders instead of all blocks."""
    adder = BLOCKS["adder"]
    small = Block(component=adder.component, shape=adder.shape, sizes=((2,), (4,)))
    monkeypatch.setattr(flow, "BLOCKS", {"adder": small})


def test_a_file_from_beginning_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    phases: list[tuple[str, int, int | None]] = []
    found: Coefficients = characterize(
        library(),
        name="mine",
        library_source="a shelf",
        kinds=("adder",),
        progress=lambda *step: phases.append(step),
    )
    assert found.tools.startswith("Yosys 0.")
    assert found.node_nm == 180
    assert ("simulating blocks", 1, 2) in phases
    known = {point.key: point for point in load_coefficients("osu018").points["adder"]}
    assert [p.area_um2 for p in found.points["adder"]] == [
        known[key].area_um2 for key in ((2,), (4,))
    ]


def test_a_library_of_unknown_node(tmp_path: Path) -> None:
    path = tmp_path / "other.lib"
    path.write_text(DEFAULT_LIBRARY.read_text().replace("library(osu018_stdcells)", "library(z)"))
    with pytest.raises(EnergyError) as caught:
        characterize(read_library(path), name="z", library_source="", kinds=("adder",))
    assert str(caught.value) == "the technology node of z is not known; state its node_nm"


def command() -> typer.Typer:
    app = typer.Typer()

    @app.callback()
    def _options() -> None: ...  # pyright: ignore[reportUnusedFunction]

    register(app)
    return app


def test_the_verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small_blocks(monkeypatch)
    monkeypatch.setattr(flow, "measure_control", lambda library, progress: ())
    output = tmp_path / "mine.toml"
    done = CliRunner().invoke(
        command(), ["characterize", "-o", str(output), "--source", "a shelf", "--node-nm", "181"]
    )
    assert done.exit_code == 0, done.output
    loaded = load_coefficients(output)
    assert (loaded.name, loaded.library_source, loaded.node_nm) == ("mine", "a shelf", 181)
    assert [point.key for point in loaded.points["adder"]] == [(2,), (4,)]
    assert done.stderr == f"{output}: 2 blocks measured with osu018_stdcells\n"


def test_the_verb_refuses(archsim: Call, tmp_path: Path) -> None:
    said = archsim("characterize", "-o", tmp_path / "a.toml", "--liberty", tmp_path / "no")
    assert (said.code, said.err) == (2, f"archsim: no Liberty library at {tmp_path}/no\n")


@pytest.mark.slow
def test_control_is_what_is_measured() -> None:
    shipped = load_coefficients("osu018").points["control"]
    for found, known in zip(measure_control(DEFAULT_LIBRARY), shipped, strict=True):
        assert (found.module, found.key, found.cells) == (known.module, known.key, known.cells)
        assert found.area_um2 == pytest.approx(known.area_um2, rel=1e-5)
        assert found.energy_pj["clock"] == pytest.approx(known.energy_pj["clock"], rel=1e-5)
