"""What only the compiled bench can do: step in batches, run in threads, write waves."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, ProtocolError, Stimulus, StreamPort
from rtl.benches.cocotb_bench import run_cocotb
from rtl.benches.verilated import Verilated
from rtl.benches.verilated_build import VerilogPort, idle_inputs, streams_and_probes
from rtl.benches.wrapper import wrapper_text

from . import toys
from .cases import CASES, compiled, emitted, random_bench, text_of

LOOP = """module top(input i__payload, input i__valid, output i__ready);
  wire loop; assign loop = ~loop & i__valid; assign i__ready = loop;
endmodule
"""


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_batches_make_the_same_run(batch):
    bench = random_bench("lanes_5x13", seed=5, n=60)
    whole = compiled("lanes_5x13").run(bench)
    with compiled("lanes_5x13").start(bench) as session:
        ran = []
        while session.running:
            assert session.outcome().timed_out
            ran.append(session.step(batch))
        assert session.step(batch) == 0
        assert session.cycle == sum(ran) == whole.cycles
        assert set(ran[:-1]) <= {batch}
        assert whole.differences(session.outcome()) == []


def test_sessions_of_one_core_run_side_by_side():
    benches = [random_bench("pipe_33", seed=seed, n=20_000) for seed in range(6)]
    alone = [compiled("pipe_33").run(bench) for bench in benches]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(compiled("pipe_33").run, benches))
    assert [a.differences(b) for a, b in zip(alone, together, strict=True)] == [[]] * 6


def test_a_closed_session_says_so():
    session = compiled("pipe_8").start(random_bench("pipe_8", seed=0, n=1))
    session.close()
    session.close()
    with pytest.raises(ValueError, match="the Session is closed"):
        session.step()


def test_the_first_broken_output_of_the_bench_is_named():
    text = """module top(input clk, output [7:0] a__payload, output a__valid, input a__ready,
                         output [7:0] b__payload, output b__valid, input b__ready);
      reg [7:0] n = 0; always @(posedge clk) n <= n + 1;
      assign a__payload = n; assign b__payload = n; assign a__valid = 1; assign b__valid = 1;
    endmodule"""
    for names in ("ab", "ba"):
        ports = tuple(StreamPort(name=name, direction="o", bits=8) for name in names)
        stimuli = {name: Stimulus.accept(1, earliest=9) for name in names}
        with pytest.raises(ProtocolError, match=f"output {names[0]} .* cycle 1"):
            Verilated(text).run(Bench(ports=ports, stimuli=stimuli, max_cycles=50))


def test_a_simulator_that_gives_up_is_an_error_and_no_crash():
    core = Verilated(LOOP)
    stimuli = {"i": Stimulus.offer(np.ones((1, 1), np.uint8))}
    bench = Bench(ports=core.ports, stimuli=stimuli, max_cycles=9)
    with pytest.raises(RuntimeError, match=r"the simulation has failed: .*converge"):
        core.run(bench)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".fst", ".vcd"])
def test_a_wave_is_written_and_changes_nothing(suffix, tmp_path):
    bench = random_bench("pipe_8", seed=6, n=30)
    wave = tmp_path / f"wave{suffix}"
    there = compiled("pipe_8").run(bench, trace=wave)
    assert compiled("pipe_8").run(bench).differences(there) == []
    assert wave.stat().st_size > 500


@pytest.mark.slow
def test_cocotb_writes_waves_and_toggles(tmp_path):
    bench = random_bench("pipe_8", seed=6, n=30)
    here = compiled("pipe_8").run(bench)
    fst, saif = tmp_path / "wave.fst", tmp_path / "toggles.saif"
    assert here.differences(run_cocotb(emitted("pipe_8"), "top", bench, waves=fst)) == []
    assert here.differences(run_cocotb(emitted("pipe_8"), "top", bench, saif=saif)) == []
    assert fst.stat().st_size > 500
    assert "SAIFILE" in saif.read_text()
    with pytest.raises(ValueError, match="waves and saif must not both be given"):
        run_cocotb(emitted("pipe_8"), "top", bench, waves=fst, saif=saif)


def test_amaranth_writes_a_wave(tmp_path):
    bench = random_bench("pipe_8", seed=6, n=3)
    wave = tmp_path / "wave.vcd"
    there = run_amaranth(CASES["pipe_8"].make(), bench, vcd=wave)
    assert compiled("pipe_8").run(bench).differences(there) == []
    assert "$enddefinitions" in wave.read_text()


@pytest.mark.parametrize(
    ("name", "error"), [("w.txt", ValueError), ("nowhere/w.fst", FileNotFoundError)]
)
def test_a_wave_that_cannot_be_written_is_refused(name, error, tmp_path):
    bench = random_bench("pipe_8", seed=6, n=3)
    with pytest.raises(error):
        compiled("pipe_8").run(bench, trace=Path(tmp_path, name))
    with pytest.raises(error):
        run_cocotb(emitted("pipe_8"), "top", bench, waves=Path(tmp_path, name))


@pytest.mark.parametrize(
    ("ports", "message"),
    [
        ({"go": True}, "go must be a stream or an output, not a plain input"),
        ({"i__valid": True}, "i must have payload, valid and ready"),
        (
            {"i__valid": True, "i__ready": False, "i__payload": False},
            "i must have valid and payload one way",
        ),
    ],
)
def test_other_verilog_ports_are_refused(ports, message):
    found = {name: VerilogPort(is_input=way, bits=1, member=name) for name, way in ports.items()}
    with pytest.raises(ValueError, match=message):
        streams_and_probes(found)


def test_inputs_of_settings_are_left_at_zero():
    found = {
        "settings_in": VerilogPort(is_input=True, bits=1, member="settings_in"),
        "settings_out": VerilogPort(is_input=False, bits=1, member="settings_out"),
    }
    assert streams_and_probes(found) == ((), (("settings_out", 1),))
    assert idle_inputs(found) == ["settings_in"]
    text = wrapper_text((), (), {name: name for name in found}, idle_inputs(found))
    assert "top.settings_in = 0;" in text and "top.settings_out = 0" not in text


def test_the_first_cycle_is_after_the_reset():
    core = toys.Impatient()
    ports = (StreamPort(name="o", direction="o", bits=8),)
    bench = Bench(ports=ports, stimuli={"o": Stimulus.accept(1)}, max_cycles=9, tail_cycles=0)
    found = Verilated(text_of(core)).run(bench).crossings["o"]
    assert (found.cycles.tolist(), found.words.tolist()) == ([0], [[0]])
