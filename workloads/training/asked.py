"""What is asked of a network's training behind its name.

resnet34:training,batch=4            a step; densities measured over the whole training
resnet34:training,batch=4,epoch=10   those of an epoch
resnet34:training,density=40         40 % behind every ReLU
resnet34:training,frozen=20          the first 20 layers with weights stay as they are
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.errors import WorkloadError
from workloads.layers import Network
from workloads.training.activity import Activity
from workloads.training.backward import Backward
from workloads.training.measured import measured_activity, measured_networks
from workloads.training.step import training_network

WORDS = ("epoch", "density", "frozen")
"""Settings that `training` has, beside those of the network."""


@dataclass(frozen=True, kw_only=True)
class AskedTraining:
    """epoch: of the measured training, its mean where it is None.  density_percent: behind every
    ReLU in its place.  frozen: so many layers with weights from the input on."""

    epoch: int | None = None
    density_percent: int | None = None
    frozen: int = 0

    def step_of(self, network: Network) -> Network:
        """The step of a network.  Raises WorkloadError for an epoch or a network that was not
        measured, and as `training_network`."""
        names = self._frozen(network)
        return training_network(network, frozen=names, activity=self.activity(network))

    def activity(self, network: Network) -> Activity | None:
        """None where nothing is known of the network's zeros."""
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
            raise WorkloadError(f"{name}: {word} is of training: say {name}:training,{word}=…")
        return None
    if asked != 1:
        raise WorkloadError(f"{name}: training stands alone: {name}:training, not training={asked}")
    density = words.get("density")
    if density is not None and density > 100:
        raise WorkloadError(f"{name}: density is in percent, 0 to 100, not {density}")
    if density is not None and "epoch" in words:
        raise WorkloadError(f"{name}: say density or epoch, not both")
    return AskedTraining(
        epoch=words.get("epoch"), density_percent=density, frozen=words.get("frozen", 0)
    )


__all__ = ["WORDS", "AskedTraining", "taken_training"]
