"""Loss and gradients of a language model of LSTM layers, by PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from training.gradients import torch_module
from training.language import Arrays, LanguageRecipe
from training.text import Words


class TorchLanguage:
    """`training.language.Gradients`.  threads: PyTorch's; with one, the same arguments give the
    same bits on one machine.  Raises InputError where PyTorch is not installed."""

    def __init__(self, recipe: LanguageRecipe, threads: int = 1) -> None:
        self._recipe = recipe
        self._torch = torch_module()
        self._torch.set_num_threads(threads)

    def __call__(
        self, weights: Mapping[str, Any], read: Words, next_words: Words, masks: Mapping[str, Any]
    ) -> tuple[float, Arrays]:
        torch = self._torch
        leaves = {
            name: torch.from_numpy(one.copy()).requires_grad_() for name, one in weights.items()
        }
        shown = {name: torch.from_numpy(one) for name, one in masks.items()}
        loss = self._loss(leaves, read, next_words, shown)
        loss.backward()
        return float(loss.detach()), {name: leaf.grad.numpy() for name, leaf in leaves.items()}

    def loss(self, weights: Mapping[str, Any], read: Words, next_words: Words) -> float:
        """Without dropout."""
        with self._torch.no_grad():
            leaves = {name: self._torch.from_numpy(one) for name, one in weights.items()}
            return float(self._loss(leaves, read, next_words, {}))

    def _loss(self, w: Mapping[str, Any], read: Words, wanted: Words, masks: Any) -> Any:
        torch = self._torch
        x = w["embedding"][torch.from_numpy(np.ascontiguousarray(read))]
        for layer in range(1, self._recipe.layers + 1):
            x = self._lstm(f"lstm{layer}", w, x, masks)
        x = x * masks["output"] if "output" in masks else x
        logits = x.flatten(0, 1) @ w["output"] + w["output/bias"]
        wanted = torch.from_numpy(np.ascontiguousarray(wanted)).flatten()
        return torch.nn.functional.cross_entropy(logits, wanted)

    def _lstm(self, name: str, w: Mapping[str, Any], x: Any, masks: Any) -> Any:
        torch = self._torch
        x = x * masks[f"{name}/input"] if f"{name}/input" in masks else x
        sums = x @ w[f"{name}/input"] + w[f"{name}/bias"]
        mask = masks.get(f"{name}/steps")
        h = c = torch.zeros_like(x[0])
        made: list[Any] = []
        for t, part in enumerate(sums):
            read = h if mask is None else h * mask[t]
            i, f, g, o = (part + read @ w[f"{name}/steps"]).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            made.append(h)
        return torch.stack(made)


__all__ = ["TorchLanguage"]
