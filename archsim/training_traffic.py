"""What a training step takes of a machine: each pass, and room off the chip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from workloads.training_record import PHASES

if TYPE_CHECKING:
    from archsim.layer.intake import Intake
    from archsim.result import LayerResult
    from workloads.training_record import Training


@dataclass(frozen=True, kw_only=True)
class PassTraffic:
    """One pass, over all its layers.  products: MACs that were made; moved_bytes: across all ports;
    vector_operations: beside the array, not timed."""

    cycles: int
    macs: int
    products: int
    moved_bytes: int
    vector_operations: int

    @classmethod
    def of(cls, layers: Iterable[LayerResult]) -> PassTraffic:
        """The sums of some layers."""
        found = tuple(layers)
        return cls(
            cycles=sum(one.cycles for one in found),
            macs=sum(one.macs for one in found),
            products=sum(one.multiplied for one in found),
            moved_bytes=sum(one.total_bytes for one in found),
            vector_operations=sum(one.vector_operations for one in found),
        )


@dataclass(frozen=True, kw_only=True)
class TrainingTraffic:
    """passes: by name (`workloads.training_record.PHASES`).

    Bytes off the chip, in the machine's own width: weights (all that is trained), their gradients,
    what the optimiser keeps of them, and what the forward pass keeps for the others, flags of ReLUs
    and poolings included.
    """

    passes: Mapping[str, PassTraffic]
    weight_bytes: int
    gradient_bytes: int
    optimiser_bytes: int
    kept_bytes: int

    @property
    def footprint_bytes(self) -> int:
        """All of it."""
        return self.weight_bytes + self.gradient_bytes + self.optimiser_bytes + self.kept_bytes

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "passes": {name: asdict(one) for name, one in self.passes.items()},
            "footprint_bytes": self.footprint_bytes,
            "weight_bytes": self.weight_bytes,
            "gradient_bytes": self.gradient_bytes,
            "optimiser_bytes": self.optimiser_bytes,
            "kept_bytes": self.kept_bytes,
        }


def training_traffic(
    training: Training | None, layers: Iterable[LayerResult], intake: Intake
) -> TrainingTraffic | None:
    """Of a step and the results of its layers on a machine; None for another network."""
    if training is None:
        return None
    found = tuple(layers)
    bits, trained = intake.weight_bits, training.trained_elements
    return TrainingTraffic(
        passes={
            name: PassTraffic.of(one for one in found if training.passes.get(one.name) == name)
            for name in PHASES
        },
        weight_bytes=ceil(trained * bits / 8),
        gradient_bytes=ceil(trained * bits / 8),
        optimiser_bytes=ceil(training.optimiser_copies * trained * bits / 8),
        kept_bytes=ceil((training.kept_elements * bits + training.kept_flag_bits) / 8),
    )


__all__ = ["PassTraffic", "TrainingTraffic", "training_traffic"]
