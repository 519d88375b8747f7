"""The kernels that count bits of the codecs beside Boveda, compiled by numba; one pass each.

What is counted, and by whom it was published: `archsim.codecs.reference_codecs`.
"""

from __future__ import annotations

from archsim.codecs.boveda_format import Values
from archsim.codecs.boveda_kernels import Form, Line, group_width, wide
from archsim.kernels import inlined, kernel
from archsim.numbers import IntArray

ZERO_RUN_BITS = 4
FPC_LINE_WORDS = 16
FPC_LONGEST_RUN = 8


@kernel("??.1, int")
def zero_run_elements(values: Values, unit: int) -> int:
    """Elements of zero-run lists, one a unit of so many values, placeholders included."""
    elements, run = 0, 0
    for at in range(len(values)):
        if at % unit == 0:
            run = 0
        if values[at] == 0:
            run += 1
        else:
            elements += 1 + (run >> ZERO_RUN_BITS)
            run = 0
    return elements


@kernel("??.1, int, (int, int, int, int), i8.1")
def packed_widths(values: Values, unit: int, form: Form, answer: IntArray) -> None:
    """Vectors of form[0] values that are not zero, units apart: their number, sum of widths."""
    union, filled = 0, 0
    for at in range(len(values)):
        if at % unit == 0 and filled:
            answer[0] += 1
            answer[1] += group_width(union, form)
            union, filled = 0, 0
        if values[at] != 0:
            union |= abs(wide(values[at]))
            filled += 1
            if filled == form[0]:
                answer[0] += 1
                answer[1] += group_width(union, form)
                union, filled = 0, 0
    if filled:
        answer[0] += 1
        answer[1] += group_width(union, form)


@kernel("??.1, (int, int), (int, int, int, int), int")
def shapeshifter_bits(values: Values, line: Line, form: Form, field_bits: int) -> int:
    """Of every group the lesser of G + w · (values not zero) and G · w, and its width's field."""
    bits = 0
    for row in range(len(values) // line[0]):
        for place in range(line[1]):
            begin = row * line[0] + place * form[0]
            union, filled = 0, 0
            for at in range(begin, min(begin + form[0], (row + 1) * line[0])):
                union |= abs(wide(values[at]))
                filled += values[at] != 0
            width = group_width(union, form)
            bits += field_bits + min(form[0] + width * filled, form[0] * width)
    return bits


@inlined
def _fits(value: int, size: int) -> bool:
    """Whether `size` bytes hold it in two's complement."""
    half = 1 << (8 * size - 1)
    return -half <= value < half


@inlined
def _base_delta(words: Values, size: int, delta: int) -> bool:
    """Whether all words are within delta bytes of zero, or of the first that is not.

    Differences wrap in the words' own size of bytes, as a subtractor of that width makes them.
    """
    base, based, near = 0, False, True
    half = 1 << (8 * size - 1) if size < 8 else 0
    for at in range(len(words)):
        word = wide(words[at])
        if not _fits(word, delta):
            if not based:
                base, based = word, True
            away = word - base
            if size < 8:
                away = ((away + half) & (2 * half - 1)) - half
            near = near and _fits(away, delta)
    return near


@kernel("i8.2, i4.2, i2.2")
def base_delta_bytes(eights: Values, fours: Values, twos: Values) -> int:
    """Of lines, each seen as words [lines, words] of 8, of 4 and of 2 bytes."""
    total = 0
    for line in range(len(eights)):
        eight, four, two = eights[line], fours[line], twos[line]
        if not eight.any():
            total += 1
        elif (eight == eight[0]).all():
            total += 8
        else:
            best = 8 * len(eight)
            if _base_delta(eight, 8, 4):
                best = min(best, 8 + 4 * len(eight))
            if _base_delta(eight, 8, 2):
                best = min(best, 8 + 2 * len(eight))
            if _base_delta(eight, 8, 1):
                best = min(best, 8 + len(eight))
            if _base_delta(four, 4, 2):
                best = min(best, 4 + 2 * len(four))
            if _base_delta(four, 4, 1):
                best = min(best, 4 + len(four))
            if _base_delta(two, 2, 1):
                best = min(best, 2 + len(two))
            total += best
    return total


@inlined
def _pattern_bits(word: int) -> int:
    """Data bits of the shortest pattern of frequent pattern compression, for a word not zero."""
    low, high = word & 0xFFFF, (word >> 16) & 0xFFFF
    byte = word & 0xFF
    if -8 <= word < 8:
        return 4
    if _fits(word, 1) or (low == high and low == byte * 0x101):
        return 8
    halves = (low < 0x80 or low >= 0xFF80) and (high < 0x80 or high >= 0xFF80)
    if _fits(word, 2) or low == 0 or halves:
        return 16
    return 32


@kernel("i4.1")
def frequent_pattern_bits(words: Values) -> int:
    """Prefixes and data of words of 32 bits, in lines of FPC_LINE_WORDS."""
    bits, run = 0, 0
    for at in range(len(words)):
        if at % FPC_LINE_WORDS == 0:
            run = 0
        word = wide(words[at])
        if word:
            bits += 3 + _pattern_bits(word)
            run = 0
        else:
            if run % FPC_LONGEST_RUN == 0:
                bits += 6
            run += 1
    return bits


@kernel("??.1, int, i8.1")
def histogram(values: Values, least: int, counts: IntArray) -> None:
    """How often each value from `least` occurs."""
    for at in range(len(values)):
        counts[wide(values[at]) - least] += 1


__all__ = [
    "base_delta_bytes",
    "frequent_pattern_bits",
    "histogram",
    "packed_widths",
    "shapeshifter_bits",
    "zero_run_elements",
]
