"""Measure the building blocks with a cell library: the figures of a coefficient file.

Every block of `rtl.synthesis.blocks` is mapped to the library's cells by Yosys and simulated, gate
by gate and without delays, on thousands of random operands. Area and leakage are sums over cells;
energy is the toggles of every net times what a toggle costs (`rtl.synthesis.gates`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from archsim.files import scratch_folder
from energy_models.component import KINDS
from energy_models.errors import EnergyError
from energy_models.measured import LOGIC_KINDS, Coefficients, Point
from rtl.synthesis.blocks import BLOCKS, module_name, verilog
from rtl.synthesis.buffers import add_buffers
from rtl.synthesis.cells import roles_of
from rtl.synthesis.control import CORE, LAYER, measure_control
from rtl.synthesis.flat_netlist import FlatNetlist, flatten
from rtl.synthesis.gate_simulation import GateSimulation
from rtl.synthesis.liberty import CellLibrary
from rtl.synthesis.power import Progress
from rtl.synthesis.yosys import FLOW, map_to_cells
from rtl.toolchain import yosys_version

__all__ = ["METHOD", "characterize", "measure"]

EVENTS = 8192
"""Actions that are simulated for each figure."""

BUFFERED = ("one_hot",)
"""Kinds measured with the buffers of their fan-out: every strobe drives a gate a bit, whatever the
core is. Of other blocks it is the core that says what their inputs drive."""

SUM_LENGTH = 32
"""Products of one sum of a multiply-accumulate, which then begins anew."""

METHOD = f"""\
Area and leakage: sums over the cells that Yosys maps the block to, no wires, no clock tree,
leakage as the library's mean over states.
Energy: {EVENTS:,} actions on a zero-delay simulation of the netlist (no glitches):
toggles of every net times half C V squared of the input pins on it (no wires, nothing behind the
block's outputs) plus the cells' internal energy, mean of rise and fall.
Operands are uniform random and new for every action (select and distance too). mac: the sum is
the addend of the next, and begins anew after {SUM_LENGTH} products; no registers.
register: clock is a cycle with held data, write one with new random data, its clock included.
one_hot: one strobe, of any of the ways, is 1 in every action; with buffers of the strobes' fan-out.
control: modules of a {CORE.rows} x {CORE.columns} systolic core with their flip-flops and the
buffers of their fan-out; clock is the mean over the cycles in which the core computes a matrix
product of {LAYER.m} x {LAYER.n} x {LAYER.k} (m n k), netlist and model compared.
"""


def characterize(
    library: CellLibrary,
    *,
    name: str,
    library_source: str,
    node_nm: float | None = None,
    kinds: tuple[str, ...] = LOGIC_KINDS,
    progress: Progress = lambda phase, done, total: None,
) -> Coefficients:
    """Map and measure every block of the kinds; `progress` is told a phase, done, and of how many.

    Raises `EnergyError` for a library without a known node, or whose cells do not suffice;
    `ToolchainError` if Yosys is missing or fails.
    """
    node = node_nm or library.node_nm
    if node is None:
        raise EnergyError(f"the technology node of {library.name} is not known; state its node_nm")
    points = _measured_blocks(library, [kind for kind in kinds if kind in BLOCKS], progress)
    if "control" in kinds:
        points["control"] = measure_control(library.path, progress)
    return Coefficients(
        name=name,
        library=library.name,
        library_source=library_source,
        library_sha256=library.digest,
        tools=f"Yosys {yosys_version()} ({FLOW})",
        method=METHOD,
        node_nm=node,
        voltage_v=library.voltage_v,
        points=points,
    )


def _measured_blocks(
    library: CellLibrary, kinds: Sequence[str], progress: Progress
) -> dict[str, tuple[Point, ...]]:
    """The points of every size of the kinds' blocks."""
    blocks = [(kind, sizes) for kind in kinds for sizes in BLOCKS[kind].sizes]
    with scratch_folder("archsim-characterize") as folder:
        mapped = map_to_cells(
            verilog(blocks),
            library,
            folder,
            split=False,
            progress=lambda done, total: progress("mapping blocks", done, total),
        )
    points: dict[str, tuple[Point, ...]] = {}
    for done, (kind, sizes) in enumerate(blocks):
        progress("simulating blocks", done, len(blocks))
        flat = flat_block(mapped.whole["modules"], library, kind, sizes)
        points[kind] = (*points.get(kind, ()), measure(kind, sizes, flat))
    return points


def flat_block(
    modules: dict[str, Any], library: CellLibrary, kind: str, sizes: tuple[int, ...]
) -> FlatNetlist:
    """A block of a mapped netlist as it is measured: the buffers of `BUFFERED` kinds are added."""
    module, buffer = module_name(kind, sizes), roles_of(library).buffer
    if kind in BUFFERED and buffer is not None:
        add_buffers(modules, library, buffer, module)
    return flatten(modules, library, module)


def measure(kind: str, sizes: tuple[int, ...], flat: FlatNetlist, *, seed: int = 0) -> Point:
    """A mapped block's figures: area, leakage, and energy of every action of its kind."""
    runs: Mapping[str, Callable[[FlatNetlist, np.random.Generator], float]] = {
        "mac": _accumulating,
        "clock": _clocked,
        "write": _writing,
        "choose": _choosing,
    }
    gates = flat.instances[-1].gates
    return Point(
        kind=kind,
        sizes=dict(zip(BLOCKS[kind].shape, sizes, strict=True)),
        cells=len(gates.cells),
        area_um2=gates.area_um2,
        leakage_mw=gates.leakage_mw,
        energy_pj={
            action: runs.get(action, _evaluating)(flat, np.random.default_rng(seed))
            for action in KINDS[kind][1]
        },
    )


class _Inputs:
    """Uniform random bits for every input port but the clock and the reset, event after event."""

    def __init__(self, flat: FlatNetlist, rng: np.random.Generator) -> None:
        directions = flat.instances[-1].gates.directions
        self._bits = {
            name: rng.integers(0, 2, (EVENTS + 1, len(nets)), np.uint8)
            for name, nets in flat.ports.items()
            if directions[name] == "input" and name not in ("clk", "rst")
        }

    def drive(self, simulation: GateSimulation, event: int) -> None:
        """Put those of one event on the ports."""
        for name, bits in self._bits.items():
            simulation.drive_bits(name, bits[event])


def _evaluating(flat: FlatNetlist, rng: np.random.Generator) -> float:
    """Energy of one evaluation of a combinational block, in pJ."""
    inputs, simulation = _Inputs(flat, rng), GateSimulation(flat)
    for event in range(EVENTS + 1):
        inputs.drive(simulation, event)
        simulation.settle()
        _count(simulation, event)
    return _energy(flat, simulation)


def _choosing(flat: FlatNetlist, rng: np.random.Generator) -> float:
    """Energy of a choice of random words by a strobe of any of the ways."""
    inputs, simulation = _Inputs(flat, rng), GateSimulation(flat)
    ways = rng.integers(0, len(flat.ports["strobe"]), EVENTS + 1).tolist()
    for event, way in enumerate(ways):
        inputs.drive(simulation, event)
        simulation.drive("strobe", 1 << way)
        simulation.settle()
        _count(simulation, event)
    return _energy(flat, simulation)


def _accumulating(flat: FlatNetlist, rng: np.random.Generator) -> float:
    """Energy of a multiply-accumulate of random operands; its sum is the next one's addend."""
    inputs, simulation = _Inputs(flat, rng), GateSimulation(flat)
    addend = 0
    for event in range(EVENTS + 1):
        inputs.drive(simulation, event)
        simulation.drive("addend", addend)
        simulation.settle()
        addend = simulation.read("o") if event % SUM_LENGTH else 0
        _count(simulation, event)
    return _energy(flat, simulation)


def _writing(flat: FlatNetlist, rng: np.random.Generator) -> float:
    """Energy of a cycle in which random data are stored, with its clock."""
    inputs, simulation = _Inputs(flat, rng), GateSimulation(flat)
    for event in range(EVENTS + 1):
        simulation.edge()
        inputs.drive(simulation, event)
        simulation.settle()
        _count(simulation, event)
    return _energy(flat, simulation) + _clocked(flat, rng)


def _clocked(flat: FlatNetlist, rng: np.random.Generator) -> float:
    """Energy of a cycle in which the clock alone toggles: twice, at every register."""
    toggles = np.zeros(flat.nets, np.int64)
    toggles[flat.ports["clk"][0]] = 2
    return flat.instances[-1].energy(toggles).total_pj


def _count(simulation: GateSimulation, event: int) -> None:
    """The first event only brings the block into a random state."""
    (simulation.count if event else simulation.skip)()


def _energy(flat: FlatNetlist, simulation: GateSimulation) -> float:
    """Energy of one counted event, without the clock's."""
    return flat.instances[-1].energy(simulation.toggles).total_pj / simulation.cycles
