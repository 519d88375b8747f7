"""Densities measured over whole trainings on ImageNet (`measured.toml`): facts, with their source.

VGG-16 as published, without batch normalisation; ResNet-34 and ResNet-50.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from workloads.errors import WorkloadError, unknown_name
from workloads.training.activity import Activity

_FILE = Path(__file__).with_name("measured.toml")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def measured_networks() -> tuple[str, ...]:
    """Names of the built-in networks whose training was measured."""
    return tuple(name for name in _table() if name != "source")


def measured_epochs(name: str) -> tuple[int, ...]:
    """The epochs of a network that the table holds, counted from 1; the last is the training's.

    Raises WorkloadError for a network that was not measured.
    """
    return tuple(_network(name)["epochs"])


def measured_activity(name: str, epoch: int | None = None) -> Activity:
    """Of a built-in network at an epoch, or the mean of the whole training.

    Raises WorkloadError for a network or an epoch that the table does not hold.
    """
    network = _network(name)
    epochs = network["epochs"]
    if epoch is not None and epoch not in epochs:
        raise WorkloadError(
            f"{name}: the training was measured at the epochs {', '.join(map(str, epochs))}, "
            f"not {epoch}"
        )
    density = {
        tensor: round(1 - (mean if epoch is None else each[epochs.index(epoch)]), 4)
        for tensor, (each, mean) in network["zeros"].items()
    }
    when = "mean of the training" if epoch is None else f"epoch {epoch}"
    return Activity(density=density, source=f"{name}, {when}: {_table()['source']}")


def _network(name: str) -> dict[str, Any]:
    if name not in measured_networks():
        raise unknown_name("network whose training was measured", name, measured_networks())
    return _table()[name]


__all__ = ["measured_activity", "measured_epochs", "measured_networks"]
