"""How sparse a layer's operands are, and how many of its outputs anyone needs, where only shares
are known: for timing without values."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.errors import WorkloadError


@dataclass(frozen=True, kw_only=True)
class Densities:
    """Shares from 0 to 1: of the values of ifmap and weight that are not zero, and of the outputs
    that are needed (`workloads.operands.Operands.needed`).  Raises WorkloadError for others."""

    ifmap: float = 1.0
    weight: float = 1.0
    output: float = 1.0

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            if not 0 <= share <= 1:
                raise WorkloadError(f"density of {name} must be 0 to 1, not {share}")

    @property
    def work(self) -> float:
        """The share of a layer's MACs that is left where all three are skipped, and are
        independent of one another."""
        return self.ifmap * self.weight * self.output


DENSE = Densities()
"""Nothing is known to be zero, and every output is needed."""

__all__ = ["DENSE", "Densities"]
