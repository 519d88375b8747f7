"""A bitstream for a board: the core behind its byte link, mapped, placed, routed, packed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from archsim.errors import require
from archsim.files import scratch_folder
from archsim.machine.design import Design
from fpga import gowin
from fpga.board_top import CORE, BoardTop
from fpga.boards import Board
from fpga.cells import Cells, cells_of, without_pins
from fpga.fit import check_cells, check_design
from fpga.nextpnr import (
    Placement,
    SlowestPath,
    nextpnr_version,
    pack_bitstream,
    require_packer,
    run_nextpnr,
    slowest_clock,
)
from fpga.own_cells import (
    CELLS_FILE,
    own_verilog,
    paired,
    read_passes,
)
from fpga.places import PLACES, module_of, write_places
from fpga.tools import code_digest, tool_versions
from rtl.benches.build_cache import cache_key, is_built
from rtl.child_process import end_children
from rtl.emit import emit
from rtl.synthesis.cache import kept
from rtl.toolchain import require as require_tools
from rtl.toolchain import run_yosys
from workloads.threads import in_threads

__all__ = ["BITSTREAM", "BoardBuild", "build", "map_for_board", "was_built"]

BITSTREAM = {"ecp5": "core.bit", "ice40": "core.bin", "gowin": "core.fs"}
LEAST_BIT_CYCLES = 4


@dataclass(frozen=True, kw_only=True)
class BoardBuild:
    """What was built.

    cells: of the whole chip, and by module of the emitted core (`by_module`). fmax_hz: by seed, of
    the slowest path; seed: whose bitstream it is, the fastest's. clock_hz: that the core runs at;
    bit_cycles: of it a bit on the wire. sha256: of the bitstream.
    """

    board: str
    clock_hz: float
    baud: int
    bit_cycles: int
    cells: Cells
    by_module: dict[str, dict[str, int]]
    places: int
    places_on_chip: int
    fmax_hz: dict[str, float]
    seed: int
    path: SlowestPath
    sha256: str
    tools: dict[str, str]

    @property
    def meets_clock(self) -> bool:
        """Whether the core is fast enough for the board's clock."""
        return self.fmax_hz[str(self.seed)] >= self.clock_hz

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "meets_clock": self.meets_clock}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> BoardBuild:
        """The inverse of `record`."""
        plain = {name: value for name, value in record.items() if name != "meets_clock"}
        path = SlowestPath(**plain.pop("path"))
        return cls(**{**plain, "cells": Cells(**plain["cells"])}, path=path)


def build(  # noqa: PLR0913
    design: Design,
    board: Board,
    *,
    folder: Path,
    seeds: Sequence[int] = (1,),
    divisor: int | None = None,
    baud: int = 115_200,
    progress: Callable[[str], object] = lambda phase: None,
) -> BoardBuild:
    """Leave bitstream, logs and the emitted Verilog in `folder`, which exists and is empty.

    Each step's answer is kept under all that it depends on, and found again: a build that was
    interrupted goes on behind the last step that was done.
    Raises `InputError` for a design that does not fit the chip, or that no clock of the board and
    baud rate suit; `ToolchainError` for a tool that is missing or fails.
    """
    require(len(seeds) > 0, "seeds must not be empty")
    work = _work(design, board, divisor, baud, progress)
    mapped = work.mapped()
    netlist = _netlist(mapped)
    cells = cells_of(without_pins(netlist))
    check_cells(cells, board.chip)
    routed = work.all_routed(mapped, seeds)
    reports = {seed: _placement(place, board) for seed, place in routed.items()}
    best = max(seeds, key=lambda seed: reports[seed].fmax_hz)
    found, place = reports[best], routed[best]
    name = BITSTREAM[board.chip.family]
    for file in (name, "nextpnr.log", "nextpnr.json", PLACES):
        shutil.copy(place / file, folder / file)
    shutil.copy(mapped / "yosys.log", folder / "yosys.log")
    (folder / f"{CORE}.v").write_text(work.top.verilog, encoding="utf-8")
    (folder / f"{CORE}.json").write_text(work.manifest + "\n", encoding="utf-8")
    return BoardBuild(
        board=board.name,
        clock_hz=work.top.clock_hz,
        baud=baud,
        bit_cycles=work.top.bit_cycles,
        cells=cells,
        by_module=_by_module(netlist),
        places=found.places,
        places_on_chip=found.places_on_chip,
        fmax_hz={str(seed): reports[seed].fmax_hz for seed in seeds},
        seed=best,
        path=found.path,
        sha256=hashlib.sha256((folder / name).read_bytes()).hexdigest(),
        tools=work.tools,
    )


def was_built(design: Design, board: Board) -> bool:
    """Whether `build` with its defaults finds every step done, and takes seconds.

    Raises as `build`.
    """
    work = _work(design, board, None, 115_200, lambda phase: None)
    return all(
        is_built("synthesis", cache_key(*work._key(*step)))
        for step in (("mapped",), ("routed", "1"))
    )


def map_for_board(
    design: Design, board: Board, *, progress: Callable[[str], object] = lambda phase: None
) -> dict[str, Any]:
    """The netlist that `build` places, of cells that are counted; it is found again there.

    Of a design that does not fit too.  Raises as `build`.
    """
    work = _work(design, board, None, 115_200, progress)
    return without_pins(_netlist(work.mapped()))


def _work(
    design: Design,
    board: Board,
    divisor: int | None,
    baud: int,
    progress: Callable[[str], object],
) -> _Work:
    """Raises `InputError` and `ToolchainError` as `build`."""
    divisor = board.divisor if divisor is None else divisor
    require(
        divisor >= 1 and divisor & (divisor - 1) == 0,
        f"divisor must be a power of two, not {divisor}",
    )
    clock_hz = board.clock_hz / divisor
    require(
        0 < baud <= clock_hz / LEAST_BIT_CYCLES,
        f"baud must be at most {clock_hz / LEAST_BIT_CYCLES:,.0f} at {clock_hz / 1e6:g} MHz, "
        f"not {baud}",
    )
    require_tools("pyosys")
    nextpnr_version(board.chip.family)
    require_packer(board.chip.family)
    check_design(design, board.chip)
    progress("emitting")
    emitted = emit(design, top=CORE, interface="link")
    top = BoardTop(emitted.verilog, clock_hz=board.clock_hz, divisor=divisor, baud=baud)
    return _Work(board=board, top=top, manifest=emitted.manifest_json(), progress=progress)


def _netlist(mapped: Path) -> dict[str, Any]:
    return json.loads((mapped / "top.json").read_text(encoding="utf-8"))["modules"]["top"]


@dataclass(frozen=True, kw_only=True)
class _Work:
    board: Board
    top: BoardTop
    manifest: str
    progress: Callable[[str], object]

    @property
    def tools(self) -> dict[str, str]:
        return tool_versions(self.board.chip.family)

    @cached_property
    def plan(self) -> Any:
        """Amaranth's: all that is mapped and how, as files; without the places in our sources,
        so that a build is found again from another folder."""
        return self.board.open().prepare(self.top, "top", emit_src=False, **_options(self.board))

    def _key(self, *parts: str) -> tuple[str, ...]:
        said = self.plan.digest().hex(), json.dumps(self.tools), code_digest()
        return ("board", *said, *parts)

    def mapped(self) -> Path:
        """The folder with top.json, the plan's constraints and commands, and yosys.log."""

        def write(folder: Path) -> None:
            self.progress("mapping")
            with scratch_folder("archsim-board") as work:
                self.plan.extract(str(work))
                (work / CELLS_FILE).write_text(own_verilog(self.board.chip.family))
                with (work / "yosys.log").open("w", encoding="utf-8") as log:
                    run_yosys(self._passes(work), work, lambda line: log.write(line + "\n"))
                if (work / gowin.NETLIST).exists():
                    (work / gowin.NETLIST).rename(work / "top.json")
                if self.board.chip.family == "ice40":
                    netlist = json.loads((work / "top.json").read_text(encoding="utf-8"))
                    paired(netlist)
                    (work / "top.json").write_text(json.dumps(netlist), encoding="utf-8")
                for file in ("top.json", "yosys.log", "build_top.json", *_constraints(work)):
                    shutil.copy(work / file, folder / file)

        return kept(self._key("mapped"), write)

    def _passes(self, work: Path) -> list[str]:
        """Of the plan's script, with the family's own cells."""
        lines = (work / "top.ys").read_text(encoding="utf-8").splitlines()
        passes = [one.strip() for one in lines if one.strip() and one[0] != "#"]
        at = next(n for n, one in enumerate(passes) if one.startswith("synth_"))
        chip = self.board.chip
        verilog = self.top.verilog if chip.dsps > 0 else ""
        before = read_passes([], "top", chip.family, verilog)
        return [*passes[:at], *before, *chip.told, *passes[at:]]

    def all_routed(self, mapped: Path, seeds: Sequence[int]) -> dict[int, Path]:
        """`routed` of each seed, side by side as far as there are processors."""
        said: dict[int, str] = {}

        def run(seed: int) -> Path:
            def tell(phase: str) -> None:
                said[seed] = f"{phase}, seed {seed}"
                self.progress("; ".join(said[one] for one in sorted(said)))

            found = self.routed(mapped, seed, tell)
            tell("done")
            return found

        return dict(zip(seeds, in_threads(run, seeds, stop=end_children), strict=True))

    def routed(self, mapped: Path, seed: int, told: Callable[[str], object]) -> Path:
        """The folder with bitstream, nextpnr's log and report, for one seed of the placer."""

        name = BITSTREAM[self.board.chip.family]

        def write(folder: Path) -> None:
            with scratch_folder("archsim-board") as work:
                for file in mapped.iterdir():
                    shutil.copy(file, work / file.name)
                commands = json.loads((work / "build_top.json").read_text())["commands"]
                place, pack = self._commands(commands[1], commands[2])
                words = [*place, "--seed", str(seed), "--report", "nextpnr.json"]
                words += ["--timing-allow-fail", "--write", "placed.json"]
                run_nextpnr(self.board.chip.family, words, work, told)
                told("packing the bitstream")
                pack_bitstream(self.board.chip.family, pack, work)
                shutil.copy((work / "top").with_suffix(Path(name).suffix), folder / name)
                write_places(work / "placed.json", folder / PLACES)
                for file in ("nextpnr.log", "nextpnr.json"):
                    shutil.copy(work / file, folder / file)

        return kept(self._key("routed", str(seed)), write)

    def _commands(self, place: list[str], pack: list[str]) -> tuple[list[str], list[str]]:
        """Words of nextpnr and of the packer, of the plan's commands."""
        family = self.board.chip.family
        if family == "gowin":
            return gowin.place_words(place, self.top.clock_hz), gowin.pack_words(pack)
        words = [word for word in place[1:] if word not in ("--quiet", "--log", "top.tim")]
        return words + (["--lpf-allow-unconstrained"] if family == "ecp5" else []), pack[1:]


def _options(board: Board) -> dict[str, str]:
    """Of Amaranth's templates: options of yosys as `fpga.place` has them."""
    chip = board.chip
    options = [one for one in chip.synthesis if one not in ("-device", "u", "hx")]
    return {"synth_opts": " ".join([*options, *chip.multiplying(chip.dsps > 0)])}


def _constraints(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if file.suffix in (".lpf", ".pcf", ".cst")]


def _by_module(netlist: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Cells by the module of the hierarchy that they come from, two levels deep."""
    groups: dict[str, dict[str, Any]] = {}
    for name, cell in without_pins(netlist)["cells"].items():
        groups.setdefault(module_of(name, cell), {})[name] = cell
    counted = {name: cells_of({"cells": cells}).record() for name, cells in groups.items()}
    total = Counter({name: sum(cells.values()) for name, cells in counted.items()})
    return {name: counted[name] for name, _ in total.most_common()}


def _placement(place: Path, board: Board) -> Placement:
    record = json.loads((place / "nextpnr.json").read_text(encoding="utf-8"))
    return slowest_clock(record, board.chip.family)
