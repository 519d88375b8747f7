"""A memory's price over words and width: it never falls, and never more than doubles at a step."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from energy_models import pricing
from energy_models.component import Component
from energy_models.errors import EnergyError
from energy_models.technology import Technology, load_technology, technologies

TECHNOLOGIES = sorted(technologies())
PORTS = ((1, 1), (0, 0))
WHATS = ("read", "write", "area", "leakage")
BITS = (1, 3, 8, 17, 80, 128, 129, 512, 2048)
"""Widths at which words are walked."""

DEPTHS = (1, 5, 31, 32, 64, 1000, 65536)
"""Words at which widths are walked."""

SLACK = 1e-9


def around(*boundaries: int, most: int) -> list[int]:
    """1 to 80, powers of two and these, each with both neighbours."""
    powers = [1 << n for n in range(most.bit_length())]
    near = {at + step for at in (*boundaries, *powers) for step in (-1, 0, 1)}
    return sorted(at for at in {*range(1, 81), *near} if 1 <= at <= most)


WORDS = around(96, 192, 384, 1536, most=65536)
WIDTHS = around(96, 128, 256, 384, 512, 640, 1024, 1152, 1920, most=2048)


@cache
def technology(name: str) -> Technology:
    return load_technology(name)


def price(name: str, what: str, bits: int, depth: int, ports: tuple[int, int]) -> float | None:
    """None where the technology says nothing; raises where the memory is larger than it knows."""
    sizes = {"word_bits": bits, "depth": depth, "read_ports": ports[0], "write_ports": ports[1]}
    memory = Component(name="m", kind="sram", attributes=sizes)
    given = technology(name)
    if what == "area":
        found = given.area_um2(memory)
    elif what == "leakage":
        found = given.leakage_mw(memory)
    else:
        found = given.energy(memory, what)
    return None if found is None else found.value


def walk(
    name: str, what: str, shapes: list[tuple[int, int]], ports: tuple[int, int]
) -> list[float]:
    """The prices up to the first memory that is too large; none where there is no source."""
    found: list[float] = []
    for bits, depth in shapes:
        try:
            value = price(name, what, bits, depth, ports)
        except EnergyError as error:
            assert found, f"{bits} × {depth} is refused: {error}"
            break
        if value is None:
            return []
        found.append(value)
    return found


def check(found: list[float], sizes: list[int]) -> None:
    """Never falls; from a size to the next, never more than doubles."""
    for (before, after), (low, high) in zip(pairwise(found), pairwise(sizes), strict=False):
        assert after >= before * (1 - SLACK), f"{low} → {high}: {before} → {after}"
        if high == low + 1:
            assert after <= 2 * before * (1 + SLACK), f"{low} → {high}: {before} → {after}"


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("name", TECHNOLOGIES)
def test_prices_rise_without_a_cliff(name: str, what: str) -> None:
    for ports in PORTS:
        for bits in BITS:
            check(walk(name, what, [(bits, depth) for depth in WORDS], ports), WORDS)
        for depth in DEPTHS:
            check(walk(name, what, [(bits, depth) for bits in WIDTHS], ports), WIDTHS)


@pytest.mark.parametrize("what", ("read", "write", "area"))
def test_few_words_are_registers_and_many_a_macro(what: str) -> None:
    """Both are asked: a price of CACTI's alone would be flat below 32 words."""
    few, more = (price("45nm", what, 64, depth, (1, 1)) for depth in (2, 3))
    assert few is not None and more is not None and few < more
    at_most = [price("45nm", what, 64, depth, (1, 1)) for depth in (31, 32)]
    assert at_most[0] == at_most[1]  # both CACTI's 32 words


def test_an_account_says_which(technology_name: str = "45nm") -> None:
    sizes = {"word_bits": 64, "depth": 2, "read_ports": 1, "write_ports": 1}
    given = technology(technology_name)
    small = given.area_um2(Component(name="m", kind="sram", attributes=sizes))
    large = given.area_um2(Component(name="m", kind="sram", attributes=sizes | {"depth": 16}))
    assert small is not None and small.how == "2 words of 64 bits as registers"
    assert "synthesis" in small.source
    assert large is not None and "CACTI" in large.source
    assert large.how.startswith("as of 32 words, the fewest that CACTI was asked for")


def test_prices_of_registers_are_those_of_their_parts() -> None:
    """3 words of 5 bits: 4 registers and 5 choices a bit; 2 choices turn to read, 3 to write."""
    given = technology("130nm")
    bit = Component(name="m", kind="register", attributes={"bits": 1})
    choice = Component(name="m", kind="mux", attributes={"bits": 1, "ways": 2})
    areas = [given.area_um2(one) for one in (bit, choice)]
    written, turned = given.energy(bit, "write"), given.energy(choice, "select")
    assert areas[0] and areas[1] and written and turned
    assert price("130nm", "area", 5, 3, (1, 1)) == pytest.approx(
        5 * (4 * areas[0].value + 5 * areas[1].value)
    )
    assert price("130nm", "read", 5, 3, (1, 1)) == pytest.approx(
        5 * (written.value + 2 * turned.value)
    )
    assert price("130nm", "write", 5, 3, (1, 1)) == pytest.approx(
        5 * (written.value + 3 * turned.value)
    )


def test_a_book_that_is_kept_prices_as_a_list_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alike memories of other supplies apart; also when it forgets, as it does of very many."""
    technology = load_technology("45nm")
    book = pricing.PriceBook(technology)
    monkeypatch.setattr(pricing, "MOST_REMEMBERED", 2)
    sizes = {"word_bits": 64, "depth": 256, "read_ports": 1, "write_ports": 1}
    reads = {"read": {"ifmap_read": 2.0}}
    for supply in (None, 0.9, 0.8, 1.0, 0.9):
        memory = Component(
            name="m", kind="sram", attributes=sizes, actions=reads, relative_voltage=supply
        )
        dram = Component(name="d", kind="dram", actions={"read": {"ifmap_read": 8.0}})
        listed, totals = pricing.price(technology, [memory, dram]), book.totals([memory, dram])
        assert totals.dynamic["ifmap_read"] == pytest.approx(listed.dynamic.sum(), rel=1e-12)
        assert totals.area_um2 == pytest.approx(listed.area_um2.sum(), rel=1e-12)
        assert totals.leakage_mw == pytest.approx(listed.leakage_mw.sum(), rel=1e-12)
    assert book.totals([dram]).area_um2 is None
