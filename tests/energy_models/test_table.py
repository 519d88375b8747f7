"""Units, and tables as files: what is read, and the one line for each thing that is wrong."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.errors import EnergyError
from energy_models.table import FOLDER, load_table, shipped_tables
from energy_models.units import UNITS, factor

HEAD = """
name = "mine"
title = "My table"
node_nm = 28
voltage_v = 0.9
source = "Me, 2020"
parts = ["crossbar"]
"""
ENTRY = """
[[entry]]
component = "adder"
attributes = { bits = 8 }
quantity = "energy"
action = "add"
value = 30
unit = "fJ"
source = "table 1"
"""


def write(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(EnergyError) as caught:
        load_table(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_units_in_pj_um2_and_mw():
    assert [factor(unit, "energy") for unit in ("fJ", "pJ", "nJ", "MAC")] == [1e-3, 1, 1e3, 1]
    assert [factor(unit, "area") for unit in ("um2", "mm2")] == [1, 1e6]
    assert [factor(unit, "leakage") for unit in ("nW", "uW", "mW")] == [1e-6, 1e-3, 1]


@pytest.mark.parametrize(
    ("unit", "quantity", "message"),
    [
        ("pj", "energy", "no unit 'pj' of energy; known: fJ, pJ, nJ, MAC"),
        ("pJ", "area", "no unit 'pJ' of area; known: um2, mm2"),
        ("pJ", "enrgy", "no quantity 'enrgy'; did you mean energy?"),
    ],
)
def test_unknown_units(unit, quantity, message):
    with pytest.raises(EnergyError) as caught:
        factor(unit, quantity)
    assert str(caught.value) == message


def test_a_file_is_read(tmp_path):
    table = load_table(write(tmp_path, HEAD + ENTRY))
    assert (table.name, table.node_nm, table.voltage_v) == ("mine", 28, 0.9)
    assert table.unit == "pJ"
    found = table.find("adder", "energy", "add", bits=8)
    assert found.value == pytest.approx(0.03)
    assert (found.source, found.how) == ("Me, 2020, table 1", "")


def test_a_range_and_another_publication_are_told(tmp_path):
    entry = ENTRY.replace("value = 30", "value = 30\nlow = 20\nhigh = 40\npublication = 'You'")
    found = load_table(write(tmp_path, HEAD + entry)).find("adder", "energy", "add", bits=8)
    assert found.source == "You, table 1"
    assert found.how == "the middle of the printed 20 to 40 fJ"
    entry = entry.replace("value = 30", "value = 22")
    found = load_table(write(tmp_path, HEAD + entry)).find("adder", "energy", "add", bits=8)
    assert found.how == "22 of the printed 20 to 40 fJ"


@given(
    value=st.floats(1e-6, 1e6),
    unit=st.sampled_from([(q, u) for q, units in UNITS.items() for u in units]),
)
def test_a_figure_survives_the_file(tmp_path_factory, value, unit):
    quantity, name = unit
    action = 'action = "pass"' if quantity == "energy" else ""
    text = f"""{HEAD}
[[entry]]
component = "crossbar"
quantity = "{quantity}"
{action}
value = {value!r}
unit = "{name}"
source = "table 1"
"""
    table = load_table(write(tmp_path_factory.mktemp("table"), text))
    found = table.find("crossbar", quantity, "pass" if action else "")
    assert found.value == value * factor(name, quantity)


WRONG = {
    "unit": ('unit = "fJ"', 'unit = "fj"', "no unit 'fj' of energy; known: fJ, pJ, nJ, MAC"),
    "zero": ("value = 30", "value = 0", "value must be positive, not 0"),
    "negative": ("value = 30", "value = -1.5", "value must be positive, not -1.5"),
    "nan": ("value = 30", "value = nan", "value must be positive, not nan"),
    "infinite": ("value = 30", "value = inf", "value must be positive, not inf"),
    "type": ("value = 30", 'value = "30"', "value must be a number, not '30'"),
    "truth": ("value = 30", "value = true", "value must be a number, not True"),
    "missing value": ("value = 30", "", "value is missing"),
    "missing source": ('source = "table 1"', "", "source is missing"),
    "empty source": ('source = "table 1"', 'source = " "', "source must not be empty"),
    "field": ("value = 30", "value = 30\nvalu = 3", "no field 'valu'; did you mean value?"),
    "component": ('"adder"', '"addr"', "no component 'addr'; did you mean adder?"),
    "quantity": ('"energy"', '"powr"', "no quantity 'powr'; known: energy, area, leakage"),
    "attribute": ("bits = 8", "bit = 8", "adder has no 'bit'; did you mean bits?"),
    "no attribute": ("bits = 8", "", "attribute bits is missing"),
    "size": ("bits = 8", "bits = 0", "bits must be positive"),
    "size's type": ("bits = 8", "bits = 8.5", "bits must be a whole number or a text, not 8.5"),
    "size as text": ("bits = 8", 'bits = "8"', "bits must be a whole number, not '8'"),
    "no table": ("{ bits = 8 }", "8", "attributes must be a table such as { bits = 8 }"),
    "action": ('"add"', '"ad"', "adder has no action 'ad'; did you mean add?"),
    "no action": ('action = "add"', "", "action is missing"),
    "action's type": (
        'action = "add"',
        "action = 3",
        "action must be a text or a list of texts, not 3",
    ),
    "twice": (
        'action = "add"',
        'action = ["add", "add"]',
        "an action stands twice in ['add', 'add']",
    ),
    "area": (
        'quantity = "energy"\naction = "add"\nvalue = 30\nunit = "fJ"',
        'quantity = "area"\naction = "add"\nvalue = 30\nunit = "um2"',
        "area has no action",
    ),
    "half a range": ("value = 30", "value = 30\nlow = 3", "low and high must come together"),
    "range": (
        "value = 30",
        "value = 30\nlow = 3\nhigh = 20",
        "value must lie from low to high, not 30 in 3 to 20",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry(tmp_path, name):
    old, new, message = WRONG[name]
    assert old in ENTRY
    assert refusal(tmp_path, HEAD + ENTRY.replace(old, new)) == f", entry 1: {message}"


HEADS = {
    "missing": ("node_nm = 28", "", "node_nm is missing"),
    "unknown": ("node_nm = 28", "node_nm = 28\nnod = 3", "no field 'nod'; did you mean node_nm?"),
    "negative": ("node_nm = 28", "node_nm = -28", "node_nm must be positive, not -28"),
    "text": ('title = "My table"', "title = 3", "title must be a text, not 3"),
    "parts": ('["crossbar"]', '"crossbar"', "parts must be a list of names, not 'crossbar'"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_wrong_head(tmp_path, name):
    old, new, message = HEADS[name]
    assert old in HEAD
    assert refusal(tmp_path, HEAD.replace(old, new) + ENTRY) == f": {message}"


def test_no_entries(tmp_path):
    assert refusal(tmp_path, HEAD) == ": entry is missing"
    assert refusal(tmp_path, HEAD + "entry = 3") == ": entry must be one or more tables [[entry]]"
    assert refusal(tmp_path, HEAD + "entry = [3]") == ", entry 1: must be a table [[entry]]"


def test_a_double_entry(tmp_path):
    message = refusal(tmp_path, HEAD + ENTRY + ENTRY.replace("30", "31"))
    assert message == ": entries 1 and 2 are both of adder(bits=8) add energy"
    elsewhere = ENTRY.replace("value = 30", "value = 31\nvoltage_v = 0.7")
    assert len(load_table(write(tmp_path, HEAD + ENTRY + elsewhere)).entries) == 2


def test_relative_energies_are_not_mixed_with_pj(tmp_path):
    relative = ENTRY.replace('"fJ"', '"MAC"').replace("bits = 8", "bits = 16")
    message = refusal(tmp_path, HEAD + ENTRY + relative)
    assert message == ": energies must be all in units of MAC, or none of them"
    assert load_table(write(tmp_path, HEAD + relative)).unit == "MAC"


def test_dram_says_over_how_many_bits(tmp_path):
    dram = ENTRY.replace('"adder"', '"dram"').replace('"add"', '"read"').replace("bits = 8", "")
    assert refusal(tmp_path, HEAD + dram) == ", entry 1: attribute access_bits is missing"
    wrong = dram.replace("{  }", "{ access_bits = 64, interface = 2 }")
    assert refusal(tmp_path, HEAD + wrong) == ", entry 1: interface must be a text, not 2"


def test_files_that_cannot_be_read(tmp_path):
    assert refusal(tmp_path, "a = ").startswith(" is not a TOML file: Invalid value")
    (tmp_path / "mine.toml").unlink()
    with pytest.raises(EnergyError) as caught:
        load_table(tmp_path / "mine.toml")
    assert (
        str(caught.value) == f"{tmp_path / 'mine.toml'} cannot be read: No such file or directory"
    )
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(EnergyError, match=r"binary\.toml is not a TOML file: 'utf-8' codec"):
        load_table(binary)


def test_unknown_names():
    with pytest.raises(EnergyError) as caught:
        load_table("horowitz-2015")
    assert str(caught.value) == "no table 'horowitz-2015'; did you mean horowitz-2014?"
    table = load_table("scnn-2017")
    with pytest.raises(EnergyError) as caught:
        table.find("weight_fifo", "area", bytes=500)
    assert str(caught.value) == (
        "table scnn-2017 has no weight_fifo(bytes=500) area; it has: weight_fifo(bytes=512) area"
    )
    with pytest.raises(EnergyError) as caught:
        table.find("crossbar", "energy", "pass")
    assert str(caught.value) == "table scnn-2017 has no crossbar() pass energy; it has: none"


def test_shipped_tables_are_all_readable_and_named_like_their_files():
    titles = shipped_tables()
    assert {"horowitz-2014", "eyeriss-2016", "scnn-2017", "tpu-2021-7nm", "dram"} <= set(titles)
    for path in FOLDER.glob("*.toml"):
        table = load_table(path)
        assert table.name == path.stem
        assert table.title == titles[path.stem]
        assert table.notes
        assert all(math.isfinite(entry.figure) for entry in table.entries)
        used = {entry.component for entry in table.entries}
        assert set(table.parts) <= used


def test_scnn_parts_add_up_to_its_processing_element():
    table = load_table("scnn-2017")
    parts = [entry.figure for entry in table.entries if "processing" not in entry.component]
    whole = table.find("processing_element", "area").value
    assert sum(parts) == pytest.approx(whole, abs=1000)
    everything = table.find("all_processing_elements", "area", count=64).value
    assert everything == pytest.approx(64 * whole, rel=0.01)


def test_floating_point_figures_are_reachable_by_name():
    table = load_table("tpu-2021-7nm")
    found = table.find("float_multiplier", "energy", "multiply", bits=16, format="bfloat16")
    assert (found.value, found.source) == (0.21, "Jouppi et al., ISCA 2021, table 2")
