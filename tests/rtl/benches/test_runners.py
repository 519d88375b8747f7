"""One bench, three simulators, one answer: that of the toys' recurrences."""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtl.benches.amaranth_bench import Elaborated, run_amaranth
from rtl.benches.cocotb_bench import run_cocotb

from . import oracle
from .cases import CASES, benches, compiled, emitted, random_bench

SLOW = [pytest.param("skid_12", marks=pytest.mark.slow)]


@pytest.mark.parametrize("name", CASES)
def test_amaranth_and_verilator_agree_with_the_recurrence(name):
    """One elaborated core for all benches: what a bench leaves in it is nothing to the next."""
    core, elaborated = compiled(name), Elaborated(CASES[name].make)

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(bench=benches(name))
    def check(bench):
        told = oracle.outcome(bench, CASES[name].tell(bench))
        assert told.differences(core.run(bench)) == []
        assert told.differences(elaborated.run(bench)) == []

    check()


@pytest.mark.parametrize("name", CASES)
def test_verilator_agrees_over_many_words(name):
    bench = random_bench(name, seed=1, n=3000)
    told = oracle.outcome(bench, CASES[name].tell(bench))
    assert told.differences(compiled(name).run(bench)) == []


@pytest.mark.parametrize("name", ["pipe_33", "join_100_2048", *SLOW])
def test_cocotb_agrees_with_the_recurrence(name):
    for seed, slack in ((2, 1), (3, 5)):
        bench = random_bench(name, seed=seed, n=100, slack=slack)
        told = oracle.outcome(bench, CASES[name].tell(bench))
        assert told.differences(run_cocotb(emitted(name), "top", bench)) == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bench=benches("join_100_2048"), max_cycles=st.integers(1, 60))
def test_a_run_that_is_cut_short_is_the_beginning_of_the_whole(bench, max_cycles):
    whole = compiled("join_100_2048").run(bench)
    cut = dataclasses.replace(bench, max_cycles=max_cycles)
    part = compiled("join_100_2048").run(cut)
    assert part.differences(run_amaranth(CASES["join_100_2048"].make(), cut)) == []
    assert part.timed_out == (max_cycles < whole.cycles)
    assert part.cycles == min(max_cycles, whole.cycles)
    for name, crossing in part.crossings.items():
        before = whole.crossings[name].cycles < max_cycles
        assert crossing.cycles.tolist() == whole.crossings[name].cycles[before].tolist()
        assert crossing.words.tolist() == whole.crossings[name].words[before].tolist()


def test_cocotb_is_cut_short_alike():
    bench = dataclasses.replace(random_bench("pipe_33", seed=4, n=50), max_cycles=37)
    there = run_cocotb(emitted("pipe_33"), "top", bench)
    assert there.timed_out
    assert compiled("pipe_33").run(bench).differences(there) == []
