"""Calibration: each method against its definition, and entropy against the published steps."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim.codecs.calibration import BINS, FEWEST_BINS, MSE_STEPS, Calibration, calibrate
from archsim.codecs.vsquant import Floats, VectorFormat, quantize
from archsim.errors import InputError

EIGHT = VectorFormat(bits=8)
UNSIGNED = VectorFormat(bits=4, signed=False)


def _heavy_tail(seed: int, size: int = 4000) -> Floats:
    return np.random.default_rng(seed).standard_t(3, size=(1, size))


def _alpha(x: Floats, form: VectorFormat, method: str, percentile: float = 99.0) -> float:
    how = Calibration(method=method, percentile=percentile)
    return float(calibrate(x, form, how).item())


def test_max_is_what_quantize_takes_by_itself() -> None:
    x = np.random.default_rng(0).normal(size=(3, 8, 2, 2))
    alpha = calibrate(x, EIGHT, Calibration(), coarse_axis=0)
    assert alpha.shape == (3, 1, 1, 1)
    given_, own = (quantize(x, EIGHT, coarse_axis=0, alpha=each) for each in (alpha, None))
    np.testing.assert_array_equal(given_.coarse, own.coarse)
    np.testing.assert_array_equal(given_.values, own.values)


def test_a_percentile_is_that_of_magnitudes() -> None:
    x = np.arange(-100.0, 1.0)[None]
    assert _alpha(x, EIGHT, "percentile", 90) == 90
    assert _alpha(x, EIGHT, "percentile", 100) == 100


@pytest.mark.parametrize("method", ["max", "percentile", "entropy", "mse"])
def test_every_coarse_channel_is_calibrated_by_itself(method: str) -> None:
    x = np.stack([_heavy_tail(seed)[0] for seed in range(3)])
    how = Calibration(method=method, percentile=99)
    together = calibrate(x, EIGHT, how, coarse_axis=0)
    assert together.shape == (3, 1)
    for row, alpha in zip(x, together, strict=True):
        assert calibrate(row[None], EIGHT, how).item() == alpha.item()
    across = calibrate(x.T, EIGHT, how, coarse_axis=1)
    np.testing.assert_array_equal(across, together.T)


@settings(max_examples=20)
@given(seed=st.integers(0, 99), bits=st.integers(2, 8))
def test_mse_is_the_best_of_its_fractions(seed: int, bits: int) -> None:
    x, form = _heavy_tail(seed, 200), VectorFormat(bits=bits)

    def error(alpha: float) -> float:
        return float(np.square(x - quantize(x, form, alpha=alpha).dequantize()).sum())

    fractions = [np.abs(x).max() * step / MSE_STEPS for step in range(1, MSE_STEPS + 1)]
    least = min(error(alpha) for alpha in fractions)
    assert error(_alpha(x, form, "mse")) == pytest.approx(least, rel=1e-12)


def test_mse_cuts_nothing_without_gain() -> None:
    assert _alpha(np.array([[7.0, -3.0, 1.0]]), VectorFormat(bits=4), "mse") == 7


def _published_entropy(x: Floats, levels: int) -> float:
    """The published steps with loops: cut, merge, spread, compare."""
    top = float(np.abs(x).max())
    counts = np.histogram(np.abs(x), bins=BINS, range=(0, top))[0].astype(float)
    counts[0] = counts[1]
    best, least = 0, float("inf")
    for cut in range(max(FEWEST_BINS, levels), BINS + 1):
        p = list(counts[:cut])
        p[-1] += counts[cut:].sum()
        q = [0.0] * cut
        for level in range(levels):
            bins = range(level * cut // levels, (level + 1) * cut // levels)
            filled = [at for at in bins if counts[at] > 0]
            for at in filled:
                q[at] = sum(counts[at_] for at_ in filled) / len(filled)
        divergence = 0.0
        for one, other in zip(p, q, strict=True):
            if one and not other:
                divergence = float("inf")
            elif one:
                divergence += one / sum(p) * log(one / sum(p) / (other / sum(q)))
        if divergence < least:
            best, least = cut, divergence
    return min((best + 0.5) / BINS * top, top)


def test_entropy_is_that_of_the_published_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BINS", 100), ("FEWEST_BINS", 16)):
        monkeypatch.setattr(f"archsim.codecs.calibration.{name}", value)
        monkeypatch.setitem(globals(), name, value)
    cuts: set[float] = set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        tails = (_heavy_tail(seed), rng.normal(size=(1, 4000)), rng.exponential(size=(1, 300)))
        for x in tails:
            assert _alpha(x, VectorFormat(bits=4), "entropy") == _published_entropy(x, 8)
            assert _alpha(np.abs(x), UNSIGNED, "entropy") == _published_entropy(x, 16)
            cuts.add(_alpha(x, VectorFormat(bits=4), "entropy") / float(np.abs(x).max()))
    assert len(cuts) > 4  # neither all the first cut nor all the last


def test_entropy_cuts_a_tail_and_ignores_zeros() -> None:
    x = _heavy_tail(1)
    cut = _alpha(x, EIGHT, "entropy")
    assert 0.05 * np.abs(x).max() < cut < 0.9 * np.abs(x).max()
    assert _alpha(np.concatenate([x, np.zeros((1, 9000))], 1), EIGHT, "entropy") == cut


@pytest.mark.parametrize("method", ["max", "percentile", "entropy", "mse"])
def test_zeros_and_constants(method: str) -> None:
    assert _alpha(np.zeros((1, 10)), EIGHT, method) == 0
    assert _alpha(np.full((1, 10), -2.5), EIGHT, method) == pytest.approx(2.5)


def test_bad_calibrations_are_refused() -> None:
    with pytest.raises(InputError) as error:
        Calibration(method="entropi")
    assert str(error.value) == "no calibration 'entropi'; did you mean entropy?"
    with pytest.raises(InputError) as error:
        Calibration(method="percentile", percentile=0)
    assert str(error.value) == "percentile must be above 0 and at most 100, not 0"
    with pytest.raises(InputError) as error:
        calibrate(np.ones((1, 2)), VectorFormat(bits=16), Calibration(method="entropy"))
    assert str(error.value) == "entropy calibration is for at most 10 bits, not 16"
    with pytest.raises(InputError) as error:
        calibrate(np.array([[1.0, np.inf]]), EIGHT, Calibration(), name="fire2")
    assert str(error.value) == "fire2 must be finite, not inf at [0, 1]"
    with pytest.raises(InputError) as error:
        calibrate(np.array([[-1.0]]), UNSIGNED, Calibration())
    assert str(error.value) == "values must not be negative if unsigned, as -1 is"
    with pytest.raises(InputError) as error:
        calibrate(np.ones((1, 2)), EIGHT, Calibration(), coarse_axis=2)
    assert str(error.value) == "coarse_axis must be an axis of shape (1, 2), which 2 is not"
