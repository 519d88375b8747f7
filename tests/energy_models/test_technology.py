"""Technologies: which source answers, what is scaled, what is said where nobody answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from energy_models.component import KINDS, Component
from energy_models.errors import EnergyError
from energy_models.pricing import price
from energy_models.technology import Technology, load_technology, technologies

TABLE = """
name = "mine"
title = "a table"
node_nm = 45
voltage_v = 1.0
source = "a test"

[[entry]]
component = "adder"
attributes = { bits = 8 }
quantity = "energy"
action = "add"
value = 2.0
unit = "pJ"
source = "page 1"

[[entry]]
component = "adder"
attributes = { bits = 8 }
quantity = "area"
value = 30.0
unit = "um2"
source = "page 2"

[[entry]]
component = "adder"
attributes = { bits = 8 }
quantity = "leakage"
value = 0.5
unit = "mW"
source = "page 3"
"""

TECHNOLOGY = """
name = "mine"
title = "a technology"
node_nm = 45
voltage_v = 1.0
[energy]
adder = "table:table.toml"
[area]
adder = "table:table.toml"
[leakage]
adder = "table:table.toml"
"""

ADDER = Component(
    name="unit.adder", kind="adder", count=3, attributes={"bits": 8}, actions={"add": {"step": 2.0}}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.toml").write_text(TABLE)
    (tmp_path / "mine.toml").write_text(TECHNOLOGY)
    return tmp_path


def changed(folder: Path, old: str, new: str) -> str:
    text = TECHNOLOGY.replace(old, new)
    assert text != TECHNOLOGY
    path = folder / "changed.toml"
    path.write_text(text)
    return str(path)


def refused(path: str) -> str:
    with pytest.raises(EnergyError) as caught:
        load_technology(path)
    return str(caught.value)


class TestPrices:
    def test_a_price_is_events_times_energy_and_area_is_of_all_pieces(self, folder: Path) -> None:
        prices = price(load_technology(str(folder / "mine.toml")), [ADDER])
        assert prices.counted == ("step",)
        assert prices.energy([{"step": 5}, {"step": 0}]).tolist() == [[20.0], [0.0]]
        assert prices.area_um2.tolist() == [90.0]
        assert prices.leakage_mw.tolist() == [1.5]
        assert prices.static_pj([2.0, 1.0]).tolist() == [[3e9], [1.5e9]]

    def test_components_that_share_an_action_add_up(self, folder: Path) -> None:
        other = Component(
            name="other",
            kind="adder",
            attributes={"bits": 8},
            actions={"add": {"step": 1.0, "cycle": -0.5}},
        )
        prices = price(load_technology(str(folder / "mine.toml")), [ADDER, other])
        energy = prices.energy([{"step": 1, "cycle": 1}])
        assert energy.tolist() == [[4.0, 1.0]]

    def test_a_row_without_an_action_is_refused(self, folder: Path) -> None:
        prices = price(load_technology(str(folder / "mine.toml")), [ADDER])
        with pytest.raises(EnergyError, match=r"^the action counts lack step$"):
            prices.energy([{"cycle": 1}])

    def test_dynamic_energy_goes_with_the_square_of_the_voltage(self, folder: Path) -> None:
        low = load_technology(str(folder / "mine.toml"), voltage_v=0.7)
        energy, _, leakage = (one.figure for one in price(low, [ADDER]).prices)
        assert energy is not None
        assert energy.value == pytest.approx(2.0 * 0.49)
        assert "square of the supply" in energy.how
        assert leakage is not None
        assert (leakage.value, leakage.how) == (0.5, "at 1 V: no method scales leakage")

    def test_another_node_is_scaled_and_says_so(self, folder: Path) -> None:
        path = changed(folder, "node_nm = 45", "node_nm = 32")
        adder = Component(name="a", kind="adder", attributes={"bits": 8}, actions={"add": {}})
        technology = load_technology(path)
        area = technology.area_um2(adder)
        assert area is not None
        assert area.value == pytest.approx(30.0 * 0.46)
        assert "from 45 to 32 nm" in area.how
        with pytest.raises(EnergyError, match="leakage cannot be scaled"):
            technology.leakage_mw(adder)

    def test_what_nobody_says_is_left_out_with_the_reason(self, folder: Path) -> None:
        path = changed(
            folder, '[leakage]\nadder = "table:table.toml"', '[leakage]\ndefault = "none: unknown"'
        )
        prices = price(load_technology(path), [ADDER])
        assert np.isnan(prices.leakage_mw).all()
        assert prices.static_pj([1.0]).tolist() == [[0.0]]
        absent = [one for one in prices.prices if one.figure is None]
        assert [(one.what, one.figure_missing) for one in absent] == [("leakage", "unknown")]

    def test_an_action_may_have_a_source_of_its_own(self, folder: Path) -> None:
        path = changed(
            folder, 'adder = "table:table.toml"\n[area]', '"adder.add" = "none: no"\n[area]'
        )
        assert price(load_technology(path), [ADDER]).dynamic.tolist() == [[0.0]]


class TestBadTechnologies:
    def test_messages(self, folder: Path) -> None:
        where = folder / "changed.toml"
        cases = {
            ('name = "mine"\n', ""): f"{where}: name is missing",
            ("node_nm = 45", 'node_nm = "45"'): f"{where}: node_nm must be a number",
            ("node_nm = 45", "node_nm = 0"): "mine: node_nm must be positive, not 0",
            ("node_nm", "nodes_nm"): f"{where} has no 'nodes_nm'; did you mean node_nm?",
            ("voltage_v = 1.0", 'voltage_v = 1.0\nunit = "J"'): (
                "mine: unit must be pJ or MAC, not 'J'"
            ),
            ("[energy]\nadder", "[energy]\nader"): (
                "mine: [energy] has no kind 'ader'; did you mean adder?"
            ),
            ("[energy]\nadder", '[energy]\n"adder.read"'): (
                "mine: [energy] has no 'adder.read': a adder does not 'read'"
            ),
            ("[area]\nadder", '[area]\n"adder.add"'): (
                "mine: [area] has no 'adder.add': a adder does not 'add'"
            ),
            ("table:table.toml", "tables:table.toml"): (
                "no source 'tables:table.toml': it must begin with table:, synthesis:, cacti:, "
                "dram: or none:; did you mean table?"
            ),
            ("table:table.toml", "cacti:45nm"): (
                "source 'cacti:45nm': the node must be a whole number of nanometres"
            ),
        }
        for (old, new), message in cases.items():
            assert refused(changed(folder, old, new)) == message

    def test_a_relative_table_does_not_price_in_picojoules(self, folder: Path) -> None:
        path = changed(folder, "table:table.toml", "table:eyeriss-2016")
        assert refused(path) == (
            "technology mine is in pJ, but table:eyeriss-2016 gives energies in MAC"
        )

    def test_unknown_names_and_files(self, tmp_path: Path) -> None:
        assert refused("45nn").startswith("no technology '45nn'; did you mean 45nm")
        missing = tmp_path / "missing.toml"
        assert refused(str(missing)) == f"{missing} cannot be read: No such file or directory"
        missing.write_text("name = ")
        assert refused(str(missing)).startswith(f"{missing} is not a TOML file: ")

    def test_a_quantity_without_a_source_is_an_error(self, folder: Path) -> None:
        technology = load_technology(str(folder / "mine.toml"))
        register = Component(
            name="r", kind="register", attributes={"bits": 8}, actions={"write": {"step": 1.0}}
        )
        with pytest.raises(EnergyError) as caught:
            price(technology, [register])
        assert str(caught.value) == (
            "technology mine names no source for the energy of a register; it has: adder"
        )


class TestShipped:
    def test_every_technology_has_a_source_or_a_reason_for_everything(self) -> None:
        assert {"45nm", "7nm", "130nm", "180nm", "16nm", "eyeriss-relative"} <= set(technologies())
        for name in technologies():
            technology: Technology = load_technology(name)
            assert technology.name == name
            for what in ("energy", "area", "leakage"):
                for kind in KINDS:
                    if what == "energy" or kind != "dram":
                        assert technology.source(what, kind)


class TestComponents:
    def test_a_component_checks_itself(self) -> None:
        cases = {
            ("adderr", ("bits",), (8,), 1): "x: no component kind 'adderr'; did you mean adder?",
            ("adder", ("bits",), (8,), 0): "x: count must be positive, not 0",
            ("adder", ("bits",), (0,), 1): "x: bits must be at least 1, not 0",
            ("adder", ("width",), (8,), 1): "x: a adder has the attributes bits, not width",
            ("dram", ("bits",), (8,), 1): "x: a dram has the attributes none, not bits",
        }
        for (kind, names, sizes, count), message in cases.items():
            attributes = dict(zip(names, sizes, strict=True))
            with pytest.raises(EnergyError) as caught:
                Component(name="x", kind=kind, attributes=attributes, count=count)
            assert str(caught.value) == message

    def test_an_action_must_be_of_the_kind(self) -> None:
        with pytest.raises(EnergyError, match=r"^x: a adder does not 'read'; known: add$"):
            Component(name="x", kind="adder", attributes={"bits": 8}, actions={"read": {}})
