"""What the rest of archsim asks of a machine: the page to read before bringing one's own.

A design is a frozen record of sizes (`archsim.machine.design.Design`).  Its `machine_model()`
answers what the machine of these sizes does, and nobody asks a design for its class instead:

| question | answered by |
|---|---|
| what does each layer of a network cost and give | `MachineModel.run` → `NetworkRun.result` |
| what crosses the ports of a layer, and which unit did what, when | `MachineModel.answer` |
| which ports, which units | `ports`, `tracks` |
| how busy was every PE | `MachineModel.occupancy` |
| what is compiled for a first run | `MachineModel.kernels` |
| what can a user choose beside the design's sizes | `Design.options` |
| what of a layer was not counted, for want of operands | `most_actions` |

`archsim.tiled.model` and `archsim.machines.scnn.model` are the two that are built in.

What a machine cannot do it refuses with `InputError`, one sentence, before it computes: a layer by
its name, "conv1: no tiling fits ..."; an option that it does not have is refused by `taken`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machine.interval import Interval, Track
from archsim.machine.mapped import MappedLayer
from archsim.machine.option import Option, Options
from archsim.machine.options import taken
from archsim.numbers import IntArray
from archsim.ports import Port, Transfers
from archsim.result import LayerResult
from workloads.layers import Conv2d, MatMul, Network

if TYPE_CHECKING:
    from archsim.kernels import Kernel
    from archsim.machine.over_time import OverTime
    from archsim.machine.pe_occupancy import Occupancy

MatrixLayer = Conv2d | MatMul

OperandsOf = Callable[[MatrixLayer], Any]
"""Of a layer, as the design's `intake` takes them; None where there are none."""


class NetworkRun(Protocol):
    """A network on a machine: what was asked for, ready to be computed layer by layer."""

    @property
    def inside(self) -> frozenset[str]:
        """Names of vector work that the machine does while it computes the layer before."""
        ...

    def result(self, layer: MatrixLayer) -> LayerResult:
        """Cycles, actions, bytes and, with operands, the output; asked for in the network's order,
        and from the first layer on again where there are other operands.

        Raises `InputError` for a layer that the machine cannot compute, and for operands that are
        not of its shapes or widths.
        """
        ...


class Answer(ABC):
    """One layer in full, with the design's own off-chip memory, from cycle 0 on.

    It is an `archsim.ports.PortAnswer`, with what each unit did.

    What crosses the ports is computed when it is asked for: a machine whose cycles do not depend
    on values knows its intervals without operands, and raises `InputError` for words then.
    """

    @property
    @abstractmethod
    def cycles(self) -> int:
        """Of the layer, as `NetworkRun.result` has them."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Commands, tiles or passes (`MachineModel.steps_are`) that the layer took."""

    @property
    @abstractmethod
    def transfers(self) -> Mapping[str, Transfers]:
        """What crossed each port, and when."""

    @property
    @abstractmethod
    def earliest(self) -> Mapping[str, IntArray]:
        """By port, the cycle before which the memory side does not offer each word, [words]."""

    @property
    @abstractmethod
    def actions(self) -> Mapping[str, int]:
        """Action counts, by name."""

    @abstractmethod
    def intervals(self, start_cycle: int = 0) -> Iterator[Interval]:
        """What each unit did, the layer itself first, as if it began in `start_cycle`."""

    def of_steps(self, numbers: range) -> Iterator[Interval]:
        """What each unit did for some of the steps.  Raises `InputError` where nothing tells."""
        raise InputError("what was done for which step is not known of this kind of machine")

    def steps_within(self, first_cycle: int, end_cycle: int) -> range:
        """The steps for which something was done from one cycle to before another."""
        raise InputError("when each step was done is not known of this kind of machine")


class ManyCounts(NamedTuple):
    """Many designs on the same layers.

    cycles: [designs, layers], −1 where a layer does not fit; names: of what is counted
    (`counts_of`); counts: [designs, names], of all layers together.
    """

    cycles: IntArray
    names: tuple[str, ...]
    counts: npt.NDArray[np.float64]


class MachineModel(ABC):
    """The model of a design's machine.

    design: of the kind that the subclass is for; it says so by annotating `design` again.
    """

    design: Any

    timed_by_values: ClassVar[bool] = False
    """Whether cycles depend on operands, so that there is no run without them."""
    steps_are: ClassVar[str] = "tiles"
    """What a layer is cut into, in words."""

    def __init__(self, design: Design) -> None:
        self.design = design

    @property
    @abstractmethod
    def ports(self) -> tuple[Port, ...]:
        """The streams at the core's boundary, in order."""

    @property
    @abstractmethod
    def tracks(self) -> tuple[Track, ...]:
        """Its units, in the order in which they are shown."""

    def kernels(self, options: Options, *, many: bool = False) -> tuple[Kernel[..., Any], ...]:
        """Compiled functions that every run of the design with these options needs; a first run
        says so, and waits.  many: what `cycles_of_many` needs instead."""
        del options, many
        return ()

    @abstractmethod
    def run(self, network: Network, operands: OperandsOf, options: Options) -> NetworkRun:
        """Plan a network.  Raises `InputError` for options that do not fit it."""

    @abstractmethod
    def answer(self, layer: MatrixLayer, operands: Any, options: Options) -> Answer:
        """A layer in full.  operands: None where no word will be asked for, and no cycle depends on
        them.  Raises `InputError` as `NetworkRun.result`."""

    def over_time(self, network: Network, options: Options) -> OverTime | None:
        """Where the cycles of a run went over time, without operands; None where nothing tells."""
        return None

    def occupancy(self, name: str, layers: Sequence[LayerResult], bins: int) -> Occupancy | None:
        """How busy every PE was in layers that were run, one behind the other; None where nothing
        tells.  name: of the whole; bins: spans of time at most."""
        return None

    def mapped(
        self, network: Network, layers: Sequence[MatrixLayer], options: Options
    ) -> Sequence[MappedLayer]:
        """How layers of a network are mapped.  Raises `InputError` where no mapping is chosen."""
        raise InputError(f"{self.design.kind} machines have no mappings that could be chosen")

    def most_actions(self, layer: LayerResult) -> Mapping[str, float]:
        """Of actions that were not counted in a layer, for want of operands, the most that there
        can be, by name; nothing where all are counted."""
        return {}

    @classmethod
    def cycles_of_many(
        cls, designs: Sequence[Any], layers: Sequence[MatrixLayer], options: Options
    ) -> IntArray:
        """Cycles [designs, layers] of designs of this kind of model, −1 where a layer does not fit.

        options: those taken of every design.  One by one; a kind that times many at once does it
        here.
        """
        found = np.full((len(designs), len(layers)), -1, np.int64)
        for row, design in enumerate(designs):
            for column, layer in enumerate(layers):
                network = Network(name=layer.name, layers=(layer,), source="one layer")
                try:
                    run = design.machine_model().run(network, _no_operands, options)
                    found[row, column] = run.result(layer).cycles
                except InputError:
                    continue
        return found

    @classmethod
    def counts_of_many(
        cls, designs: Sequence[Any], layers: Sequence[MatrixLayer], options: Options
    ) -> ManyCounts:
        """Cycles, and counts of all layers, of designs of this kind of model.

        options: those taken of every design.  One by one; a kind that counts many at once does it
        here.
        """
        found = [cls._counted(design, layers, options) for design in designs]
        names = tuple(dict.fromkeys(name for _, counts in found for name in counts))
        cycles = np.array([each for each, _ in found], np.int64)
        counts = np.array([[one.get(name, 0.0) for name in names] for _, one in found])
        return ManyCounts(
            cycles.reshape(len(found), len(layers)), names, counts.reshape(len(found), len(names))
        )

    @classmethod
    def _counted(
        cls, design: Any, layers: Sequence[MatrixLayer], options: Options
    ) -> tuple[list[int], dict[str, float]]:
        """Cycles of each layer, −1 where it does not fit, and counts of all that do."""
        model, cycles, total = design.machine_model(), list[int](), dict[str, float]()
        for layer in layers:
            network = Network(name=layer.name, layers=(layer,), source="one layer")
            try:
                result = model.run(network, _no_operands, options).result(layer)
            except InputError:
                cycles.append(-1)
                continue
            cycles.append(result.cycles)
            for name, count in counts_of(result, model.most_actions(result)).items():
                total[name] = total.get(name, 0.0) + count
        return cycles, total

    def options_as_run(self, layer: LayerResult) -> Options:
        """What is chosen of a layer so that `answer` does what a result of it says."""
        return {}

    def options_of_step(self, options: Options, layer: MatrixLayer, step: MatrixLayer) -> Options:
        """What was chosen of a layer, as options of one of its steps (`workloads.steps`).

        Those that are told by a layer's name are to be told by the step's.
        """
        return options

    def taken(self, given: Options) -> Options:
        """The options that were chosen.

        given: by name; those that are None, False or empty were not chosen.
        Raises `InputError` for one that the machine does not have.
        """
        return taken(self.design, given)


def counts_of(layer: LayerResult, most: Mapping[str, float]) -> dict[str, float]:
    """Everything of a layer that components are priced by.

    most: the most that there can be of what was not counted.
    """
    moved = {f"{name}_bytes": float(count) for name, count in layer.bytes_moved.items()}
    return {
        **most,
        **{name: float(count) for name, count in layer.actions.items()},
        **moved,
        "mac": float(layer.macs),
        "cycle": float(layer.cycles),
    }


def _no_operands(layer: MatrixLayer) -> None:
    """For timing only."""


__all__ = [
    "Answer",
    "MachineModel",
    "ManyCounts",
    "MatrixLayer",
    "NetworkRun",
    "OperandsOf",
    "Option",
    "Options",
    "counts_of",
]
