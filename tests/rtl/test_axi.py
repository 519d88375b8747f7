"""A core behind AXI: its slave proved, its map checked by others, whole layers through it."""

import json
import pickle
import re
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from faulty_module import faulty_module
from unit_proofs import Proof

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from archsim.numbers import IntArray
from rtl.axi import lite_slave
from rtl.axi.documents import as_json, c_header, page, system_rdl
from rtl.axi.register_map import register_map
from rtl.cases import random_case
from rtl.cli.emit import axi_files
from rtl.emit import emit
from rtl.formal import claim, prove_always
from rtl.toolchain import lint, yosys_check

SMALL = [f"{name}_memory.capacity_bytes=1024" for name in ("ifmap", "weight", "accumulator")]
SYSTOLIC = ("edge-16", ["rows=2", "columns=3", "bias_words=16", *SMALL])


def design_of(name: str, settings: list[str]) -> Design:
    return with_settings(load_design(name), settings)


class LiteSlaveProof(Proof):
    """Each channel keeps what it offers; each request is answered once, as it was asked.

    The account counts, modulo 8, what crossed each channel; it never differs by more than 2.
    """

    def __init__(self, unit: Any) -> None:
        inputs = {"awvalid": 1, "wvalid": 1, "bready": 1, "arvalid": 1, "rready": 1}
        wide = {"awaddr": 4, "wdata": 32, "wstrb": 4, "araddr": 4, "value": 32}
        super().__init__(unit, **inputs, **wide, write_error=1, read_error=1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slave = self.unit.LiteSlave(address_bits=4)
        inner = slave.elaborate(platform)
        slave.elaborate = lambda _: inner
        m.submodules.slave = slave
        given = "awvalid wvalid bready arvalid rready awaddr wdata wstrb araddr"
        for name in given.split():
            m.d.comb += getattr(slave, name).eq(getattr(self.free, name))
        m.d.comb += [
            slave.read_data.eq(self.free.value),
            slave.write_error.eq(self.free.write_error),
            slave.read_error.eq(self.free.read_error),
        ]
        self._accounts(m, slave)
        for valid, ready, *kept in (
            ("bvalid", "bready", "bresp"),
            ("rvalid", "rready", "rdata", "rresp"),
        ):
            self._stays(m, slave, valid, ready, kept)
        self._asked(m, slave)
        return m

    def _accounts(self, m: Module, slave: Any) -> None:
        counts: dict[str, Signal] = {}
        for channel in ("aw", "w", "b", "ar", "r"):
            counts[channel] = Signal(3, name=f"count_{channel}")
            crosses = getattr(slave, f"{channel}valid") & getattr(slave, f"{channel}ready")
            m.d.sync += counts[channel].eq(counts[channel] + crosses)
        for name in ("write", "read"):
            counts[name] = Signal(3, name=f"count_{name}")
            m.d.sync += counts[name].eq(counts[name] + getattr(slave, name))
        due = {
            "writes": (counts["write"], counts["b"], slave.bvalid),
            "addresses": (counts["aw"], counts["write"], ~slave.awready),
            "data": (counts["w"], counts["write"], ~slave.wready),
            "reads": (counts["read"], counts["r"], slave.rvalid),
            "asked": (counts["ar"], counts["read"], ~slave.arready),
        }
        for name, (ahead, behind, waits) in due.items():
            m.d.comb += claim(m, name, (ahead - behind)[:3] == waits)
        decoded = Signal(name="decoded")
        m.d.sync += decoded.eq(~slave.awready & ~slave.wready)
        m.d.comb += claim(m, "at_once", slave.write == (decoded & ~slave.bvalid))
        address = Signal.like(slave.write_address, name="address_before")
        m.d.sync += address.eq(slave.write_address)
        steady = address == slave.write_address
        m.d.comb += claim(m, "steady_before_write", ~slave.write | steady)
        m.d.comb += claim(m, "read_at_once", slave.read == (~slave.arready & ~slave.rvalid))

    def _stays(self, m: Module, slave: Any, valid: str, ready: str, kept: list[str]) -> None:
        waited = Signal(name=f"{valid}_waited")
        m.d.sync += waited.eq(getattr(slave, valid) & ~getattr(slave, ready))
        m.d.comb += claim(m, f"{valid}_stays", ~waited | getattr(slave, valid))
        for name in kept:
            before = Signal(len(getattr(slave, name)), name=f"{name}_before")
            m.d.sync += before.eq(getattr(slave, name))
            m.d.comb += claim(m, f"{name}_stays", ~waited | (before == getattr(slave, name)))

    def _asked(self, m: Module, slave: Any) -> None:
        """What is written and read is what was asked for last, and answered so."""
        for valid, ready, name, seen in (
            ("awvalid", "awready", "awaddr", "write_address"),
            ("wvalid", "wready", "wdata", "write_data"),
            ("wvalid", "wready", "wstrb", "write_bytes"),
            ("arvalid", "arready", "araddr", "read_address"),
        ):
            last = Signal(len(getattr(slave, name)), name=f"last_{name}")
            with m.If(getattr(slave, valid) & getattr(slave, ready)):
                m.d.sync += last.eq(getattr(slave, name))
            m.d.comb += claim(m, f"{name}_asked", last == getattr(slave, seen))
        wrote, answered = Signal(), Signal(2, name="answer")
        m.d.sync += [wrote.eq(slave.write), answered.eq(slave.write_error << 1)]
        m.d.comb += claim(m, "bresp", ~wrote | (slave.bvalid & (slave.bresp == answered)))
        was_read, value, error = Signal(), Signal(32), Signal(2, name="error")
        m.d.sync += [was_read.eq(slave.read), value.eq(slave.read_data)]
        m.d.sync += error.eq(slave.read_error << 1)
        right = slave.rvalid & (slave.rresp == error) & (slave.rdata == value)
        m.d.comb += claim(m, "rdata", ~was_read | right)


FAULTS = [
    ("decoded & ~io.bvalid", "decoded"),
    ("decoded & ~io.bvalid", "addressed & given & ~io.bvalid"),
    ("asked & ~io.rvalid", "asked"),
    ("io.awready.eq(~addressed)", "io.awready.eq(1)"),
    ("with m.If(io.bready):", "with m.If(1):"),
    ("addressed & given", "addressed"),
    ("io.rdata.eq(io.read_data)", "io.rdata.eq(0)"),
]


def test_the_slave_is_proved() -> None:
    assert prove_always(LiteSlaveProof(lite_slave), 2).proved


@pytest.mark.parametrize("fault", FAULTS)
def test_the_proof_finds_faults(fault: tuple[str, str], tmp_path: Path) -> None:
    assert not prove_always(LiteSlaveProof(faulty_module(lite_slave, tmp_path, fault)), 2).proved


@pytest.mark.parametrize("name", ["edge-16", "volta", "vsq-16"])
def test_maps(name: str) -> None:
    """No two registers in one place, and the same addresses in every form of the map."""
    registers = register_map(load_design(name))
    addresses = {one.name: one.address for one in registers}
    assert len(set(addresses.values())) == len(registers) == len(addresses)
    assert all(at % 4 == 0 and 0 <= at < 0x1000 for at in addresses.values())
    found = re.findall(r"^#define NPU_(\w+) 0x([0-9A-F]{3})u$", c_header("npu", registers), re.M)
    assert {key: int(value, 16) for key, value in found} == addresses
    listed = json.loads(as_json(registers))["registers"]
    assert {one["name"]: one["address"] for one in listed} == addresses
    rows = re.findall(r"<code>0x(\w+)</code></td><td><code>(\w+)</code>", page("n", registers))
    assert {key: int(value, 16) for value, key in rows} == addresses


def test_system_rdl_by_its_own_compiler(tmp_path: Path) -> None:
    rdl = pytest.importorskip("systemrdl")
    registers = register_map(load_design("edge-16"))
    (tmp_path / "npu.rdl").write_text(system_rdl("npu", registers))
    compiler = rdl.RDLCompiler()
    compiler.compile_file(str(tmp_path / "npu.rdl"))
    found = {one.inst_name: one for one in compiler.elaborate().top.registers()}
    assert set(found) == {one.name for one in registers}
    for one in registers:
        node = found[one.name]
        assert node.absolute_address == one.address
        assert node.has_sw_readable == ("r" in one.access)
        assert node.has_sw_writable == ("w" in one.access)
        reset = sum(field.get_property("reset") << field.lsb for field in node.fields())
        assert reset == one.reset
        if one.fields:
            assert [(f.inst_name, f.lsb, f.width) for f in node.fields()] == list(one.fields)


def test_files_of_the_command(tmp_path: Path) -> None:
    """Clean Verilog with the signals that the manifest names, and hashes of what lies beside it."""
    design = design_of(*SYSTOLIC)
    emitted = emit(design, top="npu", interface="axi")
    files = {
        path.name: text
        for path, text in axi_files(design, emitted, tmp_path / "npu.v", "npu").items()
    }
    manifest = json.loads(files.pop("npu.json"))
    assert set(files) == {f"npu.{end}" for end in ("v", "h", "rdl", "html", "sdc", "f", "core")}
    hashes = {name: sha256(text.encode()).hexdigest() for name, text in files.items()}
    assert manifest["sha256"] == hashes
    assert manifest["registers"] == json.loads(as_json(register_map(design)))["registers"]
    assert lint(files["npu.v"], "npu", ignore=()) == []
    assert yosys_check(files["npu.v"], "npu") == []
    clock = manifest["clock"]["signal"]
    assert f"-name {clock} -period 2.000 [get_ports {clock}]\n" in files["npu.sdc"]  # 500 MHz
    assert re.search(rf"^  input {clock};$", files["npu.v"], re.MULTILINE)
    named = re.findall(r"files: \[(.*)\]", files["npu.core"])
    assert named == ["npu.v", "npu.sdc"]
    for stream in manifest["streams"]:
        assert f" [{stream['tdata_bits'] - 1}:0] {stream['prefix']}_tdata;" in files["npu.v"]


@pytest.mark.parametrize(
    ("interface", "says"),
    [
        ("axy", r"^interface must be streams, axi or link, not 'axy'; did you mean axi\?$"),
        ("bus", r"^interface must be streams, axi or link, not .bus."),
    ],
)
def test_other_interfaces(interface: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        emit(load_design("edge-16"), interface=interface)


def _question(design: Design, seed: int, count: int) -> tuple[dict[str, Any], list[Any]]:
    """What the host is told, and what the model says of each layer."""
    ports = {port.name: port for port in design.machine_model().ports}
    registers = register_map(design)
    cases = (random_case(seed, number, design, longest_words=2_000) for number in range(50))
    single = (case.answer() for case in cases if case.layers_in_row == 1 and case.before is None)
    answers = list(islice(single, count))
    assert all(len(answer.transfers["command"]) == 1 for answer in answers)

    def words(name: str, payload: IntArray) -> bytes:
        return ports[name].pack(payload).tobytes()

    layers: list[dict[str, Any]] = []
    for answer in answers:
        command = words("command", answer.transfers["command"].payload)
        command += bytes(-len(command) % 4)
        layers.append(
            {
                "command": [
                    int.from_bytes(command[at : at + 4], "little")
                    for at in range(0, len(command), 4)
                ],
                "ofmap_words": len(answer.transfers["ofmap"]),
                "words": {
                    name: words(name, answer.transfers[name].payload)
                    for name, port in ports.items()
                    if port.direction == "i" and name != "command"
                },
            }
        )
    asked: dict[str, Any] = {
        "seed": seed,
        "registers": {one.name: one.address for one in registers},
        "readable": [one.name for one in registers if "r" in one.access],
        "counters": [one.name[:-4] for one in registers if one.name.endswith("_LOW")],
        "streams": {
            name: (f"{'s' if port.direction == 'i' else 'm'}_axis_{name}", -(-port.bits // 8))
            for name, port in ports.items()
            if name != "command"
        },
        "layers": layers,
    }
    return asked, answers


KINDS = {
    "systolic": SYSTOLIC,
    "output stationary": ("edge-16", [*SYSTOLIC[1], "dataflow=output_stationary"]),
    "boveda": ("edge-16", [*SYSTOLIC[1], "ifmap_memory.kind=boveda", "ifmap_memory.group=2"]),
    "vsq": ("vsq-16", ["lanes=2", "vector=4", "bias_words=16"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_the_model_through_the_bus(kind: str, tmp_path: Path) -> None:
    """Ofmaps, actions and registers, with pauses on every channel; layer behind layer."""
    pytest.importorskip("cocotbext.axi")
    from axi_host import ANSWER, QUESTION

    from rtl.benches.cocotb_build import build_simulator, run_simulator

    design = design_of(*KINDS[kind])
    asked, answers = _question(design, 3, 4)
    place = build_simulator(emit(design, interface="axi").verilog, "top")
    (tmp_path / "question").write_bytes(pickle.dumps(asked))
    environment = {QUESTION: str(tmp_path / "question"), ANSWER: str(tmp_path / "answer")}
    run_simulator(place, "top", module="axi_host", folder=tmp_path, environment=environment)
    found = pickle.loads((tmp_path / "answer").read_bytes())
    port = next(port for port in design.machine_model().ports if port.name == "ofmap")
    totals: dict[str, int] = {}
    for answer, ofmap, counted in zip(answers, found["ofmaps"], found["counters"], strict=True):
        assert ofmap == port.pack(answer.transfers["ofmap"].payload).tobytes()
        for name, count in answer.actions.items():
            totals[name] = totals.get(name, 0) + int(count)
            register = f"COUNT_{name.upper()}"
            assert counted.get(register, totals[name]) == totals[name], name
        assert 0 < counted["WAIT_OFMAP"] + counted["WAIT_IFMAP"] < counted["CYCLES"]
    assert any(name.startswith("COUNT_") for name in found["counters"][0])
    for one in register_map(design):
        if "r" in one.access and not one.name.startswith(("WAIT", "CYCLES")):
            assert found["reset"][one.name] == one.reset, one.name
