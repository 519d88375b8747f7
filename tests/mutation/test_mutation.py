"""The instrument that counts which faults are caught: its faults, its sample, its campaigns."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation.campaign import Run, campaign, campaign_in_batches, known, sample
from tests.mutation.operators import Mutant, mutants
from tests.mutation.sources import ROOT, module_of
from tests.mutation.trial import Outcome

EXAMPLES = [
    ("constant", "x = 3", {"x = 4", "x = 2"}),
    ("boolean", "x = True", {"x = False"}),
    ("boolean", "x = a and b", {"x = a or b"}),
    ("comparison", "x = (a) < b", {"x = (a) <= b"}),
    ("arithmetic", "x = a + (b)", {"x = a - (b)"}),
    ("arithmetic", "x += a", {"x -= a"}),
    ("arms exchanged", "x = Mux(s, a, b)", {"x = Mux(s, b, a)"}),
    ("arms exchanged", "x = a if s else b", {"x = (b if s else a)"}),
    ("condition negated", "with m.If(s): pass", {"with m.If(((s) == 0)): pass"}),
    ("condition dropped", "with m.If(s): pass", {"with m.If(1): pass"}),
    ("narrower", "x = Signal(n)", {"x = Signal(max(1, (n) - 1))"}),
    ("unsigned", "x = signed(n)", {'x = __import__("amaranth").unsigned(n)'}),
    ("init", "x = Signal()", {"x = Signal(init=1)"}),
    ("reset_less", "x = Signal(n)", {"x = Signal(n, reset_less=True)"}),
    ("register dropped", "m.d.sync += x.eq(y)", {"m.d.comb += x.eq(y)"}),
    ("assignment dropped", "m.d.comb += [x.eq(y)]", {"m.d.comb += [*()]"}),
    ("size", "Queue(depth=n)", {"Queue(depth=(n) + 1)", "Queue(depth=(n) - 1)"}),
    ("slice", "x = a[:n]", {"x = a[:(n) - 1]"}),
    ("unary dropped", "x = ~a", {"x = (a)"}),
    ("max and min", "x = max(a, b)", {"x = min(a, b)"}),
]


@pytest.mark.parametrize(("operator", "before", "after"), EXAMPLES)
def test_faults_of_every_kind(operator: str, before: str, after: set[str]) -> None:
    found = mutants("m", before, frozenset({1}))
    assert {one.apply(before) for one in found if one.operator == operator} == after


def test_what_only_tells_is_left_alone() -> None:
    text = 'require(a < 3, f"{a + 1}")\nraise ValueError(1)\nx = Signal(name="a")\n'
    kinds = {one.operator for one in mutants("m", text, frozenset({1, 2, 3}))}
    assert kinds == {"init", "reset_less"}


def test_every_fault_of_the_tree_is_python_on_one_place() -> None:
    rng = random.Random(5)
    files = sorted((ROOT / "rtl" / "core").glob("*.py"))
    for path in rng.sample(files, 8):
        text = path.read_text(encoding="utf-8")
        sound = ast.dump(ast.parse(text))
        every = frozenset(range(1, text.count("\n") + 2))
        made = mutants(module_of(str(path)), text, every)
        for one in rng.sample(made, min(8, len(made))):
            assert ast.dump(ast.parse(one.apply(text))) != sound, one
            with pytest.raises(ValueError, match="no longer says"):
                one.apply("\n" + text)


def numbered(count: int) -> list[Mutant]:
    lines = "".join(f"x = {number}\n" for number in range(1, count + 1))
    return mutants("m", lines, frozenset(range(1, count + 1)))


def test_a_sample_takes_each_line_before_any_twice() -> None:
    made = numbered(8)
    order = sample(made, 3)
    assert order == sample(made, 3) != sample(made, 4)
    assert sorted(order) == sorted(made)
    assert len({one.line for one in order[:8]}) == 8


def test_an_order_stays_where_lines_are_put_in() -> None:
    before, more = (
        numbered(8),
        [*numbered(8)[:6], *(replace(one, module="n") for one in numbered(3))],
    )
    there = set(before) & set(more)
    assert [one for one in sample(before, 3) if one in there] == [
        one for one in sample(more, 3) if one in there
    ]


def run(mutant: Mutant) -> tuple[Outcome, str]:
    while mutant.line == 1:
        pass
    return ("stillborn", "") if mutant.line == 2 else ("caught", f"line {mutant.line}")


def test_a_campaign_ends_in_time_and_goes_on_where_it_was(tmp_path: Path) -> None:
    file, made = tmp_path / "known.jsonl", numbered(9)[::2]

    def tried(count: int, how: Run) -> dict[Mutant, str]:
        found = campaign(made, how, file, wanted=count, processes=2, seconds=0.5)
        return {one.mutant: one.outcome for one in found}

    first = tried(3, run)
    assert set(first.values()) >= {"hung", "caught"}
    with file.open("a") as kept:
        kept.write("half a li")
    assert {one: found.outcome for one, found in known(file).items()} == first

    def other(mutant: Mutant) -> tuple[Outcome, str]:
        return ("same", "tried again") if mutant in first else ("survived", "")

    assert set(tried(100, other)) == set(made)
    whole = {one: found.outcome for one, found in known(file).items()}
    assert {one: whole[one] for one in first} == first
    assert {whole[one] for one in whole.keys() - first.keys()} == {"survived"}


def test_of_a_batch_that_is_cut_off_what_is_known_first_is_no_sample(tmp_path: Path) -> None:
    """Faults that are caught are known before those that are not."""
    file, order = tmp_path / "known.jsonl", numbered(9)

    def cut_off(batch: list[Mutant]) -> Iterator[tuple[Mutant, Outcome, str, float]]:
        for mutant in [one for one in batch if one != order[3]]:
            yield mutant, "caught", "", 1.0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(campaign_in_batches(order, cut_off, file, wanted=8, seed=5))
    drawn = [one for one, found in known(file).items() if 5 in found.samples]
    assert sorted(drawn) == order[:3] and len(known(file)) == 7

    def whole(batch: list[Mutant]) -> Iterator[tuple[Mutant, Outcome, str, float]]:
        for mutant in batch:
            yield mutant, "survived", "", 1.0

    list(campaign_in_batches(order, whole, file, wanted=8, seed=5))
    found = known(file)
    assert [one for one in order if one in found and 5 in found[one].samples] == order[:12]
    assert found[order[3]].outcome == "survived" and found[order[4]].outcome == "caught"
