"""Choices by strobes as components: gates counted one by one, and what a word passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.designs.core_components import Components
from archsim.designs.one_hot_components import WAYS, one_hot, or_pairs
from energy_models.technology import load_technology

whole = st.integers


def ored(words: list[int]) -> tuple[int, int]:
    """OR gates of a tree over words that lie so many gates deep, and the depth of its root."""
    gates = 0
    while len(words) > 1:
        gates += len(words) // 2
        words = [max(words[at : at + 2]) + (at + 1 < len(words)) for at in range(0, len(words), 2)]
    return gates, words[0]


def ways_of(components: Components) -> int:
    """AND gates a bit: those of multiplexers of up to four ways."""
    return sum(one.count * one.attributes["ways"] for one in components)


@given(ways=whole(1, 300), bits=whole(1, 128), count=whole(1, 9))
def test_every_way_has_a_gate_and_words_are_ored(ways: int, bits: int, count: int) -> None:
    alone = ways % WAYS == 1
    words = -(-ways // WAYS)
    found = one_hot("x", (bits, ways), count, {"go": 1.0})
    pairs, passed = or_pairs(words, alone=alone)
    choices = tuple(one for one in found if one.attributes["ways"] > 2 or ways % WAYS == 2)
    gates, depth = ored([0] * words)
    assert pairs == (gates + alone + 1) // 2
    assert passed == (depth + alone + 1) // 2
    assert all(one.attributes["bits"] == bits for one in found)
    extra = 2 * count * pairs if ways % WAYS == 2 else 0
    assert ways_of(choices) == count * (ways - alone) + extra
    assert sum(one.count for one in found) == count * (words - alone + pairs)


@given(ways=whole(1, 40), bits=whole(1, 40))
def test_a_word_passes_one_choice_and_the_ors(ways: int, bits: int) -> None:
    found = one_hot("x", (bits, ways), 3, {"go": 2.0})
    _, passed = or_pairs(-(-ways // WAYS), alone=ways % WAYS == 1)
    events = sum(one.actions["select"]["go"] for one in found)
    share = 1 - (ways % WAYS == 1) / ways
    assert events == pytest.approx(2 * (share + passed))


@pytest.mark.parametrize("technology", ["180nm", "130nm"])
def test_more_ways_are_more_area(technology: str) -> None:
    prices = load_technology(technology)

    def area(ways: int) -> float:
        found = [prices.area_um2(one) for one in one_hot("x", (24, ways), 1, {"go": 1.0})]
        return sum(
            one.count * figure.value
            for one, figure in zip(one_hot("x", (24, ways), 1, {"go": 1.0}), found, strict=True)
            if figure is not None
        )

    areas = [area(ways) for ways in (1, 2, 4, 8, 16, 32)]
    assert areas == sorted(areas) and areas[0] > 0
