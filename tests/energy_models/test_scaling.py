"""Node scaling against the paper's printed factors, its corrigendum, and what must always hold."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.errors import EnergyError
from energy_models.estimator import Quantity
from energy_models.scaling import (
    AREA,
    NODES_NM,
    NOMINAL_V,
    area_factor,
    delay_factor,
    energy_factor,
    nominal_v,
    scale,
)

ONE = Quantity(value=1.0, source="measured")
nodes = st.floats(7, 180)


def test_energy_of_the_papers_corrigendum():
    assert energy_factor(32, 0.9) == pytest.approx(0.4571, abs=5e-5)
    assert energy_factor(65, 1.3) == pytest.approx(2.604, abs=5e-4)
    scaled = scale(ONE, "energy", nodes_nm=(65, 32), voltages_v=(1.3, 0.9))
    assert scaled.value == pytest.approx(0.1755, abs=1e-4)
    assert scaled.how == "scaled from 65 nm at 1.3 V to 32 nm at 0.9 V by Stillmaker and Baas 2017"
    assert scaled.source == "measured"


@pytest.mark.parametrize(
    ("from_nm", "to_nm", "printed"),
    [(180, 7, 0.0032), (45, 16, 0.19), (16, 45, 5.3), (65, 45, 0.66), (7, 180, 320), (10, 7, 0.58)],
)
def test_printed_area_factors(from_nm, to_nm, printed):
    scaled = scale(ONE, "area", nodes_nm=(from_nm, to_nm), voltages_v=(math.nan, 1.0))
    assert scaled.value == pytest.approx(printed)


def test_the_printed_area_table_is_consistent():
    for row, source in enumerate(NODES_NM):
        assert AREA[source][row] == 1
        for column, target in enumerate(NODES_NM):
            # two digits are printed: to and fro may differ by their rounding
            assert AREA[source][column] * AREA[target][row] == pytest.approx(1, abs=0.07)


AT_NOMINAL = {  # the printed polynomials, evaluated term by term in another program
    180: (26.372, 79.01),
    130: (6.3013, 31.96),
    90: (3.2121, 23.59),
    65: (1.6808, 19.15),
    45: (0.8612, 12.50),
    32: (0.4571, 8.36),
    20: (0.2008, 9.47),
    16: (0.1385, 6.40),
    14: (0.0962, 4.51),
    10: (0.0702, 3.84),
    7: (0.0478, 3.24),
}


@pytest.mark.parametrize("node", NODES_NM)
def test_factors_at_nominal_supply(node):
    energy, delay = AT_NOMINAL[node]
    assert energy_factor(node, NOMINAL_V[node]) == pytest.approx(energy, abs=5.1e-5)
    assert delay_factor(node, NOMINAL_V[node]) == pytest.approx(delay, abs=5.1e-3)


def test_delay_is_scaled_by_its_factors():
    scaled = scale(ONE, "delay", nodes_nm=(180, 7), voltages_v=(1.8, 0.7))
    assert scaled.value == pytest.approx(3.239 / 79.01, rel=1e-3)


@given(node=nodes, voltage=st.floats(0.3, 2), kind=st.sampled_from(["energy", "area", "delay"]))
def test_nothing_changes_at_the_same_node_and_supply(node, voltage, kind):
    same = scale(ONE, kind, nodes_nm=(node, node), voltages_v=(voltage, voltage))
    assert same is ONE


@given(nodes, nodes)
def test_area_shrinks_with_the_node(one, other):
    smaller, larger = sorted((one, other))
    if larger / smaller > 1.3:  # closer, the rounding of the printed table shows
        assert area_factor(larger, smaller) < 1 < area_factor(smaller, larger)


@given(nodes, nodes)
def test_energy_at_nominal_supply_shrinks_with_the_node(one, other):
    smaller, larger = sorted((one, other))
    if larger > smaller:
        factors = [energy_factor(node, nominal_v(node)) for node in (smaller, larger)]
        assert factors[0] < factors[1]


@given(node=nodes, low=st.floats(0.6, 1.5), high=st.floats(0.6, 1.5))
def test_energy_rises_with_the_supply(node, low, high):
    low, high = sorted((low, high))
    nominal = nominal_v(node)
    below, above = (
        energy_factor(node, min(max(share * nominal, 0.6 * nominal), 1.5 * nominal))
        for share in (low, high)
    )
    assert 0 < below <= above * (1 + 1e-12)


@given(node=nodes)
def test_delay_is_positive_and_longer_at_a_lower_supply(node):
    nominal = nominal_v(node)
    assert delay_factor(node, 0.61 * nominal) > delay_factor(node, 0.8 * nominal) > 0
    assert delay_factor(node, 1.19 * nominal) > 0


def test_between_its_nodes_the_method_is_interpolated():
    assert area_factor(180, 28) == pytest.approx(
        0.025 ** (math.log(28 / 20) / math.log(32 / 20))
        * 0.011 ** (math.log(32 / 28) / math.log(32 / 20))
    )
    scaled = scale(ONE, "energy", nodes_nm=(45, 28), voltages_v=(0.9, 0.9))
    at_32, at_20 = (energy_factor(node, NOMINAL_V[node]) for node in (32, 20))
    assert at_20 < energy_factor(28, 0.9) < at_32
    assert scaled.how.endswith("by Stillmaker and Baas 2017 (28 nm interpolated)")
    for above, below in pairwise(NODES_NM):
        middle = math.sqrt(above * below)
        assert energy_factor(middle, nominal_v(middle)) == pytest.approx(
            math.sqrt(
                energy_factor(above, NOMINAL_V[above]) * energy_factor(below, NOMINAL_V[below])
            )
        )


def test_the_same_node_at_another_supply():
    scaled = scale(ONE, "energy", nodes_nm=(5, 5), voltages_v=(0.8, 0.6))
    assert scaled.value == pytest.approx((0.6 / 0.8) ** 2)
    assert scaled.how == "from 0.8 to 0.6 V with the square of the supply"
    assert scale(ONE, "area", nodes_nm=(5, 5), voltages_v=(0.8, 0.6)) is ONE


def test_an_unstated_supply():
    taken = scale(ONE, "energy", nodes_nm=(7, 7), voltages_v=(math.nan, 0.7))
    assert (taken.value, taken.how) == (1, "supply not stated there, taken as 0.7 V")
    with pytest.raises(EnergyError) as caught:
        scale(ONE, "energy", nodes_nm=(7, 16), voltages_v=(math.nan, 0.8))
    assert str(caught.value) == (
        "energy cannot be scaled at 7 nm: the source does not state its supply voltage"
    )


@pytest.mark.parametrize(
    ("kind", "nodes_nm", "voltages_v", "message"),
    [
        (
            "energy",
            (45, 5),
            (0.9, 0.7),
            "no scaling at 5 nm: the method (Stillmaker and Baas 2017) reaches from 180 to 7 nm",
        ),
        (
            "area",
            (250, 45),
            (1.8, 0.9),
            "no scaling at 250 nm: the method (Stillmaker and Baas 2017) reaches from 180 to 7 nm",
        ),
        (
            "area",
            (math.nan, 45),
            (1.8, 0.9),
            "no scaling at nan nm: the method (Stillmaker and Baas 2017) reaches from 180 to 7 nm",
        ),
        (
            "energy",
            (45, 7),
            (0.5, 0.7),
            "energy cannot be scaled at 45 nm and 0.5 V: the method (Stillmaker and Baas 2017) is "
            "used from 0.6 to 1.5 V there",
        ),
        (
            "delay",
            (45, 7),
            (1.0, 0.9),
            "delay cannot be scaled at 7 nm and 0.9 V: the method (Stillmaker and Baas 2017) is "
            "used from 0.42 to 0.84 V there",
        ),
        (
            "leakage",
            (45, 16),
            (1.0, 0.8),
            "leakage cannot be scaled from 45 nm at 1 V to 16 nm at 0.8 V: the method "
            "(Stillmaker and Baas 2017) gives none",
        ),
        (
            "leakage",
            (45, 45),
            (1.0, 0.8),
            "leakage cannot be scaled from 45 nm at 1 V to 45 nm at 0.8 V: the method "
            "(Stillmaker and Baas 2017) gives none",
        ),
        (
            "power",
            (45, 45),
            (1.0, 0.8),
            "'power' cannot be scaled; known: energy, area, delay, leakage",
        ),
    ],
)
def test_refused(kind, nodes_nm, voltages_v, message):
    with pytest.raises(EnergyError) as caught:
        scale(ONE, kind, nodes_nm=nodes_nm, voltages_v=voltages_v)
    assert str(caught.value) == message


def test_leakage_where_nothing_changes():
    assert scale(ONE, "leakage", nodes_nm=(45, 45), voltages_v=(0.9, 0.9)) is ONE
