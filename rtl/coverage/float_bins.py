"""Bins of cores that compute in floating point: the special patterns of every port, and ReLU."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from archsim.arithmetic.formats import FloatFormat
from archsim.numbers import IntArray
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.integer_bins import EDGES
from rtl.draw import Draw

_CLASSES: dict[str, Callable[[FloatFormat, IntArray], NDArray[np.bool_]]] = {
    "+0": lambda form, words: words == 0,
    "-0": lambda form, words: words == form.sign_mask,
    "a subnormal": lambda form, words: (
        (magnitude(form, words) > 0) & (magnitude(form, words) < 1 << form.fraction_bits)
    ),
    "the largest finite": lambda form, words: magnitude(form, words) == form.infinity - 1,
    "an infinity": lambda form, words: magnitude(form, words) == form.infinity,
    "a NaN": lambda form, words: magnitude(form, words) > form.infinity,
    "a negative": lambda form, words: (words & form.sign_mask != 0) & (magnitude(form, words) > 0),
}


def magnitude(form: FloatFormat, words: IntArray) -> IntArray:
    """Patterns without their sign."""
    return words & (form.sign_mask - 1)


def float_bins(
    formats: dict[str, FloatFormat], values: Callable[[Seen, str], IntArray] = Seen.words
) -> Iterator[Bin]:
    """Special patterns by port.  formats: of the lanes of each port; values: what crosses it."""
    for port, form in formats.items():
        for name, says in _CLASSES.items():
            if name == "a negative" and port != "bias":
                continue  # as in every case
            if name == "-0" and port == "ofmap":
                continue  # sums that cancel are +0; only a product of small values leaves it
            yield Bin(
                name=f"{port}: {name}",
                why="a pattern that rounding, alignment and comparison treat apart",
                hit=lambda seen, port=port, form=form, says=says: bool(
                    says(form, values(seen, port)).any()
                ),
                aim=EDGES,
            )


def special_patterns(form: FloatFormat) -> list[int]:
    """One pattern of each kind, and both signs of most."""
    one = form.bias << form.fraction_bits
    positive = [0, 1, (1 << form.fraction_bits) - 1, form.infinity - 1, form.infinity, one, one + 1]
    return [*positive, *(form.sign_mask | pattern for pattern in positive), form.nan]


def drawn_patterns(
    draw: Draw, form: FloatFormat, shape: int | tuple[int, ...], *, finite: bool
) -> IntArray:
    """Special patterns in a shape; finite: none that swallows a whole sum."""
    some = [p for p in special_patterns(form)
            if not finite or (p & (form.sign_mask - 1)) < form.infinity - 1]  # fmt: skip
    return draw.rng.choice(np.array(some, np.int64), shape)


__all__ = ["drawn_patterns", "float_bins", "magnitude", "special_patterns"]
