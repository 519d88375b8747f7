"""Each codec's account is that of a plain loop over the values."""

from __future__ import annotations

import inspect
from collections import Counter
from math import log2, prod
from typing import Any

import numpy as np
import pytest
from boveda_plainly import plain_stream, plain_width
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs import reference_kernels
from archsim.codecs.boveda import BovedaFormat
from archsim.codecs.reference_codecs import CODECS
from archsim.errors import InputError

Case = tuple[Any, int, bool, int, int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Values near zero, near each other or anywhere, with runs of zeros and repeated ones."""
    bits, signed = draw(st.sampled_from([4, 8, 16])), draw(st.booleans())
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=2)))
    shape += (draw(st.integers(1, 90)),)
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    least, largest = BovedaFormat(container_bits=bits, signed=signed).limits
    centre = draw(st.sampled_from([0, least, largest, 3]))
    reach = draw(st.sampled_from([0, 1, 4, 100, 2**16]))
    values = np.clip(centre + random.integers(-reach, reach + 1, shape), least, largest)
    if draw(st.booleans()):
        values = np.broadcast_to(values[..., :1], shape).copy()
    values[random.random(shape) < draw(st.sampled_from([0.0, 0.5, 0.97]))] = 0
    axes = draw(st.integers(0, len(shape) - 1))
    return values, bits, signed, axes, draw(st.integers(1, 20))


def units_of(values: Any, axes: int) -> list[list[int]]:
    return values.reshape(prod(values.shape[:axes]), -1).tolist()


def groups_of(values: Any, group: int) -> list[list[int]]:
    lines = values.reshape(-1, values.shape[-1]).tolist()
    return [line[at : at + group] for line in lines for at in range(0, len(line), group)]


def width(values: list[int], bits: int, signed: bool) -> int:
    form = BovedaFormat(container_bits=bits, signed=signed)
    return plain_width([abs(value) for value in values], form)


def data(values: Any, bits: int) -> bytes:
    """Through one large number: value i is its digit i in base 2^bits."""
    flat = values.reshape(-1).tolist()
    number = sum((value % 2**bits) << bits * at for at, value in enumerate(flat))
    return number.to_bytes(-(-len(flat) * bits // 8), "little")


def raw(case: Case) -> int:
    return case[0].size * case[1]


def zero_run(case: Case) -> int:
    total = 0
    for unit in units_of(case[0], case[3]):
        run = 0
        for value in unit:
            if value:
                total += case[1] + 4
                run = 0
            elif run == 15:  # a placeholder stands for this zero and the 15 before, if more comes
                run = 0
                total += case[1] + 4
            else:
                run += 1
        zeros = len(unit) - max((at + 1 for at, value in enumerate(unit) if value), default=0)
        total -= (case[1] + 4) * (zeros // 16)
    return total


def fours(case: Case) -> list[list[int]]:
    units = [[value for value in unit if value] for unit in units_of(case[0], case[3])]
    return [unit[at : at + 4] for unit in units for at in range(0, len(unit), 4)]


def scnn_dnnsim(case: Case) -> int:
    return sum(4 + 4 * case[1] for _ in fours(case))


def scnn_widths(case: Case) -> int:
    return sum(4 + int(log2(case[1])) + 4 * width(four, *case[1:3]) for four in fours(case))


def zero_bits(case: Case) -> int:
    return sum(1 + case[1] * (value != 0) for unit in units_of(case[0], 0) for value in unit)


def per_layer(case: Case) -> int:
    values, bits, signed, axes, group = case
    all_groups = groups_of(values, group)
    widest = max(width(one, bits, signed) for one in all_groups)
    units = prod(values.shape[:axes])
    rows = -(-(len(all_groups) // units) * widest // bits)
    return units * rows * group * bits


def shapeshifter(case: Case) -> int:
    values, bits, signed, _, group = case
    total = 0
    for one in groups_of(values, group):
        each = width(one, bits, signed)
        sparse = group + sum(each for value in one if value)
        total += int(log2(bits)) + min(sparse, group * each)
    return total


def signed_words(line: bytes, size: int) -> list[int]:
    return [
        int.from_bytes(line[at : at + size], "little", signed=True)
        for at in range(0, len(line), size)
    ]


def bdi(case: Case, size: int) -> int:
    stored = data(case[0], case[1])
    stored += bytes(-len(stored) % size)
    total = 0
    for at in range(0, len(stored), size):
        line = stored[at : at + size]
        costs = [size]
        if not any(line):
            costs.append(1)
        if line == line[:8] * (size // 8):
            costs.append(8)
        for k, d in ((8, 1), (8, 2), (8, 4), (4, 1), (4, 2), (2, 1)):
            words = signed_words(line, k)
            reach = range(-(2 ** (8 * d - 1)), 2 ** (8 * d - 1))
            far = [word for word in words if word not in reach]
            away = [(word - far[0]).to_bytes(9, "little", signed=True)[:k] for word in far]
            if all(int.from_bytes(one, "little", signed=True) in reach for one in away):
                costs.append(k + d * size // k)
        total += 8 * min(costs) + 4
    return total


def fpc(case: Case) -> int:
    stored = data(case[0], case[1])
    stored += bytes(-len(stored) % 4)
    total = 0
    for start in range(0, len(stored), 64):
        words = [stored[at : at + 4] for at in range(start, min(start + 64, len(stored)), 4)]
        at = 0
        while at < len(words):
            word = words[at]
            if not any(word):
                run = 1
                while run < 8 and at + run < len(words) and not any(words[at + run]):
                    run += 1
                total += 3 + 3
                at += run
                continue
            value = signed_words(word, 4)[0]
            halves = signed_words(word, 2)
            costs = [32]
            costs += [bits for bits in (4, 8, 16) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)]
            costs += [16] * (halves[0] == 0) + [8] * (len(set(word)) == 1)
            costs += [16] * all(-128 <= half < 128 for half in halves)
            total += 3 + min(costs)
            at += 1
    return total


def boveda(case: Case) -> int:
    values, bits, signed, axes, group = case
    form = BovedaFormat(container_bits=bits, signed=signed, group=group)
    made = plain_stream(values, form, axes)
    return sum(made[name] for name in made if name.endswith("_bits"))


ORACLES: dict[str, Any] = {
    "raw": raw,
    "boveda": boveda,
    "shapeshifter": shapeshifter,
    "per-layer": per_layer,
    "zero-bits": zero_bits,
    "zero-run": zero_run,
    "scnn-dnnsim": scnn_dnnsim,
    "scnn-widths": scnn_widths,
    "bdi-32": lambda case: bdi(case, 32),
    "bdi-64": lambda case: bdi(case, 64),
    "fpc": fpc,
}


@settings(max_examples=300)
@given(cases())
def test_bits_are_those_of_a_plain_loop(case: Case) -> None:
    found = {name: codec.bits(*case) for name, codec in CODECS.items()}
    entropy = found.pop("entropy")
    assert found == {name: oracle(case) for name, oracle in ORACLES.items()}
    flat = case[0].reshape(-1).tolist()
    exact = sum(n * log2(len(flat) / n) for n in Counter(flat).values())
    assert exact - 1e-6 * len(flat) <= entropy < exact + 1 + 1e-6 * len(flat)
    assert entropy <= found["raw"]


def words_case(*words: int) -> Case:
    """Words of 32 bits as values of 8."""
    stored = b"".join(word.to_bytes(4, "little") for word in words)
    return np.frombuffer(stored, np.int8), 8, True, 0, 16


@pytest.mark.parametrize(
    ("word", "bits"),
    [
        (0x00000007, 4), (0xFFFFFFF8, 4), (0x00000008, 8), (0xFFFFFF80, 8), (0x00000080, 16),
        (0xFFFF8000, 16), (0x00008000, 32), (0x80000000, 16), (0x00120000, 16), (0x007F0001, 16),
        (0xFF800001, 16), (0x00800001, 32), (0x55555555, 8), (0x12345678, 32),
    ],
)  # fmt: skip
def test_the_frequent_patterns(word: int, bits: int) -> None:
    """Alameldeen and Wood 2004, table 1; each at its edges."""
    assert CODECS["fpc"].bits(*words_case(word)) == 3 + bits


def test_zero_runs_of_words_end_after_eight_and_with_the_line() -> None:
    assert CODECS["fpc"].bits(*words_case(*[0] * 8)) == 6
    assert CODECS["fpc"].bits(*words_case(*[0] * 9)) == 12
    assert CODECS["fpc"].bits(*words_case(*[1] * 15, 0, 0)) == 15 * 7 + 12


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ([0] * 8, 1),
        ([0x12345678, 0x9ABCDEF0] * 4, 8),
        ([0x00001000, 0x70000000, 0x00001010, 0x70000000] * 2, 12),
        ([0x00001000, 0x70000000, 0x00002010, 0x70000000] * 2, 16),
        ([0x00001000, 0x70000000, 0x01002010, 0x70000000] * 2, 24),
        ([0x12345600, 0x12345610] * 3 + [0x12345640, 3], 12),
        ([0x12345600, 0x12346610] * 3 + [0x12345640, 3], 20),
        ([0x12101220, 0x12301240, 0x00051211, 0x12501210] * 2, 18),
        ([0x12345678, 0x33333333, 0x7ABCDEF0, 1, 2, 3, 4, 5], 32),
    ],
)
def test_the_encodings_of_a_line(words: list[int], size: int) -> None:
    """Pekhimenko et al. 2012, table 2, lines of 32 bytes; the first word not near zero is base."""
    assert CODECS["bdi-32"].bits(*words_case(*words)) == 8 * size + 4


def test_runs_of_zeros() -> None:
    """15 need no placeholder, 16 one; zeros at the end of a unit nothing."""
    values = np.zeros((3, 40), np.int64)
    values[0, 15], values[1, 16], values[2, 39] = 1, 1, 1
    elements = [CODECS["zero-run"].bits(row, 8, True, 0, 16) // 12 for row in values]
    assert elements == [1, 2, 3]
    assert CODECS["zero-run"].bits(values, 8, True, 1, 16) == 6 * 12


FAULTS = {
    "zero_run_elements": (">> ZERO_RUN_BITS", ">> 5"),
    "packed_widths": ("if at % unit == 0 and filled:", "if False:"),
    "shapeshifter_bits": ("filled += values[at] != 0", "filled += 1"),
    "base_delta_bytes": ("_base_delta(two, 2, 1)", "_base_delta(four, 4, 1)"),
    "frequent_pattern_bits": ("run % FPC_LONGEST_RUN == 0", "run == 0"),
}


def all_equal() -> None:
    random = np.random.default_rng(1)
    for density in (0.03, 0.5):
        values = random.integers(-9, 9, (6, 130)) * (random.random((6, 130)) < density)
        values[2] += 70
        case = values, 16, True, 1, 16
        for name, oracle in ORACLES.items():
            assert CODECS[name].bits(*case) == oracle(case), name


def test_the_case_of_the_faults_passes_without_one() -> None:
    all_equal()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    source = inspect.getsource(getattr(reference_kernels, name).py_func)
    right, wrong = FAULTS[name]
    assert source.count(right) == 1
    space = dict(vars(reference_kernels))
    exec(source.replace(right, wrong), space)
    monkeypatch.setattr(reference_kernels, name, space[name].py_func)
    with pytest.raises(AssertionError):
        all_equal()


@pytest.mark.parametrize("name", CODECS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    assert CODECS[name].title
    with pytest.raises(InputError, match=r"^values\[1\] must fit unsigned containers of 8 bits"):
        CODECS[name].bits(np.array([3, 256]), 8, False, 0, 16)
    with pytest.raises(InputError, match=r"^group must be positive, not 0$"):
        CODECS[name].bits(np.array([3]), 8, False, 0, 0)
