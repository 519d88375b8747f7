"""Emitted Verilog for Vivado and Quartus: yosys' flows for their chips find DSPs and block RAMs.

The tools themselves are not free to be had; what yosys infers is the plainest of what they do.
"""

import json
from collections import Counter
from math import ceil
from pathlib import Path

import pytest

from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from rtl.emit import emit
from rtl.toolchain import run_yosys

LARGE = "ifmap_memory.capacity_bytes=16384 weight_memory.capacity_bytes=16384"
SUMS = "accumulator_memory.capacity_bytes=16384"
DESIGNS = {
    "edge-16": f"rows=2 columns=2 product_registers=2 {LARGE} {SUMS}",
    "volta": "octets=1 rows=4 operand=int8 accumulator=int32",
    "vsq-16": f"lanes=2 vector=4 {LARGE}",
    "sparsetrain": "pes=1 lanes=4 rows=2 columns=2 depth=1024",
    "scnn": "grid_rows=1 grid_columns=1 weight_lanes=2 ifmap_lanes=2 banks=8",
}
FLOWS = {
    "xilinx": "synth_xilinx -family xc7 -flatten -top top",
    "intel": "synth_intel_alm -family cyclonev -top top",
}
MULTIPLIERS = ("DSP48E1", "MISTRAL_MUL9X9", "MISTRAL_MUL18X18", "MISTRAL_MUL27X27")
BLOCK_BITS = {"RAMB18E1": 18 << 10, "RAMB36E1": 36 << 10, "MISTRAL_M10K": 10 << 10}
LEAST = 8 << 10
"""Bits of a memory that has to be in block RAMs; smaller ones may be in look-up tables."""
LEAST_PRODUCT_BITS = 9
"""Of a product that has to be in a DSP: yosys makes smaller ones of look-up tables."""


def _products(design: Design) -> int:
    """That are large enough."""
    bits = {
        "mac": lambda sizes: 2 * sizes["operand_bits"],
        "multiplier": lambda sizes: sizes["a_bits"] + sizes["b_bits"],
    }
    return sum(
        one.count
        for one in design.components
        if one.kind in bits and bits[one.kind](one.attributes) >= LEAST_PRODUCT_BITS
    )


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("name", DESIGNS)
def test_dsps_and_block_rams_are_found(name: str, flow: str, tmp_path: Path) -> None:
    design = with_settings(load_design(name), DESIGNS[name].split())
    (tmp_path / "unit.v").write_text(emit(design).verilog)
    run_yosys(["read_verilog unit.v", FLOWS[flow], "write_json unit.json"], tmp_path)
    cells = json.loads((tmp_path / "unit.json").read_text())["modules"]["top"]["cells"]
    found = Counter(one["type"] for one in cells.values())
    assert sum(found[kind] for kind in MULTIPLIERS) >= _products(design) > 0
    memories = [
        (one.count, one.attributes["word_bits"] * one.attributes["depth"])
        for one in design.components
        if one.kind == "sram"
    ]
    large = [(count, bits) for count, bits in memories if bits >= LEAST]
    assert large
    blocks = {kind: found[kind] for kind in BLOCK_BITS}
    most = max(BLOCK_BITS[kind] for kind, count in blocks.items() if count)
    assert sum(blocks.values()) >= sum(count * ceil(bits / most) for count, bits in large)
    held = sum(count * bits for count, bits in large)
    assert sum(blocks[kind] * bits for kind, bits in BLOCK_BITS.items()) >= held
