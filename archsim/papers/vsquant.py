"""Dai et al., MLSys 2021: VS-Quant's accuracy, on networks that come in packages; its hardware.

The paper's networks and data are not to be had, so its accuracies stand beside ours and are not
judged; what is judged are the orderings in its tables.  Energy and area of its PE, and of ours, are
in `archsim.papers.vsquant_hardware`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from archsim.papers.evidence import count
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from archsim.papers.vsquant_hardware import hardware_rows, notes
from archsim.papers.vsquant_photos import score_photos
from archsim.papers.vsquant_points import CALIBRATIONS, Point, point
from archsim.papers.vsquant_words import score_words

PHOTOGRAPHS = 20

WORDS = 500

NOTES = (
    "Note 1. The networks are not the paper's. Photographs: SqueezeNet v1.1, with 1.2 M weights to "
    f"ResNet50's 25.5 M, on {PHOTOGRAPHS} ImageNet photographs, so that one is "
    f"{100 / PHOTOGRAPHS:g} points. Words: g2p-en, a recurrent network that turns words into their "
    f"sounds, on {WORDS} words of the CMU dictionary, on which it was trained.",
    "Note 2. Ours is the share of answers (top class; all sounds of a word) that are those of the "
    "float network. The remark gives the share that is right, of what it is in float; the signal "
    "to quantisation noise of the 1000 logits, or of the encoder's last state; and the paper's "
    "score, ResNet50 v1.5's top-1 or BERT-base's F1, of its score in float. Orderings are judged "
    "by signal to noise, the finest of these measures; the mean over layers is that of the results "
    "of all convolutions on 5 photographs.",
    "Note 3. All operands of all matrix layers are quantised, then multiplied and summed in "
    "float32. Activations behind a ReLU are unsigned, others signed. Scales of weights are static "
    "and those of activation vectors dynamic, both by their maximum; gamma is one a filter, and of "
    "activations one an input (a photograph, or a word at one step).",
    "Note 4. One scale a channel: one a filter for weights, and one a layer for activations, "
    "calibrated on 4 of the photographs, or on 100 other words. The calibration named is that of "
    "activations, with weights by their maximum; the best is of these four and of both operands "
    "by least squared error.",
    "Note 5. A rounded scale is wrong by up to half of gamma, however many bits the values have. "
    "Words with scales of 4 bits stay at 31 to 33 dB with weights of 6 and of 8 bits, below one "
    "scale a channel; floating scales reach 37 and 48 dB. It costs no words.",
)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Per cent of answers kept and of answers right, and signal to noise.

    layers_db: the mean over the layers of the signal to noise of their results, where
    there is one result a layer and input: not for words, whose layers run once a letter.
    """

    kept: float
    right: float
    sqnr_db: float
    layers_db: float | None = None


def _photographs(at: Point | None) -> Score:
    ours = score_photos(at, PHOTOGRAPHS)
    return Score(
        kept=100 * ours.agreeing / ours.photos,
        right=100 * ours.correct / ours.photos,
        sqnr_db=ours.sqnr_db,
        layers_db=fmean(ours.layers_db.values()),
    )


def _words(at: Point | None) -> Score:
    ours = score_words(at, WORDS)
    return Score(
        kept=100 * ours.agreeing / ours.words,
        right=100 * ours.correct / ours.words,
        sqnr_db=ours.sqnr_db,
    )


Side = tuple[str, int]
"""W/A/ws/as, and V."""

Pair = tuple[Side, Side]

NETWORKS: dict[str, Callable[[Point | None], Score]] = {
    "photographs": _photographs,
    "words": _words,
}


def score(network: str, text: str, *, vector: int = 16) -> Score:
    """A network quantised as "W/A/ws/as" says; with scales a channel, the best of calibrations.

    The best has the highest signal to noise.
    """
    if "-" not in text:
        return NETWORKS[network](point(text, vector=vector))
    points = [point(text, weights=w, activations=a, vector=vector) for w, a in CALIBRATIONS]
    return max((NETWORKS[network](each) for each in points), key=lambda each: each.sqnr_db)


def compare(progress: Progress = silent) -> Comparison:
    """The paper's figures, ours beside them; `progress` is told each point that begins."""
    figures = load_figures("vsquant")
    form = point("4/4/4/4").format(weight=True, signed=True)
    rows = [
        figures["overhead"].row(100 * form.overhead),
        figures["bits"].row(form.bits_per_value),
    ]
    published: list[dict[str, Any]] = read_paper("vsquant")["points"]
    for group in published:
        for text, value in group["paper"].items():
            progress(f"{group['network']} {text}")
            rows.append(_point_row(group, text, float(value)))
    for key, pairs in ORDERINGS.items():
        progress(f"{key}: orderings")
        rows.append(_ordering_row(figures[key], key.partition(".")[0], pairs))
    return Comparison(
        paper="vsquant",
        title=str(read_paper("vsquant")["title"]),
        rows=(*rows, *hardware_rows()),
        notes=(*NOTES, *notes()),
    )


def _point_row(group: Mapping[str, Any], text: str, paper: float) -> Row:
    """A point of the paper, and the same arithmetic on our network."""
    names = read_paper("vsquant")["networks"][group["network"]]
    vector = int(group.get("vector", 16))
    weights, activations = group.get("weights", ""), group.get("activations", "")
    if weights in ("", "best"):
        ours = score(group["network"], text, vector=vector)
    else:
        ours = NETWORKS[group["network"]](point(text, weights=weights, activations=activations))
    label = f"{group['network']} {text}" + (f", V = {vector}" if "vector" in group else "")
    label += f", {activations}" if activations else ""
    exact = NETWORKS[group["network"]](None).right
    figure = Figure(
        key=label,
        group=group["group"],
        figure=label,
        value=None,
        unit="% kept",
        tolerance=None,
        why="another network and other data: not judged",
        source=f"{group['source']}: {names['paper']} {paper:g} %",
    )
    return figure.row(
        ours.kept,
        f"{ours.right:.4g} of {exact:.4g} %, {ours.sqnr_db:.1f} dB; "
        f"paper {paper:g} of {names['paper_float']} %",
    )


def _ordering_row(figure: Figure, network: str, pairs: Sequence[Pair]) -> Row:
    """How many pairs are in order, and which are not."""
    scores = [(_side(network, better), _side(network, worse)) for better, worse in pairs]
    below = [worse.sqnr_db - better.sqnr_db for better, worse in scores]
    wrong = [pair for pair, gap in zip(pairs, below, strict=True) if gap > 0]
    if not wrong:
        return figure.row(float(len(pairs)))
    named = "; ".join(f"{_label(better)} below {_label(worse)}" for better, worse in wrong)
    how = "archsim.papers.vsquant.score, signal to noise"
    found = [count("out of order by at most", max(below), "dB", how)]
    means = [(better.layers_db, worse.layers_db) for better, worse in scores]
    held = [high >= low for high, low in means if high is not None and low is not None]
    if held:
        found.append(
            count("in order by the mean over layers", float(sum(held)), f"of {len(held)}", how)
        )
    return figure.row(float(len(pairs) - len(wrong)), named, measured=found)


def _side(network: str, side: Side) -> Score:
    text, vector = side
    return score(network, text, vector=vector)


def _label(side: Side) -> str:
    text, vector = side
    return text if vector == 16 else f"{text} with V = {vector}"


def _pairs(*texts: tuple[str, str]) -> list[Pair]:
    return [((better, 16), (worse, 16)) for better, worse in texts]


ORDERINGS: Mapping[str, list[Pair]] = {
    "photographs.channel": _pairs(*((f"{n}/{n}/fp/fp", f"{n}/{n}/-/-") for n in (3, 4, 6))),
    "photographs.integer": _pairs(
        *((f"4/4/{w}/{a}", "4/4/-/-") for w in (3, 4, 6) for a in (4, 6))
    ),
    "photographs.weights": _pairs(
        *((f"4/4/{w}/{a}", f"4/4/{v}/{a}") for v, w in ((3, 4), (4, 6)) for a in (4, 6))
    ),
    "photographs.activations": _pairs(*((f"4/4/{w}/6", f"4/4/{w}/4") for w in (3, 4, 6))),
    "photographs.vectors": [
        (("6/6/fp/fp", short), ("6/6/fp/fp", long))
        for short, long in pairwise((1, 2, 4, 8, 16, 32, 64))
    ],
    "words.channel": _pairs(*((f"{n}/8/fp/fp", f"{n}/8/-/-") for n in (3, 4, 6, 8))),
    "words.integer": _pairs(
        *((f"{n}/8/{w}/{a}", f"{n}/8/-/-") for n in (3, 4, 6, 8) for w in (4, 6) for a in (8, 10))
    ),
    "words.weights": _pairs(
        *((f"{n}/8/6/{a}", f"{n}/8/4/{a}") for n in (3, 4, 6, 8) for a in (8, 10))
    ),
    "words.activations": _pairs(
        *((f"{n}/8/{w}/10", f"{n}/8/{w}/8") for n in (3, 4, 6, 8) for w in (4, 6))
    ),
}
"""For every judged figure, the pairs of points whose first shall have no less signal to noise."""
