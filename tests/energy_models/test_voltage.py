"""Supply voltage: the square law of logic, and the digitised curves of SRAMs below V_min."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.errors import EnergyError
from energy_models.voltage import (
    SRAM_CURVE,
    bit_error_rate,
    logic_energy_factor,
    sram_energy_factor,
)

supplies = st.floats(0.757, 1)


def test_logic_goes_with_the_square():
    assert logic_energy_factor(1.0, 0.5) == 0.25
    assert logic_energy_factor(0.9, 0.9) == 1
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(EnergyError) as caught:
            logic_energy_factor(1.0, bad)
        assert str(caught.value) == f"a supply voltage must be positive, not {bad:g} V"


def test_the_curves_pass_through_their_points():
    for voltage, energy, rate in SRAM_CURVE:
        assert sram_energy_factor(voltage) == pytest.approx(energy, rel=1e-12)
        assert bit_error_rate(voltage) == pytest.approx(rate, rel=1e-9)
    assert sram_energy_factor(1) == 1
    assert bit_error_rate(1) == 0


def test_the_abstracts_figures():
    # 20 % and 30 % of the energy saved at bit error rates of about 0.05 % and 1 %
    assert 1 - sram_energy_factor(0.906) == pytest.approx(0.21, abs=0.011)
    assert bit_error_rate(0.906) == pytest.approx(4.5e-4)
    assert 1 - sram_energy_factor(0.848) == pytest.approx(0.30, abs=0.011)
    assert bit_error_rate(0.848) == pytest.approx(0.0115)


def test_between_the_points():
    assert sram_energy_factor((0.757 + 0.804) / 2) == pytest.approx((0.56 + 0.63) / 2)
    assert bit_error_rate((0.757 + 0.804) / 2) == pytest.approx(math.sqrt(0.20 * 0.056))
    assert bit_error_rate((0.969 + 1) / 2) == pytest.approx(1e-6)


@given(supplies)
def test_energy_is_near_the_square_of_the_supply(voltage):
    assert sram_energy_factor(voltage) == pytest.approx((voltage / 1.0065) ** 2, abs=0.025)


@given(supplies, supplies)
def test_less_supply_costs_less_and_errs_more(one, other):
    low, high = sorted((one, other))
    assert sram_energy_factor(low) <= sram_energy_factor(high)
    assert bit_error_rate(low) >= bit_error_rate(high) >= 0


@pytest.mark.parametrize("voltage", [0.75, 1.01, 0.0, -1.0, math.nan])
def test_outside_the_curve(voltage):
    for curve in (sram_energy_factor, bit_error_rate):
        with pytest.raises(EnergyError) as caught:
            curve(voltage)
        assert str(caught.value) == (
            f"an SRAM's supply must be 0.757 to 1 of its minimum voltage, not {voltage:g}"
        )
