# amaranth: UnusedElaboratable=no
"""What a bench says of cores that break the rules: the same, in all three simulators."""

import numpy as np
import pytest

from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, ProtocolError, Stimulus
from rtl.benches.boundary import ports_of, probes_of
from rtl.benches.cocotb_bench import run_cocotb
from rtl.benches.verilated import Verilated
from rtl.benches.words import pack_words, unpack_words

from . import toys
from .cases import text_of

RUNNERS = {
    "amaranth": run_amaranth,
    "verilated": lambda core, bench: Verilated(text_of(core)).run(bench),
    "cocotb": lambda core, bench: run_cocotb(text_of(core), "top", bench),
}
RUNNER = pytest.mark.parametrize("runner", RUNNERS)
FAST = pytest.mark.parametrize(
    "runner", ["amaranth", "verilated", pytest.param("cocotb", marks=pytest.mark.slow)]
)


def bench_for(core, stimuli, **more) -> Bench:
    return Bench(
        ports=ports_of(core),
        probes=probes_of(core),
        stimuli=stimuli,
        **{"max_cycles": 1000, "tail_cycles": 10, **more},
    )


@RUNNER
def test_a_payload_that_changes_while_it_waits_is_a_protocol_error(runner):
    core = toys.Impatient()
    bench = bench_for(core, {"o": Stimulus.accept(5, earliest=[0, 1, 2, 7, 8])})
    with pytest.raises(ProtocolError) as caught:
        RUNNERS[runner](core, bench)
    assert (caught.value.port, caught.value.cycle) == ("o", 4)


@RUNNER
def test_a_payload_that_changes_when_it_is_taken_is_none(runner):
    core = toys.Impatient()
    found: Outcome = RUNNERS[runner](core, bench_for(core, {"o": Stimulus.accept(5)}))
    assert found.crossings["o"].cycles.tolist() == list(range(15))
    # Two cycles of reset do not count: the first word is 0.
    assert unpack_words(found.crossings["o"].words) == list(range(15))


@pytest.mark.parametrize("runner", ["amaranth", "verilated"])
def test_a_word_that_is_taken_back_is_a_protocol_error(runner):
    core = toys.Fickle()
    bench = bench_for(core, {"o": Stimulus.accept(2, gaps=[1, 3])})
    with pytest.raises(ProtocolError, match=r"output o .* cycle 4"):
        RUNNERS[runner](core, bench)


@FAST
def test_a_word_too_many_is_seen(runner):
    core = toys.OneTooMany(9)
    words = pack_words([300, 301, 302, 303], 9)
    bench = bench_for(core, {"i": Stimulus.offer(words), "o": Stimulus.accept(4)})
    found = RUNNERS[runner](core, bench)
    assert unpack_words(found.crossings["o"].words) == [300, 301, 302, 303, 303]
    assert found.crossings["o"].cycles.tolist() == [0, 1, 2, 3, 4]
    assert (found.cycles, found.timed_out) == (14, False)


@FAST
def test_words_too_few_time_out(runner):
    core = toys.OneTooMany(9)
    bench = bench_for(
        core, {"i": Stimulus.offer(pack_words([1], 9)), "o": Stimulus.accept(2)}, max_cycles=30
    )
    found = RUNNERS[runner](core, bench)
    assert (found.cycles, found.timed_out) == (30, True)
    assert found.crossings["o"].cycles.tolist() == [0]


@FAST
@pytest.mark.parametrize(("gaps", "peeked"), [([0, 0], 0), ([1, 1], 0x15 ^ 0x2A)])
def test_a_core_that_looks_at_no_word_sees_its_complement(runner, gaps, peeked):
    core = toys.Peeker(7)
    words = pack_words([0x15, 0x2A], 7)
    bench = bench_for(core, {"i": Stimulus.offer(words, gaps=gaps)}, tail_cycles=2)
    found = RUNNERS[runner](core, bench)
    assert found.probes == {"peeked": peeked}


@RUNNER
def test_a_bench_without_words_is_its_tail(runner):
    core = toys.OneTooMany(9)
    bench = bench_for(
        core, {"i": Stimulus.offer(np.zeros((0, 2), np.uint8)), "o": Stimulus.accept(0)}
    )
    found = RUNNERS[runner](core, bench)
    assert (found.cycles, found.timed_out) == (10, False)
    assert found.crossings["o"].words.shape == (0, 2)


@FAST
def test_a_bench_of_other_widths_is_refused(runner):
    bench = bench_for(
        toys.PipeStage(9), {"i": Stimulus.offer(pack_words([1], 9)), "o": Stimulus.accept(1)}
    )
    with pytest.raises(ValueError, match=r"port i: bench has .*9.*, core .*33"):
        RUNNERS[runner](toys.PipeStage(33), bench)
