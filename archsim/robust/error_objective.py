"""The test error of a trained network on a machine, in its own memories: an objective of sweeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from archsim.errors import InputError, require, require_positive, require_within
from archsim.machine.design import Design
from archsim.robust.measured import MOST_CHIPS
from archsim.robust.model import RobustModel, shipped, shipped_names
from archsim.robust.on_machine import (
    CALIBRATED_PICTURES,
    MachineEvaluator,
    calibrated,
    matrix_network,
    require_held,
)
from archsim.robust.placed import chips_of
from workloads.labelled import Labelled, labelled
from workloads.layers import Network

MOST_SHOWN = 1_000_000
"""Pictures of a point: some twenty minutes."""


@dataclass(frozen=True, kw_only=True)
class ErrorObjective:
    """The share of test pictures, 0 to 1, that a trained network takes for another class.

    The network is computed by the design, with what its memories give back; where one of them may
    fail, the mean over chips is told.

    model: that comes with archsim; data: the set of pictures that it is tested with; images: of
    them, at even distances; chips: from the chip that the memories name on; batch: pictures at once
    in the network that cycles and energy are of.  Errors are found as `archsim voltage` finds them
    (`archsim.robust.on_machine`), 100 pictures at once.
    """

    __test__ = False  # pytest takes it for a test by its name
    unit: ClassVar[str] = "share"

    model: str = "mnist-int8-randbet-1"
    data: str = "mnist"
    images: int = 100
    chips: int = 2
    batch: int = 1

    def __post_init__(self) -> None:
        if self.model not in shipped_names():
            shipped(self.model)  # says which there are
        require_positive(images=self.images, chips=self.chips, batch=self.batch)
        require(self.chips <= MOST_CHIPS, f"chips must be at most {MOST_CHIPS}, not {self.chips}")
        shown = self.images * self.chips
        require(
            shown <= MOST_SHOWN,
            f"images × chips must be at most {MOST_SHOWN:,} pictures a point, not {shown:,}",
        )
        require_within("macs", **{f"batch={self.batch}": self.batch})

    @property
    def network(self) -> Network:
        """The model's matrix layers for `batch` pictures."""
        name = self.model if self.batch == 1 else f"{self.model}:batch={self.batch}"
        return replace(matrix_network(_model(self.model), self.batch), name=name)

    def check(self, design: Design, network: Network) -> None:
        """Raise `InputError` for another network, and for operands that do not hold the codes."""
        own = self.network
        require(
            network.layers == own.layers,
            f"test_error is of {own.name}, not of {network.name}: leave networks out, or set model",
        )
        require_held(_model(self.model), design.intake.source_bits)
        _evaluator(self.model, self.data)
        _pictures(self.data, self.images)

    def value(self, design: Design, network: Network) -> float:
        """Of a design.  Raises InputError where it cannot hold or compute the network."""
        require_held(_model(self.model), design.intake.source_bits)
        test = _pictures(self.data, self.images)
        evaluator = _evaluator(self.model, self.data)
        designs = chips_of(design, self.chips)
        wrong = sum(sum(evaluator.wrong(one, test)) for one in designs)
        return wrong / (len(test) * len(designs))


@lru_cache(maxsize=2)
def _model(name: str) -> RobustModel:
    return shipped(name)


@lru_cache(maxsize=2)
def _evaluator(model: str, data: str) -> MachineEvaluator:
    """With ranges of the set's training pictures."""
    trained_with = labelled(data, "train").spread(CALIBRATED_PICTURES)
    loaded = _model(model)
    size = (loaded.network.colours, loaded.network.side, loaded.network.side)
    if trained_with.pictures.shape[1:] != size:
        found = trained_with.pictures.shape[1:]
        raise InputError(f"{data}: pictures of {found}, where {model} takes {size}")
    return MachineEvaluator(loaded, calibrated(loaded, trained_with.pictures))


@lru_cache(maxsize=2)
def _pictures(data: str, images: int) -> Labelled:
    """So many of a test set, at even distances."""
    whole = labelled(data, "test")
    require(
        images <= len(whole),
        f"images must be at most {len(whole)}, those of {data}, not {images}",
    )
    return whole.spread(images)


__all__ = ["ErrorObjective"]
