"""Designs, technologies, tilings and settings of hostile shape: one line, never a traceback."""

import string
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Call, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, load_design, registered, with_settings
from energy_models.errors import EnergyError
from energy_models.technology import load_technology
from workloads.errors import WorkloadError
from workloads.limits import Limits, changed, check_limit

HOSTILE = {
    "deep arrays": "rows = " + "[" * 10_000 + "]" * 10_000,
    "deep tables": "rows = " + "{a=" * 10_000 + "1" + "}" * 10_000,
    "dotted": ".".join(["a"] * 20_000) + " = 1",
    "digits": "rows = " + "9" * 5_000,
    "large": "rows = 1_000_000_000_000",
    "nan": "clock_hz = nan",
    "infinite": "clock_hz = inf",
    "control": "rows = 1\0",
    "date": "rows = 1979-05-27T07:32:00Z",
    "escapes": 'dataflow = "\\u001b[31m"',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("load", [load_design, load_technology], ids=["design", "technology"])
def test_a_hostile_file(load: object, text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((InputError, EnergyError)):
        load(str(path))  # type: ignore[operator]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "/dev/null/x.toml", "a\0b.toml"])
def test_what_is_no_file(path: str) -> None:
    with pytest.raises(InputError):
        load_design(path if path.endswith(".toml") else f"{path}")


KEYS = [
    "rows",
    "columns",
    "operand_bits",
    "clock_hz",
    "off_chip.bytes_per_cycle",
    "kind",
    "ifmap_memory.capacity_bytes",
    "ifmap_memory.kind",
    "ifmap_memory",
    "",
    "off_chip.x.y",
]
ODD = st.one_of(
    st.integers(-(10**40), 10**40).map(str),
    st.sampled_from(
        ["nan", "inf", "-inf", "1e300", "-0.0", "true", "[]", "{}", "''", "", "1e-320"]
    ),
    st.integers(4_000, 6_000).map(lambda digits: "9" * digits),
    st.integers(1, 20_000).map(lambda depth: "[" * depth),
    st.text(string.printable, max_size=30),
    st.text(max_size=20),
)


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(sorted(registered())), key=st.sampled_from(KEYS), value=ODD)
def test_any_setting_gives_a_design_or_one_line(name: str, key: str, value: str) -> None:
    try:
        found = with_settings(registered()[name], [f"{key}={value}"])
    except (InputError, WorkloadError) as error:
        assert len(str(error)) < 2_000
    else:
        assert found.macs_per_cycle <= Limits().multipliers


RECORDS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([key for key in KEYS if "." not in key]), inner),
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(record=st.dictionaries(st.sampled_from(KEYS), RECORDS))
def test_any_record_gives_a_design_or_one_line(record: dict[str, object]) -> None:
    try:
        design_from_record(record, "here")
    except InputError as error:
        assert len(str(error)) < 4_000


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rows=16\ncolumns=3", "a setting is key=value, a line of at most 1000 characters, not"),
        (f"rows={'9' * 900}", "rows must be at most 1099511627776, not 9999999"),
        ("rows=1000000000000", "rows must be at most 65,536, not 1,000,000,000,000"),
    ],
)
def test_settings_are_one_line(setting: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        with_settings(registered()["edge-16"], [setting])
    assert message in str(caught.value)


def test_a_limit_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = changed(Limits(), ["tiles=5", "lanes=7"], "--limit")
    assert (raised.tiles, raised.lanes) == (5, 7)
    monkeypatch.setattr("workloads.limits._limits", raised)
    check_limit("tiles", 5, "here")
    with pytest.raises(WorkloadError, match=r"here must be at most 5, not 6 \(--limit tiles="):
        check_limit("tiles", 6, "here")


@pytest.mark.parametrize(
    "setting", ["tile=5", "tiles", "tiles=", "tiles=-1", "tiles=x", "tiles=" + "9" * 30]
)
def test_limits_that_are_none(setting: str) -> None:
    with pytest.raises(WorkloadError):
        changed(Limits(), [setting], "--limit")


@pytest.mark.parametrize("voltage", ["1e300", "-1", "0", "inf", "nan", "101"])
def test_voltages(voltage: str, archsim: Call) -> None:
    refused(archsim("run", "edge-16", "alexnet", "--timing-only", "--voltage", voltage))


def test_the_environment_raises_limits() -> None:
    code = "from workloads.limits import limits; print(limits().tiles)"
    environment = {"ARCHSIM_LIMITS": "tiles=12"}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert out.stdout == "12\n"


def test_the_command_raises_limits(archsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.limits._limits", Limits(tiles=3))
    words = ("run", "edge-16", "alexnet", "--timing-only", "--json")
    said = refused(archsim(*words))
    assert said.startswith(
        "conv1: tiles, each of which is timed by itself, must be at most 3, not "
    )
    assert "(--limit tiles=NUMBER before the command raises it)" in said
    assert archsim("--limit", "tiles=100000", *words).code == 0
    assert refused(archsim("--limit", "tile=5", *words)).startswith("no limit of --limit is named")
