"""Every bin of every kind is hit by some case and not by another, and steering finds them."""

from functools import cache

import pytest

from archsim.machine.registry import load_design, with_settings
from rtl.cases import drawn_case, steered_cases
from rtl.conformance import check
from rtl.coverage.bins import Bin, Coverage, Seen
from rtl.registry import verification_of
from rtl.simulators import runner

SMALL = {
    "systolic": ("edge-16", "rows=2", "columns=2"),
    "tensorcore": ("volta", "octets=1"),
    "vsq": ("vsq-16", "lanes=2", "vector=4"),
    "scnn": ("scnn", "grid_rows=2", "grid_columns=2", "weight_lanes=2", "ifmap_lanes=2", "banks=8"),
}
CASES = 60
MOSTLY_HIT = 0.97
every_kind = pytest.mark.parametrize("kind", SMALL)


@cache
def _design(kind: str):
    name, *settings = SMALL[kind]
    return with_settings(load_design(name), settings)


@cache
def _seen(kind: str) -> tuple[Seen, ...]:
    """What was seen of the first cases, inside the RTL too."""
    design = _design(kind)
    run = runner(design, "verilator")
    found = []
    for one in steered_cases(0, CASES, design):
        verdict = check(one.case, run, one.expected)
        assert verdict.equal, verdict.record()
        found.append(Seen(case=one.case, expected=one.expected, inside=verdict.seen))
    return tuple(found)


@every_kind
def test_some_case_is_in_a_bin_and_some_is_not(kind: str) -> None:
    design, seen = _design(kind), _seen(kind)
    bins = tuple(verification_of(design).bins(design))
    hits = {one.name: sum(one.hit(each) for each in seen) for one in bins}
    always = [name for name, hit in hits.items() if hit == len(seen)]
    assert not always, "bins that every case is in say nothing"
    coverage = Coverage(bins)
    for each in seen:
        coverage.add(each)
    assert coverage.hits == hits
    record = coverage.record()
    assert record["hit"] >= MOSTLY_HIT * record["bins"], coverage.line()


@every_kind
def test_an_aim_leads_to_its_bins(kind: str) -> None:
    """Of the bins that name an aim, each is hit by some of a few cases drawn for it."""
    design = _design(kind)
    brings = verification_of(design)
    asked = [one for one in brings.bins(design) if one.aim]
    assert {one.aim for one in asked} <= set(brings.aims(design))
    for aim in sorted({one.aim for one in asked}):
        cases = [drawn_case(5, number, design, aim) for number in range(6)]
        seen = [Seen(case=case, expected=case.answer()) for case in cases]
        missed = [one.name for one in asked if one.aim == aim and not any(map(one.hit, seen))]
        assert not missed, (aim, missed)


@every_kind
def test_the_same_numbers_draw_the_same_cases(kind: str) -> None:
    design = _design(kind)
    first, again = (list(steered_cases(3, 8, design)) for _ in range(2))
    assert [one.aim for one in first] == [one.aim for one in again]
    assert not any(one.aim for one in first[::2]), "every other case is plainly random"
    assert any(one.aim for one in first[1::2])
    for one in first:
        repeated = drawn_case(3, one.number, design, one.aim)
        assert repeated.details() == one.case.details()
        for port, words in one.expected.transfers.items():
            assert (repeated.answer().transfers[port].cycle == words.cycle).all()


def test_steering_hits_more_than_chance() -> None:
    design = _design("systolic")
    bins = [one for one in verification_of(design).bins(design) if not one.inside]

    def hit(aims: bool) -> int:
        coverage = Coverage(bins)
        for one in steered_cases(0, 20, design, most_cycles=None if aims else 0):
            coverage.add(Seen(case=one.case, expected=one.expected))
        return coverage.record()["hit"]

    assert hit(aims=True) > hit(aims=False) + 20


def test_bins_have_names_of_their_own() -> None:
    one = Bin(name="one", why="", hit=lambda seen: True)
    with pytest.raises(ValueError, match="names of their own"):
        Coverage([one, one])


@pytest.mark.parametrize("kind", ["systolic", "scnn"])
def test_ten_layers_without_a_reset_are_in_every_run(kind: str) -> None:
    assert any(seen.case.layers_in_row >= 10 for seen in _seen(kind)[:20])


def test_what_is_missing_is_named() -> None:
    coverage = Coverage([Bin(name="one", why="because", hit=lambda seen: False, aim="an aim")])
    assert coverage.line() == "coverage: 0 of 1 bins; missing: one"
    assert coverage.explained() == {
        "bins": 1,
        "hit": 0,
        "missing": ["one"],
        "cases": {"one": 0},
        "why": {"one": "because"},
        "aims": {"one": "an aim"},
    }
