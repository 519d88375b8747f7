"""Boveda's units between streams, compared with a plain bit-by-bit oracle and the cycle model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from amaranth.lib import wiring
from component_verilog import verilog_of

from archsim.codecs.boveda_timing import (
    Pace,
    RowUse,
    compressor_cycles,
    decompressor_cycles,
    row_use,
)
from rtl.benches.amaranth_bench import run_amaranth
from rtl.benches.bench import Bench, Outcome, Stimulus
from rtl.benches.boundary import ports_of
from rtl.benches.verilated import Verilated
from rtl.boveda import BovedaCodec
from rtl.core.boveda_compressor import Compressor
from rtl.core.boveda_decompressor import Decompressor
from rtl.core.boveda_round_trip import BovedaRoundTrip
from rtl.memories.boveda.pack_proof import Format

Words = list[int]


@dataclass(frozen=True, kw_only=True)
class Form(Format):
    """The parameters of a unit, and what the format says of them."""

    group: int = 2
    container_bits: int = 8

    def limits(self, bits: int) -> tuple[int, int]:
        """The least and largest value of so many bits."""
        return (
            (-(1 << bits >> 1), max((1 << bits >> 1) - 1, 0))
            if self.signed
            else (0, (1 << bits) - 1)
        )

    def width(self, values: Sequence[int]) -> int:
        """w of a group, as the format says it."""
        largest = max(abs(value) for value in values)
        if largest == 0:
            return 0 if self.zero_width else 1 + self.signed
        least = 2 if self.signed or self.zero_width else 1
        return min(max(largest.bit_length() + self.signed, least), self.container_bits)

    def code(self, value: int, width: int) -> list[bool]:
        """The bits of a value, the lowest first."""
        if not self.signed:
            return [bool(value >> bit & 1) for bit in range(width)]
        return [bool(abs(value) >> bit & 1) for bit in range(width - 1)] + [value < 0][:width]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """Groups [n][G] and which of them end a unit."""

    form: Form
    groups: list[list[int]]
    last: list[bool]

    @property
    def widths(self) -> Words:
        return [self.form.width(group) for group in self.groups]

    @property
    def use(self) -> RowUse:
        return row_use(
            np.array(self.widths, np.int64), np.array(self.last, np.int64), self.form.container_bits
        )

    @property
    def group_words(self) -> Words:
        """Groups as words of a stream: values, above them the flag."""
        bits = self.form.container_bits
        return [
            _joined([value % (1 << bits) for value in group] + [last], bits)
            for group, last in zip(self.groups, self.last, strict=True)
        ]

    @property
    def width_words(self) -> Words:
        field = self.form.container_bits.bit_length() - 1
        return [
            max(width - 1, 0) | last << field
            for width, last in zip(self.widths, self.last, strict=True)
        ]

    @property
    def row_words(self) -> Words:
        """Rows, bit by bit: each lane's column of a unit, cut every B bits.

        A row is flagged if the unit's last group ends it, so not before a last group of no bits.
        """
        bits, rows = self.form.container_bits, list[int]()
        columns: list[list[bool]] = [[] for _ in range(self.form.group)]
        for group, width, last in zip(self.groups, self.widths, self.last, strict=True):
            for column, value in zip(columns, group, strict=True):
                column += self.form.code(value, width)
            if not last:
                continue
            length = len(columns[0])
            for at in range(0, length, bits):
                lanes = [_joined(column[at : at + bits], 1) for column in columns]
                ends = at + bits >= length and (width > 0 or length % bits > 0)
                rows.append(_joined([*lanes, ends], bits))
            columns = [[] for _ in range(self.form.group)]
        return rows


def _joined(lanes: Sequence[int], bits: int) -> int:
    return sum(int(value) << (bits * at) for at, value in enumerate(lanes))


def tensor(form: Form, groups: int, seed: int, longest_unit: int = 6) -> Tensor:
    """Random groups of random widths, corners among them, in units of random lengths."""
    rng = np.random.default_rng(seed)
    narrow = int(rng.integers(1, form.container_bits + 1))
    made: list[list[int]] = []
    for _ in range(groups):
        bits = int(rng.choice([0, 1, 2, narrow, form.container_bits, form.container_bits]))
        low, high = form.limits(bits)
        corners = rng.choice([low, high, 0], form.group)
        drawn = rng.integers(low, high + 1, form.group)
        made.append(np.where(rng.random(form.group) < 0.3, corners, drawn).tolist())
    last = rng.integers(0, longest_unit, groups) == 0
    last[-1:] = True
    return Tensor(form=form, groups=made, last=last.tolist())


Run = Callable[[Bench], Outcome]


def simulated(component: wiring.Component) -> Run:
    return lambda bench: run_amaranth(component, bench)


def compiled(component: wiring.Component) -> Run:
    """What is emitted, compiled by Verilator."""
    return Verilated(verilog_of(component)).run


def pace(words: int, stalls: int, rng: np.random.Generator) -> Pace:
    """None, or random gaps with a pause now and then."""
    if not stalls:
        return Pace()
    gaps = rng.integers(0, stalls + 1, words) * (rng.random(words) < 0.5)
    earliest = np.where(rng.random(words) < 0.05, np.arange(words) * (1 + stalls // 2), 0)
    return Pace(gaps=gaps.astype(np.int64), earliest=earliest.astype(np.int64))


def run(
    component: wiring.Component, runner: Run, words: dict[str, Words], paces: dict[str, Pace]
) -> Outcome:
    """Offer the words at inputs, await as many at outputs, at these paces."""
    stimuli: dict[str, Stimulus] = {}
    for port in ports_of(component):
        n, at = len(words[port.name]), paces[port.name]
        when: Any = {
            "gaps": at.gaps[:n] if len(at.gaps) else 0,
            "earliest": at.earliest[:n] if len(at.earliest) else 0,
        }
        if port.direction == "o":
            stimuli[port.name] = Stimulus.accept(n, **when)
            continue
        data = b"".join(word.to_bytes(port.word_bytes, "little") for word in words[port.name])
        packed = np.frombuffer(data, np.uint8).reshape(n, port.word_bytes)
        stimuli[port.name] = Stimulus.offer(packed, **when)
    total = sum(map(len, words.values()))
    return runner(
        Bench(
            ports=ports_of(component),
            stimuli=stimuli,
            max_cycles=60 * total + 200,
            tail_cycles=12,
        )
    )


def differences(outcome: Outcome, words: dict[str, Words], cycles: dict[str, Any]) -> list[str]:
    """What differs: words of a port, or the cycles in which they cross."""
    found: list[str] = ["timed out"] if outcome.timed_out else []
    for name, crossing in outcome.crossings.items():
        seen = [int.from_bytes(word.tobytes(), "little") for word in crossing.words]
        if seen != words[name]:
            found.append(f"{name}: words")
        if name in cycles and crossing.cycles.tolist() != cycles[name].tolist():
            found.append(f"{name}: cycles")
    return found


def compressor_differences(made: Tensor, stalls: dict[str, int]) -> list[str]:
    """A compressor against oracle and model; stalls: the longest gap at i, row, widths."""
    unit = Compressor(**vars(made.form))
    words = compressor_words(made)
    paces = _paces(words, stalls)
    outcome = run(unit, simulated(unit), words, paces)
    return differences(outcome, words, vars(compressor_cycles(made.use, **paces)))


def decompressor_differences(made: Tensor, stalls: dict[str, int]) -> list[str]:
    """A decompressor against oracle and model; stalls: the longest gap at row, widths, o."""
    unit = Decompressor(**vars(made.form))
    words = decompressor_words(made)
    paces = _paces(words, stalls)
    outcome = run(unit, simulated(unit), words, paces)
    return differences(outcome, words, vars(decompressor_cycles(made.use, **paces)))


def codec_differences(unit: BovedaCodec, runner: Run, made: Tensor, stalls: int) -> list[str]:
    """Both units in one top, at once, against oracle and model."""
    into, back = compressor_words(made), decompressor_words(made)
    words = {**into, **{_STORED.get(name, name): port for name, port in back.items()}}
    paces = _paces(words, dict.fromkeys(words, stalls))
    outcome = run(unit, runner, words, paces)
    there = compressor_cycles(made.use, **{name: paces[name] for name in into})
    again = decompressor_cycles(made.use, **{name: paces[_STORED.get(name, name)] for name in back})
    cycles = {_STORED.get(name, name): when for name, when in vars(again).items()}
    return differences(outcome, words, {**vars(there), **cycles})


def round_trip_differences(made: Tensor, stalls: dict[str, int], queue: int | None) -> list[str]:
    """What differs between the groups that go in and those that come out."""
    unit = BovedaRoundTrip(**vars(made.form), queue=queue)
    words = {"i": made.group_words, "o": made.group_words}
    outcome = run(unit, simulated(unit), words, _paces(words, stalls))
    return differences(outcome, words, {})


_STORED = {"row": "stored_row", "widths": "stored_widths"}


def compressor_words(made: Tensor) -> dict[str, Words]:
    """The words of a compressor's ports."""
    return {"i": made.group_words, "row": made.row_words, "widths": made.width_words}


def decompressor_words(made: Tensor) -> dict[str, Words]:
    """The words of a decompressor's ports."""
    columns = (1 << made.form.group * made.form.container_bits) - 1
    rows = [word & columns for word in made.row_words]
    return {"row": rows, "widths": made.width_words, "o": made.group_words}


def _paces(words: dict[str, Words], stalls: dict[str, int]) -> dict[str, Pace]:
    rng = np.random.default_rng(sum(map(len, words.values())))
    return {name: pace(len(listed), stalls.get(name, 0), rng) for name, listed in words.items()}
