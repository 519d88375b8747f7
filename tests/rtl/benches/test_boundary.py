# amaranth: UnusedElaboratable=no
"""A component's boundary is read off its signature, and must be streams and outputs."""

import pytest
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.benches.bench import StreamPort
from rtl.benches.boundary import ports_of, probes_of

from . import toys
from .cases import CASES, compiled, emitted


def component(**members) -> wiring.Component:
    return wiring.Component(members)


def test_streams_and_probes_are_read_in_order():
    core = component(b=In(stream.Signature(3)), n=Out(5), a=Out(stream.Signature(300)))
    assert ports_of(core) == (
        StreamPort(name="b", direction="i", bits=3),
        StreamPort(name="a", direction="o", bits=300),
    )
    assert probes_of(core) == (("n", 5),)


@pytest.mark.parametrize("name", CASES)
def test_the_verilog_has_the_same_boundary(name):
    assert emitted(name)
    core = CASES[name].make()
    assert set(compiled(name).ports) == set(ports_of(core))
    assert set(compiled(name).probes) == set(probes_of(core))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"x": In(3)}, "x must be a stream or an output, not a plain input"),
        ({"x": In(stream.Signature(3)).array(2)}, "x must be a single member, not an array"),
        ({"x": In(stream.Signature(3, always_ready=True))}, "x must have both valid and ready"),
        ({"x": In(wiring.Signature({"y": Out(1)}))}, "x must be a stream, not"),
    ],
)
def test_other_members_are_refused(members, message):
    with pytest.raises(ValueError, match=message):
        ports_of(component(**members))


def test_a_payload_may_be_a_view():
    assert ports_of(toys.LaneSum(5, 13, 3))[0].bits == 65
