"""The emitted Verilog: clean, readable, the same every time, and described by its manifest."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.errors import InputError
from archsim.machine.registry import design_from_record
from archsim.machines.systolic.design import DATAFLOWS, EDGE_16, Dataflow, Systolic
from archsim.memory import Plain
from archsim.tiled.actions import ACTIONS
from archsim.version import VERSION
from rtl.benches.verilated import Verilated
from rtl.cases import random_case
from rtl.conformance import check
from rtl.emit import Emitted, emit
from rtl.hierarchy import VerilogModule
from rtl.toolchain import lint, yosys_check

_MODULE = re.compile(r"^ *module +(\\\S+|\w+)", re.MULTILINE)
_INSTANCE = re.compile(r"^  (\\\S+|\w+) +(?:#\(.*?\) )?(\\\S+|\w+) \($", re.MULTILINE | re.DOTALL)


def small(dataflow: Dataflow) -> Systolic:
    memory = Plain(capacity_bytes=1024)
    return Systolic(
        rows=3,
        columns=5,
        dataflow=dataflow,
        ifmap_memory=memory,
        weight_memory=memory,
        accumulator_memory=memory,
        bias_words=16,
    )


@pytest.fixture(scope="module", params=DATAFLOWS)
def design(request: pytest.FixtureRequest) -> Systolic:
    return small(request.param)


_emitted: dict[Systolic, Emitted] = {}


@pytest.fixture
def emitted(design: Systolic) -> Emitted:
    if design not in _emitted:
        _emitted[design] = emit(design)
    return _emitted[design]


def body_of(verilog: str, module: str) -> str:
    """The text of one module."""
    start = re.search(rf"^module {module} ?[(#]", verilog, re.MULTILINE)
    assert start is not None
    return verilog[start.start() : verilog.index("endmodule", start.start())]


def test_clean_for_verilator(emitted: Emitted) -> None:
    """Under -Wall; what style warnings remain, the file itself turns off and explains."""
    assert lint(emitted.verilog, ignore=()) == []
    assert "lint_off UNOPT" not in emitted.verilog


def test_clean_for_yosys(emitted: Emitted) -> None:
    assert yosys_check(emitted.verilog) == []


def test_a_named_design_is_clean() -> None:
    verilog = emit(EDGE_16).verilog
    assert lint(verilog, ignore=()) == []
    assert yosys_check(verilog) == []


def test_every_module_once(design: Systolic, emitted: Emitted) -> None:
    names = _MODULE.findall(emitted.verilog)
    assert len(names) == len(set(names))
    moving = design.dataflow == "output_stationary"
    pe = "accumulating_pe" if moving else "stationary_pe"
    assert {"top", "sram", pe} <= set(names)
    assert not {f"{name}_2" for name in ("sram", pe)} & set(names)
    bodies: dict[str, str] = {}
    for name in names:
        body = re.sub(
            r"\b" + re.escape(name) + r"\b", "SELF", body_of(emitted.verilog, re.escape(name))
        )
        assert body not in bodies, f"{name} repeats {bodies[body]}"
        bodies[body] = name


def test_every_module_is_used(design: Systolic, emitted: Emitted) -> None:
    names = set(_MODULE.findall(emitted.verilog))
    used = [kind for kind, _ in _INSTANCE.findall(emitted.verilog)]
    assert names - set(used) == {"top"}
    pe, row = (
        ("accumulating_pe", "accumulating_row")
        if design.dataflow == "output_stationary"
        else ("stationary_pe", "stationary_row")
    )
    assert (used.count(pe), used.count(row)) == (design.columns, design.rows)


def test_names_are_those_of_the_design(emitted: Emitted) -> None:
    top = body_of(emitted.verilog, "top")
    instances = {name for _, name in _INSTANCE.findall(top)}
    assert {"array", "accumulators", "output_stage"} <= instances, instances
    assert "generator" not in emitted.verilog
    assert "auto$" not in emitted.verilog
    assert "src =" not in emitted.verilog


def test_larger_arrays_are_not_longer(emitted: Emitted, design: Systolic) -> None:
    """Twice the rows adds instances and wires, no modules."""
    memory = Plain(capacity_bytes=2048)
    taller = emit(replace(design, rows=6, ifmap_memory=memory))
    names = set(_MODULE.findall(emitted.verilog))
    assert len(set(_MODULE.findall(taller.verilog)) - names) <= 4  # delays of other lengths
    assert taller.verilog.count("\n") < 1.5 * emitted.verilog.count("\n")


def signals_of(verilog: str, top: str) -> dict[str, tuple[str, int]]:
    """Ports of a module as declared: direction and bits."""
    found = re.findall(
        r"^  (input|output) (?:signed )?(?:\[(\d+):0\] )?(\w+);$",
        body_of(verilog, top),
        re.MULTILINE,
    )
    return {name: (direction, int(high or 0) + 1) for direction, high, name in found}


def test_the_manifest_describes_the_file(design: Systolic, emitted: Emitted) -> None:
    manifest = json.loads(emitted.manifest_json())
    assert manifest == emitted.manifest
    assert manifest["archsim"] == VERSION
    assert (manifest["top"], manifest["design_name"]) == ("top", "systolic-3x5")
    assert design_from_record(manifest["design"], "the manifest") == design
    signals = signals_of(emitted.verilog, "top")
    described: dict[str, tuple[str, int]] = {
        manifest["clock"]["signal"]: ("input", 1),
        manifest["reset"]["signal"]: ("input", 1),
    }
    assert [port["name"] for port in manifest["ports"]] == [port.name for port in design.ports]
    other = {"input": "output", "output": "input"}
    for port in manifest["ports"]:
        assert sum(lane["bits"] for lane in port["lanes"]) == port["bits"]
        payload, valid, ready = port["signals"]
        described[payload] = (port["direction"], port["bits"])
        described[valid] = (port["direction"], 1)
        described[ready] = (other[port["direction"]], 1)
    assert [one["action"] for one in manifest["counters"]] == list(ACTIONS)
    for counter in manifest["counters"]:
        described[counter["signal"]] = ("output", signals[counter["signal"]][1])
    assert described == signals


def test_the_lanes_of_the_manifest(design: Systolic, emitted: Emitted) -> None:
    lanes = {port["name"]: port["lanes"] for port in emitted.manifest["ports"]}
    assert lanes["ifmap"] == [{"bits": 8, "signed": True}] * 4
    assert lanes["ofmap"] == [{"bits": 8, "signed": True}] * 5
    assert lanes["bias"] == [{"bits": 32, "signed": True}] * design.bias_lanes
    names = [lane["name"] for lane in lanes["command"]]
    assert len(names) == len(set(names))
    assert {"multiplier", "shift", "relu"} <= set(names)


def test_another_name_for_the_top(design: Systolic, emitted: Emitted) -> None:
    other = emit(design, top="npu_0")
    assert other.manifest["top"] == "npu_0"
    assert signals_of(other.verilog, "npu_0") == signals_of(emitted.verilog, "top")
    assert "module top" not in other.verilog
    assert lint(other.verilog, "npu_0", ignore=()) == []


@pytest.mark.parametrize("top", ["sram", "accumulators", "delay_2"])
def test_a_top_that_names_another_module(top: str) -> None:
    with pytest.raises(InputError, match=f"^top must not be the name of another .*, '{top}'$"):
        emit(small("weight_stationary"), top=top)


@pytest.mark.parametrize("top", ["", "1st", "a-b", "a.b", "module", "logic", "größe", "top\n"])
def test_a_top_that_is_no_name(top: str) -> None:
    with pytest.raises(InputError, match=r"^top must be a Verilog identifier, not "):
        emit(small("weight_stationary"), top=top)


def test_the_same_in_every_process() -> None:
    program = (
        "from archsim.machines.systolic.design import Systolic\n"
        "from rtl.emit import emit; import sys\n"
        "one = emit(Systolic(rows=2, columns=3)); sys.stdout.write(one.verilog)\n"
        "sys.stdout.write(one.manifest_json())"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "20")
    ]
    here = emit(Systolic(rows=2, columns=3))
    assert texts[0] == texts[1] == here.verilog + here.manifest_json()


def test_what_memories_hold_at_first_does_not_matter(design: Systolic, emitted: Emitted) -> None:
    """Every case runs twice on one core, whose memories start with random words, then with others.

    Verilator's own random start (`--x-initial unique`) would need a seed in the bench's C++; here
    the one memory module is filled in Verilog.
    """
    words = "reg [BITS-1:0] words [0:DEPTH-1];"
    assert emitted.verilog.count(words) == 1
    fill = """
  integer at;
  initial begin
    read_data = {((BITS + 31) / 32){$urandom}};
    for (at = 0; at < DEPTH; at = at + 1) words[at] = {((BITS + 31) / 32){$urandom}};
  end
"""
    core = Verilated(emitted.verilog.replace(words, words + fill))
    for number in range(20):
        verdict = check(random_case(5, number, design), core.run)
        assert verdict.equal, verdict.record()
        assert verdict.transfers > 0


@pytest.mark.parametrize("source", ["module m(input clk);", "module m(input clk, input rst);"])
def test_a_reset_that_nothing_drives_is_no_hardware(source: str) -> None:
    signature = wiring.Signature({"i": In(1)})
    wrong = "rst" not in source
    assert VerilogModule(name="m", source=source, signature=signature, resets=not wrong)
    with pytest.raises(ValueError, match=f"resets must be {not wrong}"):
        VerilogModule(name="m", source=source, signature=signature, resets=wrong)
