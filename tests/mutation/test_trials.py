"""What a trial is made of: the Verilog of a fault, proofs that it does nothing, what is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from archsim.machines.systolic.design import Systolic
from rtl.conformance import judge
from tests.mutation.batch import Batches, Emitter
from tests.mutation.campaign import Found, campaign_in_batches, follow_edits, keep, known, sample
from tests.mutation.emission import Emission, Faulty
from tests.mutation.equality import shown_equal
from tests.mutation.equivalent import equivalents, of_not_one_fault
from tests.mutation.live import put_in_live
from tests.mutation.operators import Mutant, mutants
from tests.mutation.page import PAGE, found_in, page, sorted_out
from tests.mutation.pool import Pool
from tests.mutation.reached import reached
from tests.mutation.reached import table as reached_table
from tests.mutation.sources import (
    ROOT,
    column_of,
    line_of,
    module_of,
    mutants_of,
    mutated_side,
    source_of,
    within,
)
from tests.mutation.subjects import FOUND, REACHED, SUBJECTS, UNITS, units_of
from tests.mutation.trial import Outcome, RtlTrials, put_in
from tests.mutation.unit_tests import files_of


class Sum(wiring.Component):
    """r ← a + b, o = r + c with a counter c, written down in different ways."""

    def __init__(self, way: str) -> None:
        self.way = way
        super().__init__({"a": In(4), "b": In(4), "o": Out(5)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a: Any = self.a  # pyright: ignore[reportAttributeAccessIssue]
        b: Any = self.b  # pyright: ignore[reportAttributeAccessIssue]
        held = Signal(5, init=self.way == "other init")
        count = Signal(4, reset_less=self.way == "kept over a reset")
        ways = {"carries": (a ^ b) + ((a & b) << 1), "or": a | b}
        m.d.sync += [held.eq(ways.get(self.way, a + b)), count.eq(count + 1)]
        m.d.comb += self.o.eq(held + count)  # pyright: ignore[reportAttributeAccessIssue]
        return m


@pytest.mark.parametrize(
    ("way", "equal"),
    [("", True), ("carries", True), ("or", False), ("other init", False),
     ("kept over a reset", False)],
)  # fmt: skip
def test_the_solver_shows_what_is_equal_and_nothing_else(way: str, equal: bool) -> None:
    before, after = (
        {"sum": rtlil.convert(Sum(one), name="sum", emit_src=False)} for one in ("", way)
    )
    assert shown_equal("sum", before, after) is equal


def emitted_both_ways(sound: Emission, given: tuple[Mutant, bool]) -> tuple[bool, bool]:
    mutant, living = given
    if living:
        assert put_in_live(mutant)
    else:
        put_in(mutant, ("rtl",))
    faulty = sound.with_fault(mutant)
    whole = Emission(sound.design, traced=False)
    return faulty is not None, faulty is not None and sound.texts | faulty.changed == whole.texts


def test_a_faulty_module_is_made_as_the_whole_design_would() -> None:
    """Of a module that is placed in others, by living functions; and of the core itself."""
    sound = Emission(Systolic(rows=1, columns=1))
    made = mutants_of(sound.lines)
    chosen = [
        (next(one for one in made if (one.module, one.operator) == wanted), living)
        for wanted, living in ((("rtl.core.loader", "assignment dropped"), True),
                               (("rtl.core.machine", "arithmetic"), False))
    ]  # fmt: skip
    pool = Pool(partial(emitted_both_ways, sound), 1, 600)
    assert [answer for _, answer, _ in pool.each(chosen)] == [(True, True)] * 2


def changes_of(sound: Emission, mutant: Mutant) -> bool:
    put_in(mutant, ("rtl",))
    return sound.with_fault(mutant) is not None


def test_new_modules_of_a_kind_have_a_name_each() -> None:
    """Scratchpads of two sizes that are placed with another parameter, which says the same."""
    sound = Emission(Systolic(rows=1, columns=2))
    [fault] = [one for one in mutants_of({"rtl.memories.plain": sound.lines["rtl.memories.plain"]})
               if "bank is Sram" in one.before and one.operator == "arms exchanged"]  # fmt: skip
    assert len([name for name in sound.texts if name.startswith("plain_scratchpad")]) == 2
    [(_, changes, _)] = Pool(partial(changes_of, sound), 1, 600).each([fault])
    assert changes is False


def test_files_with_the_tests_of_a_unit() -> None:
    files = files_of("rtl.memories.protected", "sparsetrain")
    assert files[-1] == "tests/rtl/test_sparsetrain.py"
    assert "tests/rtl/test_protected_memories.py" in files
    assert "tests/rtl/test_boveda_rtl.py" in files_of("rtl.core.boveda_shift", "scnn")
    assert "tests/rtl/test_window.py" in files_of("rtl.core.window", "scnn")


def module_behind(mutant: Mutant) -> str:
    put_in(mutant, ("rtl",))
    return import_module(f"{mutant.module}.codec").__name__


def test_a_package_with_a_fault_keeps_its_modules() -> None:
    package = "rtl.memories.protected"
    text = source_of(package).read_text(encoding="utf-8")
    fault = mutants(package, text, frozenset(range(1, text.count("\n") + 2)))[0]
    [(_, name, _)] = Pool(module_behind, 1, 600).each([fault])
    assert name == f"{package}.codec"


def test_every_equivalent_is_one_fault_that_the_sources_still_have() -> None:
    modules = {one.module for one in equivalents()}
    made: list[Mutant] = []
    for module in modules:
        text = source_of(module).read_text(encoding="utf-8")
        made += mutants(module, text, frozenset(range(1, text.count("\n") + 2)))
    assert of_not_one_fault(made) == []
    assert all(len(one.reason.split()) >= 5 for one in equivalents())


def found_of(mutant: Mutant, outcome: Outcome) -> Found:
    text, column = line_of(mutant), column_of(mutant)
    return Found(
        mutant=mutant, outcome=outcome, seen="", seconds=1, text=text, column=column, samples=(1,)
    )


def test_of_a_fault_the_last_word_counts_and_lines_are_followed(tmp_path: Path) -> None:
    module = "rtl.core.credits"
    text = source_of(module).read_text(encoding="utf-8")
    made = mutants(module, text, frozenset(range(1, 99)))
    file = tmp_path / "known.jsonl"
    outcomes: tuple[Outcome, ...] = ("survived", "caught")
    for outcome in outcomes:
        for mutant in made:
            keep(file, found_of(mutant, outcome))
    first = made[0]
    assert set(known(file)) == set(made)
    assert known(file)[first].outcome == "caught"
    assert line_of(first)[column_of(first) :].startswith(first.before.splitlines()[0])
    follow_edits(file, made)
    assert list(known(file)) == made
    stale = tmp_path / "stale.jsonl"
    for mutant in made:  # as if two lines had been put in at the top of the file, elsewhere
        moved = replace(mutant, module="rtl.other.credits", line=mutant.line - 2,
                        begin=mutant.begin - 9, end=mutant.end - 9)  # fmt: skip
        keep(stale, replace(found_of(mutant, "caught"), mutant=moved))
    gone = replace(found_of(first, "caught"), text="is not there", mutant=replace(first, begin=0))
    keep(stale, gone)
    follow_edits(stale, made)
    assert list(known(stale)) == made


def test_the_page_says_what_is_known() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(found_in(FOUND), reached_table(FOUND / REACHED))


def test_how_far_cases_reach_is_what_verify_says() -> None:
    """Of bins that need no run; none of them is counted twice, or forgotten."""
    design = Systolic(rows=2, columns=2)
    few, more = reached(design, 2), reached(design, 6)
    assert 0 < few["hit"] < more["hit"] <= more["bins"] == few["bins"]
    assert len(set(more["missing"])) == more["bins"] - more["hit"]
    assert set(more["missing"]) < set(few["missing"])


def test_what_is_out_of_reach_counts_as_not_caught() -> None:
    entry = next(one for one in equivalents() if one.reach)
    text = source_of(entry.module).read_text(encoding="utf-8")
    made = mutants(entry.module, text, frozenset(range(1, text.count("\n") + 2)))
    far = next(one for one in made if entry.is_of(one, line_of(one), column_of(one)))
    tried = [found_of(far, "survived"), found_of(made[0], "caught")]
    said = page({"rtl": {"systolic": tried}})
    assert "| systolic | 2 | 1 (50 %) |" in said and "| 1, 1 |" in said
    assert entry.reason in said


def test_units_of_a_kind_are_modules_that_are_there() -> None:
    """Each pattern finds one, on a side that faults are put into."""
    files = [path for room in ("rtl", "archsim") for path in (ROOT / room).rglob("*.py")]
    modules = [name for name in map(module_of, map(str, files))
               if mutated_side(name, "rtl") or mutated_side(name, "model")]  # fmt: skip
    assert UNITS.keys() < SUBJECTS.keys() and units_of("systolic") == ("*",)
    for pattern in {one for units in UNITS.values() for one in units}:
        assert any(within(name, (pattern,)) for name in modules), pattern


@pytest.mark.slow
@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_fresh_sample_of_faults_is_caught(kind: str, tmp_path: Path) -> None:
    """Of 20 faults that were not chosen with an eye on the cases."""
    trials = RtlTrials(SUBJECTS[kind], units_of(kind))
    order = sample(trials.mutants(), seed=7)
    file = tmp_path / "known.jsonl"
    batches = Batches(trials, processes=1, seconds=600)
    list(campaign_in_batches(order, batches.run, file, wanted=20))
    parts = sorted_out(list(known(file).values()))
    missed = [*parts.get("survived", []), *parts.get("hung", [])]
    assert len(parts["caught"]) >= 0.7 * (len(parts["caught"]) + len(missed)), missed


def test_subjects_without_a_fault_are_equal_and_others_are_told() -> None:
    """With simulators built as trials build them."""
    trials = RtlTrials(SUBJECTS["systolic"][2:3])
    trials.require_sound()
    trials.judge = lambda case, expected, outcome: replace(
        judge(case, expected, outcome), failure="it"
    )
    with pytest.raises(AssertionError, match=r"^without any fault: design 1, case "):
        trials.require_sound()


@pytest.mark.slow
def test_in_one_simulator_faults_do_what_they_do_alone() -> None:
    trials = RtlTrials(SUBJECTS["systolic"][2:3])
    [one] = trials.prepared
    batches = Batches(trials, processes=1, seconds=600)
    emitted = Pool(Emitter(one), 1, 600).each(sample(trials.mutants(), seed=5)[:30])
    faulty = {mutant: answer for mutant, answer, _ in emitted if isinstance(answer, Faulty)}
    together = {
        mutant: found
        for fast in (False, True)
        for mutant, *found, _ in batches.judged(one, faulty, fast=fast)
    }
    alone = Pool(lambda mutant: trials.judged(one, faulty[mutant]), 1, 600)
    apart = {mutant: list(found) for mutant, found, _ in alone.each(faulty) if found}
    assert together == apart
    assert len(together) > len(faulty) // 2
