"""Choices by strobes as components: gates counted one by one, and how many a word passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.designs import one_hot_components
from archsim.designs.core_components import Components, selectors
from archsim.designs.one_hot_components import one_hot

whole = st.integers


def ored(depths: list[int]) -> tuple[int, int]:
    """OR gates of a tree over words that lie so many gates deep, and how deep its root is."""
    gates = 0
    while len(depths) > 1:
        gates += len(depths) // 2
        depths = [
            max(depths[at : at + 2]) + (at + 1 < len(depths)) for at in range(0, len(depths), 2)
        ]
    return gates, depths[0]


def size_and_events(components: Components) -> tuple[int, float]:
    """Two-way multiplexers of one bit, and how many of them select with an action."""
    bits = [(one.attributes["bits"], one.actions["select"]["go"]) for one in components]
    return sum(one.count * size for one, (size, _) in zip(components, bits, strict=True)), sum(
        size * events for size, events in bits
    )


def check(ways: int, bits: int, count: int) -> None:
    made, passed = size_and_events(one_hot("x", (bits, ways), count, {"go": 2.0}))
    gates, depth = ored([0] * ways)
    assert 0 <= 3 * made - count * bits * (ways + gates) < 3
    assert 3 * passed == pytest.approx(2 * bits * (1 + depth))


@given(ways=whole(1, 300), bits=whole(1, 200), count=whole(1, 9))
def test_every_way_has_an_and_and_all_are_ored(ways: int, bits: int, count: int) -> None:
    check(ways, bits, count)


@given(bits=whole(1, 100))
def test_of_two_ways_it_is_a_multiplexer(bits: int) -> None:
    made, _ = size_and_events(one_hot("x", (bits, 2), 1, {"go": 1.0}))
    assert made == size_and_events(selectors("x", bits, 1, {"go": 1.0}))[0]


@pytest.mark.parametrize("size", [2, 4])
def test_a_wrong_gate_is_caught(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_hot_components, "SELECTOR_GATES", size)
    with pytest.raises(AssertionError):
        check(16, 29, 4)
