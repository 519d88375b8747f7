"""Loss and gradients of a SimpleNet, by PyTorch: the one file that imports it (`torch_module`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.cli.verbs import missing_module
from archsim.errors import InputError
from workloads.simplenet import SimpleNet, Weights

Pictures = npt.NDArray[np.float32]


def torch_module() -> Any:
    """PyTorch.  Raises InputError where it is not installed."""
    try:
        return import_module("torch")
    except ModuleNotFoundError as error:
        raise InputError(missing_module("torch")) from error


class TorchGradients:
    """Call it with weights, pictures [n, colours, side, side] and labels [n].

    It answers with the mean cross-entropy in nats, and its gradient by every weight.
    threads: PyTorch's; with one, the same arguments give the same bits on one machine.
    Raises InputError where PyTorch is not installed.
    """

    def __init__(self, network: SimpleNet, threads: int = 1) -> None:
        self._network = network
        self._torch = torch_module()
        self._torch.set_num_threads(threads)

    def __call__(
        self, weights: Mapping[str, npt.NDArray[np.float32]], pictures: Pictures, labels: Any
    ) -> tuple[float, Weights]:
        torch = self._torch
        leaves = {
            name: torch.from_numpy(np.ascontiguousarray(array)).requires_grad_()
            for name, array in weights.items()
        }
        logits = self._logits(leaves, torch.from_numpy(pictures))
        wanted = torch.from_numpy(np.asarray(labels, np.int64))
        loss = torch.nn.functional.cross_entropy(logits, wanted)
        loss.backward()
        return float(loss.detach()), {name: leaf.grad.numpy() for name, leaf in leaves.items()}

    def logits(self, weights: Mapping[str, npt.NDArray[np.float32]], pictures: Pictures) -> Any:
        """[n, classes] float32."""
        torch = self._torch
        with torch.no_grad():
            leaves = {name: torch.from_numpy(array) for name, array in weights.items()}
            return self._logits(leaves, torch.from_numpy(pictures)).numpy()

    def _logits(self, weights: Mapping[str, Any], x: Any) -> Any:
        functional = self._torch.nn.functional
        for layer in self._network.convolutions:
            weight, bias, scale, shift = (
                weights[f"{layer.name}.{part}"] for part in ("weight", "bias", "scale", "shift")
            )
            x = functional.conv2d(x, weight, bias, padding=layer.kernel // 2)
            x = functional.group_norm(x, layer.groups, 1 + scale, shift).relu()
            if layer.pool > 1:
                x = functional.max_pool2d(x, layer.pool)
        return functional.linear(x.flatten(1), weights["classify.weight"], weights["classify.bias"])


__all__ = ["TorchGradients", "torch_module"]
