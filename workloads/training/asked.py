"""What is asked of a network's training behind its name.

resnet34:training,batch=4            a step; densities measured over the whole training
resnet34:training,batch=4,epoch=10   those of an epoch
resnet34:training,density=40         40 % behind every ReLU
resnet34:training,clustering=0       masks are drawn without clusters
resnet34:training,frozen=20          the first 20 layers with weights stay as they are

lstm-zaremba-medium:training,dropout=3                case 3 of dropout at the published rate
lstm-zaremba-medium:training,dropout=1,rate=30        case 1, 30 %
lstm-zaremba-medium:training,dropout=3,recurrent      of the layers' own states too
lstm-zaremba-medium:training,dropout=3,rate=0         nothing dropped, but step by step
lstm-zaremba-medium:training,dropout=3,draw=7         other units
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workloads.builtin import published_dropout
from workloads.errors import WorkloadError
from workloads.layers import Network
from workloads.training.activity import Activity
from workloads.training.backward import Backward
from workloads.training.dropout import Dropout
from workloads.training.measured import measured_activity, measured_networks
from workloads.training.step import training_network

WORDS = (
    "epoch", "density", "clustering", "frozen", "dropout", "rate", "recurrent", "draw"
)  # fmt: skip
"""Settings that `training` has, beside those of the network."""


@dataclass(frozen=True, kw_only=True)
class AskedTraining:
    """epoch: of the measured training, its mean where it is None.  density_percent: behind every
    ReLU in its place.  clustering_percent: of drawn masks; None: as measured.  frozen: so many
    layers with weights from the input on.  dropout: of recurrent layers, if any."""

    epoch: int | None = None
    density_percent: int | None = None
    clustering_percent: int | None = None
    frozen: int = 0
    dropout: Dropout | None = None

    def step_of(self, network: Network) -> Network:
        """The step of a network.  Raises WorkloadError for an epoch or a network that was not
        measured, and as `training_network`."""
        names = self._frozen(network)
        return training_network(
            network, frozen=names, activity=self.activity(network), dropout=self.dropout
        )

    def activity(self, network: Network) -> Activity | None:
        """None where nothing is known of the network's zeros: WorkloadError, if a clustering is."""
        found = self._known(network)
        if self.clustering_percent is None:
            return found
        if found is None:
            raise WorkloadError(
                f"{network.name}: no densities are known whose clustering it could be; say density "
                "too"
            )
        return replace(found, clustering=self.clustering_percent / 100)

    def _known(self, network: Network) -> Activity | None:
        if self.density_percent is not None:
            return Activity.even(network, self.density_percent / 100)
        if self.epoch is None and network.name not in measured_networks():
            return None
        return measured_activity(network.name, self.epoch)

    def _frozen(self, network: Network) -> list[str]:
        if not self.frozen:
            return []
        backward = Backward(network)
        names = [node.name for node in network.flow if backward.trains(node)]
        if self.frozen >= len(names):
            raise WorkloadError(
                f"{network.name}: frozen must be less than its {len(names)} layers with weights, "
                f"not {self.frozen}"
            )
        return names[: self.frozen]


def taken_training(name: str, settings: dict[str, int]) -> AskedTraining | None:
    """What of a network's settings is of its training, taken from them; None where it is not asked
    for.  Raises WorkloadError for densities above 100 %, and for these words without `training`."""
    asked = settings.pop("training", None)
    words = {word: settings.pop(word) for word in WORDS if word in settings}
    if asked is None:
        if words:
            word = next(iter(words))
            said = word if word == "recurrent" else f"{word}=…"
            raise WorkloadError(f"{name}: {word} is of training: say {name}:training,{said}")
        return None
    if asked != 1:
        raise WorkloadError(f"{name}: training stands alone: {name}:training, not training={asked}")
    density = words.get("density")
    for word in ("density", "clustering"):
        if words.get(word, 0) > 100:
            raise WorkloadError(f"{name}: {word} is in percent, 0 to 100, not {words[word]}")
    if density is not None and "epoch" in words:
        raise WorkloadError(f"{name}: say density or epoch, not both")
    return AskedTraining(
        epoch=words.get("epoch"),
        density_percent=density,
        clustering_percent=words.get("clustering"),
        frozen=words.get("frozen", 0),
        dropout=_dropout(name, words),
    )


def _dropout(name: str, words: dict[str, int]) -> Dropout | None:
    """What is asked of dropout.  Raises WorkloadError for its words without it, and for a rate
    that neither the name nor the network's source says."""
    case = words.get("dropout")
    if case is None:
        word = next((one for one in ("rate", "recurrent", "draw") if one in words), None)
        if word is not None:
            raise WorkloadError(
                f"{name}: {word} is of dropout: say {name}:training,dropout=CASE,{word}, with a "
                "case of 1 to 4"
            )
        return None
    percent = words.get("rate", published_dropout(name))
    recurrent = words.get("recurrent", 0)
    if recurrent > 1:
        raise WorkloadError(f"{name}: recurrent stands alone, or is 0 or 1, not {recurrent}")
    if percent is None:
        raise WorkloadError(f"{name}: say the rate of dropout in percent: dropout={case},rate=50")
    return Dropout(case=case, percent=percent, recurrent=bool(recurrent), seed=words.get("draw", 0))


__all__ = ["WORDS", "AskedTraining", "taken_training"]
