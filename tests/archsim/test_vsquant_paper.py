"""`archsim paper vsquant`: the two networks, quantised; and the orderings that hold on them."""

from __future__ import annotations

import numpy as np
import pytest

from archsim.codecs.calibration import Calibration
from archsim.codecs.vsquant import VectorFormat
from archsim.errors import InputError
from archsim.papers import vsquant
from archsim.papers.figures import Comparison, load_figures, read_paper
from archsim.papers.vsquant_hardware import hardware_rows
from archsim.papers.vsquant_photos import NETWORK, logits, score_photos
from archsim.papers.vsquant_points import Arithmetic, Quantising, Recorder, point, sqnr_db
from archsim.papers.vsquant_words import SOUNDS, dictionary, sample, score_words, sound
from workloads.onnx_runtime import capture
from workloads.packaged import packaged, photo


def test_points_are_read_as_the_paper_writes_them() -> None:
    at = point("4/8/6/10", vector=32)
    assert at.format(weight=True, signed=True) == VectorFormat(bits=4, vector=32, scale_bits=6)
    assert at.format(weight=False, signed=False) == VectorFormat(
        bits=8, signed=False, vector=32, scale_bits=10
    )
    mixed = point("6/4/-/fp", weights="mse", activations="99.9")
    assert mixed.format(weight=True, signed=True) == VectorFormat(bits=6)
    assert mixed.format(weight=False, signed=True) == VectorFormat(bits=4, vector=16)
    assert mixed.weight_calibration == Calibration(method="mse")
    assert mixed.activation_calibration == Calibration(method="percentile", percentile=99.9)


@pytest.mark.parametrize("text", ["4/4", "4/4/4/x", "-/4/4/4", "4/4/4/4/4", ""])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InputError) as error:
        point(text)
    assert str(error.value) == (
        f"a point must be W/A/ws/as, as 4/8/6/10, 4/4/-/- or 4/4/fp/fp, not {text!r}"
    )


def test_unknown_calibrations_are_refused() -> None:
    with pytest.raises(InputError, match="no calibration 'minmax'"):
        point("4/4/-/-", activations="minmax")
    with pytest.raises(InputError, match="percentile must be above 0 and at most 100, not 101"):
        point("4/4/-/-", activations="101")


def test_signal_to_noise() -> None:
    x = np.array([3.0, 4.0])
    assert sqnr_db(x, x) == float("inf")
    assert sqnr_db(x, x + 0.5) == pytest.approx(10 * np.log10(25 / 0.5))


def test_thinned_examples_keep_both_ends() -> None:
    recorder = Recorder()
    values = np.zeros((1, 1000), np.float32)
    values[0, 501], values[0, 703] = -5, 9
    recorder.activation("layer", values)
    thin = recorder.thinned(10)["layer"]
    assert thin.size <= 12 + 1
    assert (thin.min(), thin.max()) == (-5, 9)


def test_layers_with_a_scale_a_channel_use_the_examples() -> None:
    examples = {"layer": np.array([-7.0, 1.0], np.float32)}
    arithmetic = Quantising(point("4/4/-/-"), examples, {})
    x = np.array([[10.0, 2.4], [0.6, -20.0]], np.float32)
    np.testing.assert_allclose(arithmetic.activation("layer", x), [[7, 2], [1, -7]], rtol=1e-6)


def test_the_walked_network_is_the_packaged_one() -> None:
    image = photo(3)[0]
    whole = capture(packaged(NETWORK).model(), {"image": image}, ["flatten10"])["flatten10"]
    np.testing.assert_allclose(logits(image, Arithmetic()), whole, rtol=1e-5, atol=1e-5)
    assert score_photos(None).correct == 13


def test_photographs_keep_their_order_within_few_of_them() -> None:
    scores = [score_photos(point(text), 5).sqnr_db for text in
              ("4/4/-/-", "4/4/4/6", "4/4/fp/fp", "6/6/6/6", "8/8/fp/fp")]  # fmt: skip
    assert scores == sorted(scores)
    whole = score_photos(point("6/6/fp/fp", vector=1), 5)
    assert whole.agreeing == 5 and whole.sqnr_db > 100
    layers = score_photos(point("4/4/4/6"), 5).layers_db
    assert len(layers) == 26
    assert layers["conv1"] > layers["conv10"] > 0


def test_words_are_sounded() -> None:
    said, state = sound(("cat", "at", "network"), Arithmetic())
    assert said[0] == ("K", "AE1", "T")
    assert said[1] == ("AE1", "T")
    assert state.shape == (3, 256)
    together = dict(zip(("cat", "at", "network"), said, strict=True))
    for word, sounds in together.items():
        assert sound((word,), Arithmetic())[0] == [sounds]


def test_the_dictionary_s_sounds_are_the_network_s() -> None:
    known = dictionary()
    assert len(known) > 100_000
    assert {each for word in sample(2000) for said in known[word] for each in said} <= set(SOUNDS)
    assert len(set(sample(1000))) == 1000
    score = score_words(None, 300)
    assert score.agreeing == 300
    assert 0.6 < score.correct / 300 < 0.75


def test_words_keep_their_order() -> None:
    for width in (3, 8):
        channel, vector = (
            score_words(point(f"{width}/{width}/{s}"), 300) for s in ("-/-", "fp/fp")
        )
        assert vector.sqnr_db > channel.sqnr_db
        assert vector.agreeing > channel.agreeing


@pytest.fixture(scope="module")
def table() -> Comparison:
    told: list[str] = []
    comparison = vsquant.compare(told.append)
    assert "words 3/8/4/8" in told
    return comparison


@pytest.mark.slow
def test_every_figure_and_point_is_compared(table: Comparison) -> None:
    keys = [row.published.key for row in table.rows]
    assert len(set(keys)) == len(keys)
    assert set(load_figures("vsquant")) <= set(keys)
    points = sum(len(group["paper"]) for group in read_paper("vsquant")["points"])
    hardware = [row.published.key for row in hardware_rows()]
    assert len(keys) == len(load_figures("vsquant")) + points + len(hardware)
    assert keys[-len(hardware) :] == hardware
    assert set(vsquant.ORDERINGS) <= set(keys)


@pytest.mark.slow
def test_the_orderings_that_hold(table: Comparison) -> None:
    """The others are out of order where the table says, and are printed so."""
    rows = table.rows[: -len(hardware_rows())]
    holds = {row.published.key for row in rows if row.within}
    assert holds == {
        "overhead",
        "bits",
        "photographs.channel",
        "photographs.integer",
        "photographs.activations",
        "words.channel",
        "words.weights",
    }
    for row in rows:
        if row.within is False:
            assert row.measured[0].what == "out of order by at most" and row.measured[0].value > 0
