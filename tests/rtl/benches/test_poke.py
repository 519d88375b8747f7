"""A design opens in pyverilator, and can be poked at."""

import pytest

from rtl.benches.poke import open_with_pyverilator

from .cases import emitted


@pytest.mark.slow
def test_a_design_can_be_poked_twice():
    for _ in range(2):
        sim = open_with_pyverilator(emitted("pipe_33"))
        sim.io["i__payload"] = 0x1_2345_6789
        sim.io["i__valid"] = 1
        assert int(sim.io["o__valid"]) == 0
        sim.clock.tick()
        assert int(sim.io["o__valid"]) == 1
        assert int(sim.io["o__payload"]) == 0x1_2345_6789
        assert int(sim.io["i__ready"]) == 0
