"""Choices by strobes as components: blocks of the measured sizes, and gates counted one by one."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.blocks import Components, selectors
from archsim.machines.scnn import one_hot_components
from archsim.machines.scnn.one_hot_components import gates, one_hot, strobes
from energy_models.component import Component
from energy_models.measured import load_coefficients

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


def total(components: Components, size: Callable[[Component], float]) -> float:
    """Over all pieces of all components."""
    return sum(one.count * size(one) for one in components)


def passed(components: Components) -> float:
    """How many two-way multiplexers of one bit select with an action."""
    muxes = [one for one in components if one.kind == "mux"]
    return sum(one.attributes["bits"] * one.actions["select"]["go"] for one in muxes)


def check_strobes(ways: int, count: int) -> None:
    made = strobes("x", ways, count, {"go": 2.0})
    gates, depth = ored([0] * ways)
    bits = total(made, lambda one: one.attributes["bits"])
    assert 0 <= 3 * bits - count * (ways + gates) < 3
    assert 3 * passed(made) == pytest.approx(2 * (1 + depth))


@given(ways=whole(1, 300), count=whole(1, 9))
def test_every_strobe_has_an_and_and_all_are_ored(ways: int, count: int) -> None:
    check_strobes(ways, count)


def check_choices(ways: int, bits: int, count: int) -> None:
    made = one_hot("x", (bits, ways), count, {"go": 2.0})
    blocks = [one for one in made if one.kind == "one_hot"]
    joints = tuple(one for one in made if one.kind == "mux")
    sizes = [one.attributes for one in blocks]
    known = {point.key for point in load_coefficients("osu018").points["one_hot"]}
    for axis, name in enumerate(("bits", "ways")):
        assert all(size[name] <= max(key[axis] for key in known) for size in sizes)
    masked = total(tuple(blocks), lambda one: one.attributes["bits"] * one.attributes["ways"])
    assert masked == count * bits * ways
    chosen = sum(one.actions["choose"]["go"] * one.attributes["bits"] for one in blocks)
    assert chosen == pytest.approx(2 * bits)  # a word passes one block, whatever its way
    columns = total(tuple(blocks), lambda one: one.attributes["bits"])
    words, left = divmod(int(columns), count * bits)
    assert left == 0
    ors, depth = ored([0] * words)
    assert 0 <= 3 * total(joints, lambda one: one.attributes["bits"]) - count * bits * ors < 3
    assert 3 * passed(joints) == pytest.approx(2 * bits * depth)


@given(ways=whole(2, 300), bits=whole(1, 300), count=whole(1, 9))
def test_choices_are_blocks_that_were_measured(ways: int, bits: int, count: int) -> None:
    check_choices(ways, bits, count)


def test_one_way_is_masked() -> None:
    made = one_hot("x", (7, 1), 3, {"go": 1.0})
    assert made == gates("x", 21, {"go": 7.0})


def test_three_gates_are_a_multiplexer() -> None:
    assert gates("x", 3 * 8, {"go": 3.0}) == selectors("x", 1, 8, {"go": 1.0})


@pytest.mark.parametrize("size", [2, 4])
def test_a_wrong_gate_is_caught(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_hot_components, "SELECTOR_GATES", size)
    with pytest.raises(AssertionError):
        check_strobes(16, 4)


def test_a_block_beyond_those_measured_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_hot_components, "MOST_WAYS", 64)
    with pytest.raises(AssertionError):
        check_choices(40, 8, 1)
