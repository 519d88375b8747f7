"""How often a network errs whose stored weights have errors: ONNX Runtime, no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.errors import require
from archsim.robust.model import RobustModel
from workloads.labelled import Labelled
from workloads.optional import load_optional
from workloads.simplenet_onnx import simplenet_onnx
from workloads.threads import threads

BATCH = 32
"""Pictures at once: what lies between two layers stays in the caches."""


class Evaluator:
    """A network with the weights of one chip; at_once: threads, None for those of the process.

    Weights are constants of the session, which ONNX Runtime lays out for its kernels: to make one
    takes some 20 ms, and saves a third of the time of 10,000 pictures.
    """

    def __init__(
        self,
        model: RobustModel,
        codes: npt.NDArray[np.uint8] | None = None,
        at_once: int | None = None,
    ) -> None:
        runtime: Any = load_optional("onnxruntime", install="onnxruntime", purpose="evaluation")
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads() if at_once is None else at_once
        options.inter_op_num_threads = 1
        network = simplenet_onnx(model.network, model.values(codes))
        self._session = runtime.InferenceSession(
            network.SerializeToString(), options, ["CPUExecutionProvider"]
        )

    def logits(self, pictures: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """[n, classes], of pictures [n, colours, side, side]."""
        return self._session.run(["logits"], {"pictures": pictures})[0]

    def wrong(self, data: Labelled) -> int:
        """How many pictures are taken for another class; logits that are no numbers are wrong."""
        count = 0
        for start in range(0, len(data), BATCH):
            part = slice(start, start + BATCH)
            pictures = data.pictures[part].astype(np.float32) / np.float32(255)
            logits = self.logits(pictures)
            right = (logits.argmax(axis=1) == data.labels[part]) & np.isfinite(logits).all(axis=1)
            count += int((~right).sum())
        return count


def error_percent(
    model: RobustModel,
    data: Labelled,
    codes: npt.NDArray[np.uint8] | None = None,
    at_once: int | None = None,
) -> float:
    """Per cent of the pictures that are taken for another class, with these codes or the model's.

    Raises InputError where the pictures are not of the model's size.
    """
    size = (model.network.colours, model.network.side, model.network.side)
    found = data.pictures.shape[1:]
    require(found == size, f"{data.name}: pictures of {found}, where the model takes {size}")
    return 100 * Evaluator(model, codes, at_once).wrong(data) / len(data)


def true_error_bound(test_pictures: int, chips: int, delta: float = 0.01) -> float:
    """By how much, per cent, the true robust error may exceed the mean measured.

    With probability 1 - delta, over n pictures and l chips (Stutz et al., supplementary material):
    sqrt(ln((n + 1) / delta) / n) (sqrt(l) + sqrt(n)) / sqrt(l).
    """
    n, chips_root = test_pictures, np.sqrt(chips)
    return float(
        100 * np.sqrt(np.log((n + 1) / delta) / n) * (chips_root + np.sqrt(n)) / chips_root
    )


def deviation(values: Mapping[int, float]) -> tuple[float, float]:
    """Mean and standard deviation over chips (of the population, as the paper's)."""
    array = np.array(list(values.values()))
    return float(array.mean()), float(array.std())


__all__ = ["Evaluator", "deviation", "error_percent", "true_error_bound"]
