"""Waves read back: every transfer of the model, and the RTL's wave at the same times."""

import io
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vcd.reader import TokenKind, tokenize

from archsim.cli import main as command_line
from archsim.machines.systolic.design import DATAFLOWS, EDGE_16, Systolic
from archsim.memory import OffChip, Plain
from archsim.ports import Port, PortAnswer, Transfers
from archsim.tiled import trace
from archsim.tiled.timing import plan_tiling, time_layer
from archsim.wave_clock import FIRST_EDGE, WaveClock
from archsim.waves import Waves
from rtl.benches.bench import RESET_CYCLES
from workloads.layers import Conv2d, MatMul
from workloads.operands import synthetic

CHANGES = (
    TokenKind.CHANGE_SCALAR,
    TokenKind.CHANGE_VECTOR,
    TokenKind.CHANGE_STRING,
)


@dataclass
class Wave:
    """A VCD: the changes (time, value) of every variable, by its name with scopes."""

    clock: WaveClock

    timescale: str = ""
    end: int = 0
    changes: dict[str, list[tuple[int, Any]]] = field(default_factory=lambda: defaultdict(list))

    def at(self, name: str, times: Iterable[int]) -> list[Any]:
        """The values of a variable at (just after) some times."""
        moments = [time for time, _ in self.changes[name]]
        found = np.searchsorted(moments, list(times), side="right") - 1
        return [self.changes[name][place][1] for place in found]


def read(data: bytes, design: Systolic, wanted: Callable[[str], bool] = lambda _: True) -> Wave:
    """Read a VCD with pyvcd's reader."""
    wave = Wave(clock=WaveClock(clock_hz=design.clock_hz))
    scopes: list[str] = []
    names: dict[str, list[str]] = defaultdict(list)
    for token in tokenize(io.BytesIO(data)):
        if token.kind is TokenKind.TIMESCALE:
            wave.timescale = str(token.timescale)
        elif token.kind is TokenKind.SCOPE:
            scopes.append(token.scope.ident)
        elif token.kind is TokenKind.UPSCOPE:
            scopes.pop()
        elif token.kind is TokenKind.VAR:
            name = ".".join([*scopes, token.var.reference])
            if wanted(name):
                names[token.var.id_code].append(name)
        elif token.kind is TokenKind.CHANGE_TIME:
            wave.end = token.time_change
        elif token.kind in CHANGES:
            change: Any = token.data
            for name in names[change.id_code]:
                wave.changes[name].append((wave.end, _value(change.value)))
    return wave


def _value(value: Any) -> Any:
    """Numbers where there are no unknown bits."""
    return int(value) if value in ("0", "1") else value


def words(port: Port, payload: np.ndarray) -> list[int]:
    """Payload [n, lanes] as whole words."""
    lows = np.cumsum((0, *port.lane_bits[:-1])).tolist()
    return [
        sum(
            (lane & ((1 << bits) - 1)) << low
            for lane, bits, low in zip(row, port.lane_bits, lows, strict=True)
        )
        for row in payload.tolist()
    ]


def crossings(wave: Wave, port: Port, cycles: int) -> tuple[list[int], list[int]]:
    """The cycles in which `transfer` is 1, and the payloads in them."""
    times = [wave.clock.cycle(cycle) for cycle in range(cycles)]
    strobe = wave.at(f"model.{port.name}__transfer", times)
    found = [cycle for cycle in range(cycles) if strobe[cycle] == 1]
    return found, wave.at(f"model.{port.name}__payload", [times[cycle] for cycle in found])


def written(design: Systolic, answers: Mapping[str, PortAnswer], *, lanes: bool = True) -> Wave:
    """The wave of layers one behind the other, read back."""
    file = io.StringIO()
    with Waves(design, file, lanes=lanes) as waves:
        for name, answer in answers.items():
            waves.add_layer(name, answer.transfers, answer.cycles)
    return read(file.getvalue().encode(), design)


designs = st.builds(
    Systolic,
    rows=st.integers(1, 5),
    columns=st.integers(1, 5),
    dataflow=st.sampled_from(DATAFLOWS),
    operand_bits=st.sampled_from([4, 8, 16]),
    accumulator_bits=st.sampled_from([32, 37]),
    ifmap_memory=st.just(Plain(capacity_bytes=512)),
    weight_memory=st.just(Plain(capacity_bytes=512)),
    clock_hz=st.sampled_from([500e6, 700e6, 1.53e9, 123.456789]),
    off_chip=st.builds(
        OffChip,
        bytes_per_cycle=st.sampled_from([0.0, 2.5]),
        latency_cycles=st.sampled_from([0, 7]),
    ),
)
products = st.builds(
    MatMul,
    name=st.just("product"),
    m=st.integers(1, 12),
    n=st.integers(1, 12),
    k=st.integers(1, 12),
    bias=st.booleans(),
)


@settings(max_examples=40)
@given(designs, products)
def test_a_wave_has_every_transfer_and_no_other(design: Systolic, layer: MatMul) -> None:
    operands = synthetic(layer, bits=design.operand_bits)
    answer = design.machine_model().answer(layer, operands, {})
    assert answer.cycles == time_layer(design, layer).cycles
    wave = written(design, {layer.name: answer})
    assert wave.timescale == wave.clock.timescale
    assert wave.end == wave.clock.cycle(answer.cycles)
    for port in design.ports:
        expected = answer.transfers[port.name]
        cycles, payloads = crossings(wave, port, answer.cycles)
        assert cycles == expected.cycle.tolist()
        assert payloads == words(port, expected.payload)
        changed = wave.changes[f"model.{port.name}__payload"]
        times = {wave.clock.cycle(cycle) for cycle in cycles}
        assert {time for time, _ in changed[1:]} <= times
        _check_lanes(wave, port, expected)


def _check_lanes(wave: Wave, port: Port, expected: Transfers) -> None:
    """Each lane, in two's complement, under its own name."""
    times = [wave.clock.cycle(cycle) for cycle in expected.cycle.tolist()]
    names = port.lane_names or [f"lane_{lane}" for lane in range(port.lanes)]
    for lane, (name, bits) in enumerate(zip(names, port.lane_bits, strict=True)):
        shown = wave.at(f"model.{port.name}.{name}", times)
        assert shown == [value & ((1 << bits) - 1) for value in expected.payload[:, lane].tolist()]


def test_layers_follow_each_other() -> None:
    design = replace(EDGE_16, rows=4, columns=3)
    image = Conv2d(
        name="image", channels=3, filters=5, ifmap_height=6, ifmap_width=5,
        kernel_height=3, kernel_width=3, bias=True,
    )  # fmt: skip
    layers = [image, MatMul(name="a product", m=4, n=7, k=9), replace(image, name="again")]
    answers = {one.name: design.machine_model().answer(one, synthetic(one), {}) for one in layers}
    wave = written(design, answers, lanes=False)
    assert not any(name.startswith("model.ifmap.") for name in wave.changes)
    total = sum(answer.cycles for answer in answers.values())
    assert wave.end == wave.clock.cycle(total)
    for port in design.ports:
        start, cycles, payloads = 0, [], []
        for answer in answers.values():
            moved = answer.transfers[port.name]
            cycles += (moved.cycle + start).tolist()
            payloads += words(port, moved.payload)
            start += answer.cycles
        assert crossings(wave, port, total) == (cycles, payloads)
    starts = np.cumsum([0, *(answer.cycles for answer in answers.values())])[:-1]
    times = [wave.clock.cycle(start) for start in starts.tolist()]
    named = list(zip(times, answers, strict=True))
    assert [(t, v.replace("\\x20", " ")) for t, v in wave.changes["model.layer"] if v] == named
    for time, cycle in wave.changes["model.cycle"][1:]:
        assert time == wave.clock.cycle(cycle)


# Beside the RTL

SMALL = ("--set", "rows=2", "--set", "columns=2")
VERIFY = ("verify", "edge-16", *SMALL)


@dataclass(frozen=True)
class Said:
    """What a call of `archsim` left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def archsim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Said]:
    """Call the command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["archsim", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return call


def test_cycles_are_those_of_the_bench() -> None:
    """Its clock starts low after a period in reset; cycle 0 begins with the last edge in reset."""
    assert FIRST_EDGE == 2 + 1 + 2 * (RESET_CYCLES - 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--waves w --case 1", "--waves is for --simulator cocotb, not verilator"),
        ("--waves w --simulator cocotb", "--waves is of one case; name it with --case"),
        ("--wave-format vcd --case 1", "--wave-format is of --waves; give both"),
        (
            "--waves taken --simulator cocotb --case 1",
            "taken exists; give a name that does not, or say --force",
        ),
    ],
)
def test_waves_refuse(archsim: Callable[..., Said], words: str, message: str) -> None:
    Path("taken").mkdir()
    said = archsim(*VERIFY, *words.split())
    assert (said.code, said.out, said.err) == (2, "", f"archsim: {message}\n")


def _plain_names(data: bytes) -> bytes:
    """Verilator names scopes and variables that begin with $, which pyvcd's reader refuses."""
    return re.sub(rb"(\$scope \w+ |\$var \w+ \d+ \S+ )\$", rb"\1", data)


@pytest.mark.slow
@pytest.mark.parametrize("clock_hz", [500e6, 700e6])
def test_a_word_crosses_at_the_same_time_in_both_waves(
    clock_hz: float, archsim: Callable[..., Said]
) -> None:
    """At every crossing of the model the RTL's wave has valid, ready, and the same payload."""
    design = replace(EDGE_16, rows=2, columns=2, clock_hz=clock_hz)
    words_ = ("--simulator", "cocotb", "--case", 4, "--waves", "w", "--wave-format", "vcd")
    said = archsim(*VERIFY, "--set", f"clock_hz={clock_hz}", *words_, "--json")
    assert (said.code, said.err) == (0, "")
    summary = json.loads(said.out)
    assert summary["waves"] == ["w/rtl.vcd", "w/model.vcd"]
    assert sorted(path.name for path in Path("w").iterdir()) == ["model.vcd", "rtl.vcd"]
    model = read(Path("w/model.vcd").read_bytes(), design)
    data = _plain_names(Path("w/rtl.vcd").read_bytes())
    rtl = read(data, design, lambda name: "rootio." in name)
    assert rtl.timescale == model.timescale == "1 fs"
    compared = 0
    whole = [model.clock.cycle(cycle) for cycle in range(summary["cycles"] + 1)]
    assert model.end in whole
    for port in design.ports:
        strobe = model.changes[f"model.{port.name}__transfer"]
        ends = [time for time, _ in strobe[1:]] + [model.end]
        rtl_name = f"rootio.{port.name}__"
        for (time, value), end in zip(strobe, ends, strict=True):
            cycles = [each for each in whole if time <= each < end]
            valid, ready = (rtl.at(f"{rtl_name}{part}", cycles) for part in ("valid", "ready"))
            assert [v and r for v, r in zip(valid, ready, strict=True)] == [value] * len(cycles)
            if value:
                sent = model.at(f"model.{port.name}__payload", cycles)
                assert sent == rtl.at(f"{rtl_name}payload", cycles)
                compared += len(cycles)
    assert compared == summary["transfers"]


@pytest.mark.slow
def test_waves_as_fst(archsim: Callable[..., Said]) -> None:
    said = archsim(*VERIFY, "--simulator", "cocotb", "--case", 4, "--waves", "w")
    assert said.out.splitlines()[0] == "waves: w/rtl.fst, w/model.vcd"
    assert Path("w/rtl.fst").read_bytes()[:1] == b"\x00"
    assert Path("w/rtl.fst").stat().st_size > 1000


class BrokenOff(io.StringIO):
    """A file whose last write is interrupted, as Ctrl-C does."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write(self, text: str, /) -> int:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return super().write(text)


def test_a_wave_that_is_broken_off_says_why() -> None:
    """The reason comes through, though changes were written behind the last whole layer."""
    product = MatMul(name="fc", m=4, n=4, k=4)
    tiling = plan_tiling(EDGE_16, product, None)
    found = trace.answer(EDGE_16, product, tiling, synthetic(product, bits=8, seed=1))
    whole = BrokenOff(1_000_000)
    with Waves(EDGE_16, whole) as waves:
        waves.add_layer(product.name, found.transfers, found.cycles)
    early = BrokenOff(1_000_000 - whole.left - 10)
    with pytest.raises(KeyboardInterrupt), Waves(EDGE_16, early) as waves:
        waves.add_layer(product.name, found.transfers, found.cycles)
    assert whole.getvalue().startswith(early.getvalue())
    assert early.getvalue().count("\n#") > 5
