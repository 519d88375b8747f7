"""What a simulation answers: frozen, additive, with where everything came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from archsim.causes import CAUSES
from archsim.layer_result import TRAFFIC, Actions, AsFile, LayerResult
from archsim.schema.result import SCHEMA_VERSION, VERSION_FIELD
from energy_models.frozen import frozen

if TYPE_CHECKING:
    import pandas as pd

    from archsim.kv_traffic import KvTraffic
    from archsim.plots import ResultPlots
    from archsim.training_traffic import TrainingTraffic


@dataclass(frozen=True, kw_only=True)
class NetworkResult:
    """A network on a design: the layers in order, and what would let it be run again."""

    design: Mapping[str, Any]
    design_name: str
    network: str
    network_source: str
    clock_hz: float
    layers: tuple[LayerResult, ...]
    skipped: tuple[str, ...] = ()
    seed: int | None = None
    version: str = ""
    timed_by_values: bool = False
    """Whether cycles depend on the operands' values."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What was chosen of the machine for this run, as plain data (`archsim.machine.option`)."""
    kv_cache: KvTraffic | None = None
    """What a language model keeps of its tokens, of networks that say so."""
    training: TrainingTraffic | None = None
    """What each pass of a training step takes, of networks that are one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", frozen(self.design))
        object.__setattr__(self, "options", frozen(self.options))

    @property
    def cycles(self) -> int:
        return sum(layer.cycles for layer in self.layers)

    @property
    def serial_cycles(self) -> int:
        return sum(layer.serial_cycles for layer in self.layers)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def seconds(self) -> float:
        """Cycles at the design's clock."""
        return self.cycles / self.clock_hz

    @property
    def utilization(self) -> float:
        """MACs (of a sparse machine, products) over those that the array could have done."""
        per_cycle = self.layers[0].macs_per_cycle if self.layers else 1
        multiplied = sum(layer.multiplied for layer in self.layers)
        return multiplied / (self.cycles * per_cycle) if self.cycles else 0.0

    @property
    def where(self) -> dict[str, int]:
        """Where the cycles went, over all layers."""
        return {name: sum(layer.where[name] for layer in self.layers) for name in CAUSES}

    @property
    def bytes_moved(self) -> dict[str, int]:
        """Bytes across each port, over all layers."""
        return {name: sum(layer.bytes_moved[name] for layer in self.layers) for name in TRAFFIC}

    @property
    def actions(self) -> Actions:
        """Action counts over all layers."""
        total = Actions()
        for layer in self.layers:
            total = total + layer.actions
        return total

    def without_values(self) -> NetworkResult:
        """The same, but for the layers' ofmaps."""
        return replace(self, layers=tuple(replace(one, ofmap=None) for one in self.layers))

    @property
    def plot(self) -> ResultPlots:
        """Matplotlib figures: `result.plot.cycles()`, `.roofline()`, `.energy()` and others."""
        from archsim.plots import ResultPlots

        return ResultPlots(self)

    def to_frame(self) -> pd.DataFrame:
        """One row a layer, as a pandas frame."""
        import pandas as pd

        if not self.layers:
            return pd.DataFrame(index=pd.Index([], name="name"))
        records = [layer.record() for layer in self.layers]
        for record in records:
            record.update({f"actions_{k}": v for k, v in record.pop("actions").items()})
            record.pop("tiling")
            record.pop("per_pe", None)
        return pd.DataFrame.from_records(records).set_index("name")

    def record(self) -> dict[str, Any]:
        """The whole result as plain data: what `docs/schema/result.json` describes."""
        return {
            VERSION_FIELD: SCHEMA_VERSION,
            "archsim": self.version,
            "design_name": self.design_name,
            "design": dict(self.design),
            "network": self.network,
            "network_source": self.network_source,
            "skipped": list(self.skipped),
            "seed": self.seed,
            **({"options": dict(self.options)} if self.options else {}),
            "timed_by_values": self.timed_by_values,
            "cycles": self.cycles,
            "serial_cycles": self.serial_cycles,
            "seconds": self.seconds,
            "macs": self.macs,
            "utilization": self.utilization,
            "where": self.where,
            "bytes_moved": self.bytes_moved,
            "actions": dict(self.actions),
            "layers": [layer.record() for layer in self.layers],
            **({"kv_cache": self.kv_cache.record()} if self.kv_cache else {}),
            **({"training": self.training.record()} if self.training else {}),
        }

    def to_json(self) -> str:
        """`record` as JSON."""
        return json.dumps(self.record(), indent=2, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return cast("np.generic[Any]", value).item()
    raise TypeError(f"{type(value).__name__} has no place in a result")


__all__ = ["TRAFFIC", "Actions", "AsFile", "LayerResult", "NetworkResult"]
