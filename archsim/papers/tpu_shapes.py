"""The six workloads of the TPU paper, with shapes reconstructed from its Table 1.

The paper publishes of each workload the number of layers, the number of weights, the operations
per weight byte and the batch, but no shape.  The rules below turn these totals into shapes; none
was chosen by its result.

* Fully connected layers are equal and square: side √(weights / layers), rounded.
* A fully connected layer uses each weight once an input, so its operations (here: MACs) per
  weight byte are the batch, as Table 1 says of the MLPs and the LSTMs.  An LSTM is therefore its
  FC layers, each computed once; its vector layers take no time of the matrix unit.
* CNN0: 2888 / 8 images = 361 = 19 · 19 uses of a weight an image, hence maps of 19 × 19, stride 1;
  kernels are 3 × 3 with padding 1 (assumed), layers equal, as many filters as channels.
* CNN1: its convolutions are of CNN0's kind, so conv weights · 361 · 32 + FC weights · 32 =
  1750 · 100 M splits the 100 M into 14.9 M in 72 convolutions and 85.1 M in 4 FC layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import sqrt
from typing import Any

from archsim.papers.figures import read_paper
from workloads.layers import Conv2d, MatMul, Network

MAP = 19
"""Height and width of the feature maps of both CNNs."""

KERNEL = 3


def _source(name: str) -> str:
    return f"Jouppi et al., ISCA 2017, Table 1, {name}: shapes reconstructed from its totals"


def _fully_connected(layers: int, weights: float, batch: int) -> list[MatMul]:
    side = round(sqrt(weights / layers))
    return [MatMul(name=f"fc{at}", m=batch, n=side, k=side) for at in range(layers)]


def _convolutions(layers: int, weights: float, batch: int, lowered: bool) -> list[Conv2d | MatMul]:
    channels = round(sqrt(weights / layers) / KERNEL)
    pads = dict.fromkeys(("pad_top", "pad_left", "pad_bottom", "pad_right"), KERNEL // 2)
    if lowered:
        pixels, taps = batch * MAP * MAP, KERNEL * KERNEL
        return [
            MatMul(name=f"conv{at}", m=pixels, n=channels, k=taps * channels)
            for at in range(layers)
        ]
    return [
        Conv2d(
            name=f"conv{at}", channels=channels, filters=channels, batch=batch,
            ifmap_height=MAP, ifmap_width=MAP, kernel_height=KERNEL, kernel_width=KERNEL, **pads,
        )
        for at in range(layers)
    ]  # fmt: skip


@cache
def workload(name: str, *, lowered: bool = False) -> Network:
    """A workload of Table 1 by its name there.

    lowered: convolutions as the matrix products which the array computes, all images and the
    whole window R · S · C at once; MACs and weights are the same.
    """
    entry: Mapping[str, Any] = read_paper("tpu")["table1"][name]
    weights, batch = float(entry["weights"]), int(entry["batch"])
    conv_weights = 0.0
    if entry["conv_layers"]:
        uses = float(entry["macs_per_weight"]) - batch
        conv_weights = weights * uses / (batch * (MAP * MAP - 1)) if entry["fc_layers"] else weights
    layers: list[Conv2d | MatMul] = []
    if entry["conv_layers"]:
        layers += _convolutions(int(entry["conv_layers"]), conv_weights, batch, lowered)
    if entry["fc_layers"]:
        layers += _fully_connected(int(entry["fc_layers"]), weights - conv_weights, batch)
    return Network(name=name, layers=tuple(layers), source=_source(name))


def workload_names() -> tuple[str, ...]:
    """MLP0 … CNN1, in the order of Table 1."""
    return tuple(read_paper("tpu")["table1"])
