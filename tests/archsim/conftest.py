"""Results that several tests read: small networks, and what they would cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from boveda_profiles import PROFILED
from real_browser import CHROMIUM, FLAGS

from archsim.energy import action_counts
from archsim.energy_account import EnergyAccount
from archsim.result import NetworkResult
from energy_models.component import Component
from energy_models.pricing import PriceList
from energy_models.technology import Technology

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Account = Callable[..., EnergyAccount]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of a process: playwright runs once in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def account_at() -> Account:
    """Energy of a result at prices made up for the test: `mac_pj` a MAC, a tenth of it a cycle.

    Other arguments are those of `Technology`.
    """

    def build(result: NetworkResult, mac_pj: float, **technology: Any) -> EnergyAccount:
        layers = [layer for layer in result.layers if layer.cycles]
        sizes = {"operand_bits": 8, "accumulator_bits": 32}
        components = (
            Component(name="array.mac", kind="mac", attributes=sizes, actions={"mac": {"mac": 1}}),
            Component(name="control", kind="control", attributes={"state_bits": 4}),
        )
        settings = {"name": "made-up", "title": "made up", "node_nm": 45.0, "voltage_v": 0.9}
        prices = PriceList(
            technology=Technology(**{**settings, "sources": {}, **technology}),
            components=components,
            counted=("mac", "cycle"),
            dynamic=np.array([[mac_pj, 0.0], [0.0, mac_pj / 10]]),
            area_um2=np.array([1000.0 * mac_pj, 50.0]),
            leakage_mw=np.array([0.0, 0.5]),
            prices=(),
        )
        return EnergyAccount(
            design_name=result.design_name,
            network=result.network,
            layers=tuple(layer.name for layer in layers),
            cycles=tuple(layer.cycles for layer in layers),
            macs=tuple(layer.macs for layer in layers),
            clock_hz=result.clock_hz,
            price_list=prices,
            dynamic=prices.energy([action_counts(layer) for layer in layers]),
            static=prices.static_pj([layer.cycles / result.clock_hz for layer in layers]),
        )

    return build


@pytest.fixture
def known_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fraction bits of `archsim paper boveda` without the search for them."""
    monkeypatch.setattr("archsim.papers.boveda_schemes.profile", lambda *asked: PROFILED[asked])
