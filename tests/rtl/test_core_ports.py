"""A core has the streams and counters of its design, those of its memories' settings, no others."""

import pytest
from amaranth.lib import wiring

from archsim.machine.registry import load_design, with_settings
from rtl.core import machine
from rtl.registry import core_of

SETTINGS = set(machine.SETTINGS_PORTS)
SPARSE = {"command": "i", "ifmap": "i", "weight": "i", "bias": "i", "ofmap": "o"}
CORES = [
    ("edge-16", ["rows=2", "columns=2"], False),
    (
        "edge-16",
        ["rows=2", "columns=2", "weight_memory.kind=faulty", "weight_memory.rate=0.01"],
        True,
    ),
    ("volta", ["octets=1", "rows=4"], False),
    ("vsq-16", ["lanes=2", "vector=4"], False),
    ("sparsetrain", ["pes=2", "lanes=4"], False),
    ("scnn", ["grid_rows=1", "grid_columns=2"], False),
    (
        "scnn",
        ["grid_rows=1", "grid_columns=2", "weight_memory.kind=faulty", "weight_memory.rate=0.01"],
        True,
    ),
]


@pytest.mark.parametrize(("name", "settings", "kept"), CORES)
def test_a_core_has_the_ports_of_its_design(name: str, settings: list[str], kept: bool) -> None:
    """kept: some of its memories take settings from registers."""
    design = with_settings(load_design(name), settings)
    members = core_of(design).signature.members
    streams = {port for port, member in members.items() if member.is_signature}
    ports = {port.name: port.direction for port in getattr(design, "ports", ())} or SPARSE
    assert streams == ports.keys()
    counts = {port for port in members.keys() - streams if port.startswith("count_")}
    assert counts
    assert members.keys() - streams - counts == (SETTINGS if kept else set())
    for port, direction in ports.items():
        assert (members[port].flow is wiring.In) == (direction == "i")
