"""`docs/proof.md`: what share of faults is caught, by design and unit, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.mutation.campaign import AGAIN, Found, known
from tests.mutation.equivalent import reason_of
from tests.mutation.sources import ROOT
from tests.mutation.subjects import SUBJECTS

PAGE = ROOT / "docs" / "proof.md"
COUNTED = ("caught", "caught by tests", "survived", "hung", "out of reach")
HEAD = """\
# How strong the proof is

"Model and RTL are equal" is said by `archsim verify`. How much does it notice? Faults are put into
the sources mechanically, one at a time: a constant one more or less, an operator exchanged, the
arms of a `Mux` exchanged, a condition negated or dropped, a register one bit narrower, dropped or
kept over a reset, a queue one place deeper. The cases of `archsim verify DESIGN --cases 60` are
then run on each faulty design, in Verilog, as a user would run them.

Thirty faulty designs are one netlist, in which an input says which of them is there (ADR 34).
Faults in the model are judged by what it answers; where a case or an answer is another one, the RTL
runs. There they are put into functions, kernels too, on lines that the first 20 cases run through,
with the other ways to the same figures that `verify` takes: with a row for every tile and by loops,
with a limit on cycles and without, with a slow off-chip memory, by layers and by passes, many
designs at once and one by one; tiled cores stepped cycle by cycle, from the contract, and transfers
of the sparse core one by one as its contract orders them, both behind a slow off-chip memory
(`rtl/stepped`); strips and groups of filters tried from the fewest on; and what blocks of the
training machine do counted from its operands; outputs row by row and by the closed form of a port
that never waits; steps of commands, and blocks of groups, by what they are made of; sums of vectors
by loops, bounds on them by arrays, and operands quantised or encoded one by one
(`rtl/value_paths.py`); ports with a latency, and with as many idle cycles.

The same over random designs, not those of the proof alone, is a property of the fast tests
(`tests/rtl/test_paths_agree.py`): layers with values and without, `simulate` and `simulate_many`,
a network's figures and those of every word, chains of sparse layers and each of their layers alone,
and all that `verify` compares; closed forms and scans besides in `tests/archsim/test_cycles.py` and
`test_packing.py`.
That each comparison sees a fault is shown by `tests/rtl/test_more_paths.py` and `test_stepped.py`.

A trial in the model takes three to twenty seconds of processor time: a process is forked from one
that has imported everything, compiled all kernels, simulated the sound design and kept what every
case and answer is; only the code of one function is exchanged in it. Kernels with that function run
as Python, and no other one does; those of the mapper, which go through thousands of tilings, are
compiled with the fault. It ends at the first case that differs. Trials that run out of time are
tried by `archsim verify` itself, which ends where a case does not (`rtl/time_limit.py`).

In the model no faults are put into what chooses among legal tilings (`archsim/tiled/near*`,
`bound*`, `choice.py`, `archsim/machines/sparsetrain/cutting.py` and their like): model and RTL
compute any of them alike, so that no comparison could tell. The mapper has tests of its own
(`tests/archsim/test_near_mapper.py`, `test_exact_mapper.py`, `test_families.py`).

Kinds of design have designs in which each of their units is; some units that only settings bring
have designs of their own, "sparsetrain in BF16", "gather unit", "output registers" and "faulty
cells" (of compressed memories, and behind codes), and there faults are put into these units alone.
Faults in the model are tried on some designs more (`ALSO` in `tests/mutation/subjects.py`): with
sums and operands that fail, scratchpads in loaders, and banks that fill several words.

The sample is drawn line by line, from a fixed seed; a fault has its place in the order by what its
line says, so that edits elsewhere leave the others where they are. Lines that move to another file
take another place; faults that were in a sample before stay in it. Runs are made in batches, of
which the caught faults are known first: only those before the first that is not known are the
sample. A fault counts if hardware can be made with it and it changes what that hardware does: those
that leave every letter of the Verilog as it was, that the solver shows to be without effect (by
induction, from any state), or that have a reason in `tests/mutation/equivalent.toml`, are listed
apart. "Out of reach" are those that only layers too large for a case would show, of millions of
tiles or words: they do something, so they count, as not caught where no test of the unit has tiles
so large either (`tests/rtl/test_window.py`, `test_tile_walker.py` and `test_loader.py` have). "By
tests": the ones that `verify` lets through, but the fast tests of the unit or of its kind of design
do not; of those that survive, tests ran for at most some minutes. A fault with which nothing moves
any more counts as caught only if `verify` itself ends, in bounded time, with a difference.

Cases that survivors asked for are in `verify` now: resets behind results that wait, between biases
of a tile, and between words of a mask; halos two sums deep, windows that see two rows and columns
of the PE beside, and kernels of 16 and more in the sparse core. The designs that faults are put
into have memories of one word more than a power of two, which cases fill to the last word, those of
biases and compressed ones excepted; and sums so narrow that they wrap.
Processor time of `verify --cases 60`, seconds, medians of three in turns, without the cases between
biases and the wider windows and with them: `edge-16` with 4 × 3 PEs 3.0 and 2.9, `volta` with one
octet of 4 rows 4.1 and 4.4, `vsq-16` of 2 lanes of 4 3.6 and 3.9, `scnn` with 2 × 2 PEs 7.0 and
7.2, `sparsetrain` with 2 PEs of 4 lanes, where nothing is new, 9.8 and 10.0.  Without the
comparisons of outputs, commands, values and latencies and with them, in the same way later, on a
busier machine: 3.2 and 3.2, 4.5 and 4.4, 3.9 and 3.9, `scnn` with 2 × 2 PEs of 2 × 2 lanes 5.2 and
5.4, `sparsetrain` 11.7 and 11.7.

A sample says little of all faults while it is small: "so of all at least" is the lower bound of
Wilson's interval, one-sided, of 95 %. Aimed at are 300 faults a kind. Faults that were caught are
not tried again when cases change; those that were not are. A survivor that a new case then catches
counts as caught, so that a sample speaks somewhat too well of the whole: another seed says more.

Where counters are too wide for cases, units are proved: for all inputs, and in every cycle by
induction, each with faults that the proof must find: `tests/rtl/test_unit_proofs.py`,
`test_sequence_proofs.py`, `test_memory_proofs.py` and `test_axi.py`.

```console
$ python -m tests.mutation systolic --sample 300    # goes on where it was ended
$ python -m tests.mutation systolic --side model --sample 60    # in the model; the RTL is sound
$ python -m tests.mutation systolic hung --side model           # what ran out of time, by verify
$ python -m tests.mutation systolic --side figures --sample 20  # in areas and energies
$ python -m tests.mutation systolic --again --sample 0      # those not caught, on today's cases
$ python -m tests.mutation systolic --seed 2 --sample 60    # others
$ python -m tests.mutation systolic equal           # survivors, for the solver
$ python -m tests.mutation systolic tests           # survivors, on the tests of their units
$ python -m tests.mutation all reached              # coverage of a plain `archsim verify`
$ python -m tests.mutation all page                 # writes this page
```
"""
SAID = {
    "choice": "Another legal way is taken, which no comparison of model and RTL can tell",
    "out of reach": "Not caught, and out of reach of a case",
    "equivalent": "Without effect, for the reason given",
}
TITLES = {
    "rtl": "Faults in the RTL",
    "model": "Faults in the model",
    "figures": "Faults in what areas and energies are made of",
}
"""By side: the part of the page that is about it."""


SEED = 1
"""Of the sample whose survivors were looked at; others say how far that can be trusted."""


def found_file(folder: Path, kind: str, side: str) -> Path:
    """Where what is known of a kind's faults is kept."""
    return folder / f"{kind.replace(' ', '-')}-{side}.jsonl"


def found_in(folder: Path) -> dict[str, dict[str, list[Found]]]:
    """What is known, by side and kind; kinds of which nothing is known are left out."""
    sides = {
        side: {kind: list(known(found_file(folder, kind, side)).values()) for kind in SUBJECTS}
        for side in TITLES
    }
    return {side: {kind: one for kind, one in kinds.items() if one}
            for side, kinds in sides.items()}  # fmt: skip


def sorted_out(tried: Sequence[Found]) -> dict[str, list[Found]]:
    """By outcome; survivors with a reason are "equivalent", or "out of reach"."""
    parts: dict[str, list[Found]] = {}
    for found in tried:
        outcome = str(found.outcome)
        reason = reason_of(found.mutant, found.text, found.column, found.kind)
        if reason and reason.choice and outcome in AGAIN:
            outcome = "choice"
        elif outcome in ("survived", "hung") and reason:
            outcome = "out of reach" if reason.reach else "equivalent"
        parts.setdefault(outcome, []).append(found)
    return parts


def page(sides: dict[str, dict[str, list[Found]]], reached: str = "") -> str:
    """The whole page, of what is found by side and kind.  reached: its part of coverage."""
    text = [HEAD]
    for side, by_kind in sides.items():
        samples = {kind: of_sample(tried, SEED) for kind, tried in by_kind.items()}
        parts = {kind: sorted_out(tried) for kind, tried in samples.items() if tried}
        if side == "figures":
            text += [f"## {TITLES[side]}\n", _by_tests(parts)]
            text += [_survivors({"survived": part.get("survived", [])}) for part in parts.values()]
            continue
        text += [f"## {TITLES[side]}\n", _summary(parts), _others(by_kind)]
        for kind, part in parts.items():
            text += [f"### {kind}, {side}\n", _units(part), _survivors(part), _reasons(part)]
    return "\n".join(one for one in [*text, reached] if one)


def _by_tests(parts: dict[str, dict[str, list[Found]]]) -> str:
    """Scores of faults that only tests are asked about."""
    lines = [
        "| design kind | faults that count | caught by fast tests | so of all at least "
        "| with a reason | cannot be made |",
        "|---|---|---|---|---|---|",
    ]
    for kind, part in parts.items():
        _, tests, whole = _counts(part)
        lines.append(
            f"| {kind} | {whole} | {tests} ({_share(tests, whole)}) | {_at_least(tests, whole)} "
            f"| {len(part.get('equivalent', []))} | {len(part.get('stillborn', []))} |"
        )
    return "\n".join(lines) + "\n"


def of_sample(tried: Sequence[Found], seed: int) -> list[Found]:
    """Those that are in a seed's sample."""
    return [one for one in tried if seed in one.samples]


def _others(by_kind: dict[str, list[Found]]) -> str:
    """Scores of the samples of other seeds, of faults that are in no sample before."""
    rows: list[str] = []
    for kind, tried in by_kind.items():
        for seed in sorted({one for found in tried for one in found.samples} - {SEED}):
            fresh = [one for one in of_sample(tried, seed) if min(one.samples) == seed]
            verify, tests, whole = _counts(sorted_out(fresh))
            rows.append(
                f"| {kind} | {seed} | {whole} | {verify} ({_share(verify, whole)}) "
                f"| {_at_least(verify, whole)} | {whole - verify - tests} |"
            )
    if not rows:
        return ""
    head = [
        "With other seeds, of faults that are not in the sample above:\n",
        "| design kind | seed | faults that count | caught by `verify` | so of all at least "
        "| not caught |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def _at_least(part: int, whole: int) -> str:
    """What share of all faults is caught with a confidence of 95 %, if so many of a sample are:
    the lower bound of Wilson's interval."""
    if not whole:
        return "–"
    z, share = 1.645, part / whole
    spread = z * (share * (1 - share) / whole + z * z / (4 * whole * whole)) ** 0.5
    bound = (share + z * z / (2 * whole) - spread) / (1 + z * z / whole)
    return f"{100 * bound:.0f} %"


def _counts(part: dict[str, list[Found]], unit: str = "") -> list[int]:
    """Caught by verify, by tests, of how many."""

    def count(outcome: str) -> int:
        return sum(not unit or one.mutant.module == unit for one in part.get(outcome, []))

    return [count("caught"), count("caught by tests"), sum(count(one) for one in COUNTED)]


def _summary(parts: dict[str, dict[str, list[Found]]]) -> str:
    lines = [
        "| design kind | faults that count | caught by `verify` | so of all at least "
        "| or by the unit's tests "
        "| not caught, out of reach of these "
        "| no effect: same Verilog, shown, with a reason | cannot be made |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, part in parts.items():
        verify, tests, whole = _counts(part)
        none = ", ".join(str(len(part.get(one, []))) for one in ("same", "equal", "equivalent"))
        lines.append(
            f"| {kind} | {whole} | {verify} ({_share(verify, whole)}) "
            f"| {_at_least(verify, whole)} "
            f"| {verify + tests} ({_share(verify + tests, whole)}) "
            f"| {whole - verify - tests}, {len(part.get('out of reach', []))} "
            f"| {none} | {len(part.get('stillborn', []))} |"
        )
    return "\n".join(lines) + "\n"


def _units(part: dict[str, list[Found]]) -> str:
    units = sorted({one.mutant.module for name in COUNTED for one in part.get(name, [])})
    lines = ["| unit | faults | caught by `verify` | by tests |", "|---|---|---|---|"]
    for unit in units:
        verify, tests, whole = _counts(part, unit)
        lines.append(f"| `{unit}` | {whole} | {verify} | {tests} |")
    return "\n".join(lines) + "\n"


def _place(found: Found) -> str:
    mutant = found.mutant
    change = mutant.change.replace("|", "\\|")
    line = found.text.replace("|", "\\|")
    return f"| `{mutant.module}` {mutant.line} | `{line}` | {mutant.operator}: `{change}` |"


def _survivors(part: dict[str, list[Found]]) -> str:
    left = [one for name in ("survived", "hung") for one in part.get(name, [])]
    if not left:
        return ""
    head = ["Not caught by `verify`, and not known to be without effect:\n",
            "| where | line | change | by tests |", "|---|---|---|---|"]  # fmt: skip
    tests = part.get("caught by tests", [])
    rows = [f"{_place(one)} {'time ran out' if one.outcome == 'hung' else 'no'} |" for one in left]
    rows += [f"{_place(one)} {one.seen} |" for one in tests]
    return "\n".join([*head, *rows]) + "\n"


def _reasons(part: dict[str, list[Found]]) -> str:
    return "\n".join(
        "\n".join([f"{said}:\n", "| where | line | change | reason |", "|---|---|---|---|",
                   *(f"{_place(one)} {_why(one)} |" for one in part[name])]) + "\n"
        for name, said in SAID.items() if name in part
    )  # fmt: skip


def _why(found: Found) -> str:
    reason = reason_of(found.mutant, found.text, found.column, found.kind)
    if reason and reason.choice:
        return f"{reason.reason}: {found.seen if found.outcome == 'caught by tests' else 'no test'}"
    return reason.reason if reason else ""
