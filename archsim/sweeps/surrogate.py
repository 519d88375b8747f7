"""What a design may give, learned from designs that were simulated: gradient-boosted trees.

A model for each objective, of its logarithm where it is above 0 everywhere, over the places of the
fields' values (Friedman, Annals of Statistics 2001; by scikit-learn's histograms, as LightGBM's).
It orders candidates, and says nothing that is kept: a study has simulated points alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.numbers import IntArray
from archsim.sweeps.front import FloatArray, front_of

TREES = 200

LEAF = 3
"""Designs of a leaf at least: a study of expensive points has few."""

ENOUGH = 4
"""Designs that were refused, and that were not, from which on it is learned which will be."""


class Surrogate:
    """Fitted to designs: genes [designs, fields], values [designs, objectives], NaN of those that
    were refused.  The same seed gives the same model."""

    def __init__(self, genes: IntArray, values: FloatArray, seed: int) -> None:
        with _one_thread():
            self._fit(genes, values, seed)

    def _fit(self, genes: IntArray, values: FloatArray, seed: int) -> None:
        ensemble = import_module("sklearn.ensemble")
        shape: dict[str, Any] = {
            "max_iter": TREES,
            "min_samples_leaf": LEAF,
            "early_stopping": False,
            "random_state": seed,
        }
        good = ~np.isnan(values).any(axis=1)
        known = values[good]
        self._logarithmic = np.array([bool((column > 0).all()) for column in known.T])
        self._models: list[Any] = []
        for column in range(known.shape[1]):
            model = ensemble.HistGradientBoostingRegressor(**shape)
            wanted = np.log(known[:, column]) if self._logarithmic[column] else known[:, column]
            self._models.append(model.fit(genes[good], wanted))
        self._refuses: Any = None
        if min(good.sum(), (~good).sum()) >= ENOUGH:
            self._refuses = ensemble.HistGradientBoostingClassifier(**shape).fit(genes, good)

    def values(self, genes: IntArray) -> FloatArray:
        """[designs, objectives] that are expected, NaN of designs that will be refused."""
        with _one_thread():
            return self._predicted(genes)

    def _predicted(self, genes: IntArray) -> FloatArray:
        found = np.stack([model.predict(genes) for model in self._models], axis=1)
        found = np.where(self._logarithmic, np.exp(np.where(self._logarithmic, found, 0.0)), found)
        if self._refuses is not None:
            found[~self._refuses.predict(genes)] = np.nan
        return found


def _one_thread() -> AbstractContextManager[object]:
    """Fits are so small that threads would mostly wait for each other."""
    import_module("sklearn.ensemble")  # so that its threads are there to be limited
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    return threadpool_limits(1, user_api="openmp")


def in_layers(values: FloatArray, most: int) -> IntArray:
    """Places of at most so many of [designs, objectives]: the front, then the front of the rest, …;
    of the last, evenly along the first objective.  Those with a NaN come last, in order."""
    rest = np.flatnonzero(~np.isnan(values).any(axis=1))
    found: list[IntArray] = []
    left = most
    while len(rest) and left > 0:
        layer = rest[front_of(values[rest])]
        rest = np.setdiff1d(rest, layer, assume_unique=True)
        layer = layer[np.argsort(values[layer, 0], kind="stable")]
        if len(layer) > left:
            layer = layer[np.linspace(0, len(layer) - 1, left).round().astype(np.int64)]
        found.append(layer)
        left -= len(layer)
    unknown = np.flatnonzero(np.isnan(values).any(axis=1))[: max(left, 0)]
    return np.concatenate([*found, unknown]).astype(np.int64)


def rank_correlation(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Spearman's: 1 where both order alike, 0 where one says nothing of the other."""
    stats = import_module("scipy.stats")
    return float(stats.spearmanr(one, other).statistic)


__all__ = ["Surrogate", "in_layers", "rank_correlation"]
