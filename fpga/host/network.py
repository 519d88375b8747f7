"""Layers and whole networks through a core behind a byte link, word for word beside the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archsim.errors import UserError
from archsim.machine.design import Design
from archsim.machine.model import MatrixLayer
from archsim.port_words import port_words
from fpga.host.memories import exact
from fpga.host.session import Session, Words
from rtl.layer_case import layer_case
from workloads.integer_network import IntegerRun, run_integer
from workloads.layers import Network
from workloads.steps import one_step, step_operands, steps_in

if TYPE_CHECKING:
    import onnx

    from rtl.benches.verilated import Verilated

__all__ = ["BoardError", "LayerOnBoard", "NetworkOnBoard", "layer_on_board", "network_on_board"]


class BoardError(UserError):
    """The hardware gives other words than the model."""


@dataclass(frozen=True, kw_only=True)
class LayerOnBoard:
    """A layer that has crossed the link, equal to the model in every word.

    cycles: that the core counted while the layer was pending or running, its waits for the link
    among them.  waits: of these, by port, cycles in which it waited.  actions: as counted, by name.
    core_cycles: of the emitted core on ports that never wait, equal to the model's; None where that
    was not asked for.
    """

    name: str
    words: int
    cycles: int
    waits: Mapping[str, int]
    actions: Mapping[str, int]
    core_cycles: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkOnBoard:
    """A network whose matrix layers were computed by the hardware, the rest by the host.

    run: all that it gave (`workloads.integer_network`).  retries: requests that were sent again.
    """

    layers: tuple[LayerOnBoard, ...]
    run: IntegerRun
    retries: int

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "layers": [asdict(one) for one in self.layers],
            "top1": int(self.run.output.argmax()),
            "same_top1_as_float": self.run.same_top1,
            "max_error": self.run.max_error,
            "retries": self.retries,
        }


def network_on_board(
    session: Session,
    model: onnx.ModelProto,
    image: NDArray[np.float32],
    *,
    core: Verilated | None = None,
    progress: Callable[[LayerOnBoard], object] = lambda layer: None,
) -> NetworkOnBoard:
    """The network of one input, in integers of the core's width, from the image to its output.

    What follows a layer is computed from the words that the hardware gave.  core: the emitted core
    without the link, on which cycles are compared too.  Vector work is the host's: pooling, sums of
    branches, softmax.  Raises `BoardError` at the first layer that differs, `LinkError` where the
    board does not answer, `WorkloadError` for an operator that `run_integer` does not have.
    """
    bits = session.design.intake.source_bits
    found: list[LayerOnBoard] = []

    def hardware(layer: MatrixLayer, operands: Any) -> NDArray[Any]:
        ofmap, one = layer_on_board(session, layer, operands, core=core)
        found.append(one)
        progress(one)
        return ofmap

    run = run_integer(model, image, bits=bits, matmul=hardware)
    return NetworkOnBoard(layers=tuple(found), run=run, retries=session.retries)


def layer_on_board(
    session: Session, layer: MatrixLayer, operands: Any, *, core: Verilated | None = None
) -> tuple[NDArray[Any], LayerOnBoard]:
    """A layer's ofmap, every word of which the hardware gave, and what it counted.

    On a board whose memories fail every layer begins with a reset, as the model's does.

    Raises `BoardError` where a word, an action or, on `core`, a cycle differs from the model.
    """
    design = session.design
    model = design.machine_model()
    counted = _Counted()
    words = 0
    for number in range(steps_in(layer)):
        step = one_step(layer, number)
        part = step_operands(layer, operands, number)
        if not exact(design):  # which half of a memory is next hangs on the layers before
            session.restart()
        before = _Counted.of(session)
        words += _through(session, layer, port_words(design, step, part))
        counted = counted.and_also(before.since(session))
    ofmap = model.run(
        Network(name=layer.name, source="", layers=(layer,)), lambda _: operands, model.taken({})
    ).result(layer)
    _same_actions(layer, ofmap.actions, counted.actions)
    cycles = None if core is None else _core_cycles(design, layer, operands, core)
    one = LayerOnBoard(
        name=layer.name,
        words=words,
        cycles=counted.cycles,
        waits=counted.waits,
        actions=counted.actions,
        core_cycles=cycles,
    )
    assert ofmap.ofmap is not None
    return ofmap.ofmap, one


def _through(session: Session, layer: MatrixLayer, packed: dict[str, Words]) -> int:
    """One step of a layer across the link; how many words crossed."""
    expected = packed.pop("ofmap")
    found = session.layer(packed.pop("command"), packed, len(expected))
    wrong = np.flatnonzero((found != expected).any(axis=1))
    if len(wrong):
        first = int(wrong[0])
        raise BoardError(
            f"{layer.name}: {len(wrong)} of {len(expected)} words of the ofmap differ, the first "
            f"is word {first}: {found[first].tobytes().hex()}, "
            f"by the model {expected[first].tobytes().hex()}"
        )
    return sum(map(len, packed.values())) + len(expected) + 1


@dataclass(frozen=True, kw_only=True)
class _Counted:
    cycles: int = 0
    waits: Mapping[str, int] = field(default_factory=dict[str, int])
    actions: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, session: Session) -> _Counted:
        counters = session.counters()
        return cls(
            cycles=counters["cycles"],
            waits=_named(counters, "wait_"),
            actions=_named(counters, "count_"),
        )

    def since(self, session: Session) -> _Counted:
        now = _Counted.of(session)
        return _Counted(
            cycles=now.cycles - self.cycles,
            waits={name: count - self.waits[name] for name, count in now.waits.items()},
            actions={name: count - self.actions[name] for name, count in now.actions.items()},
        )

    def and_also(self, more: _Counted) -> _Counted:
        return _Counted(
            cycles=self.cycles + more.cycles,
            waits={name: self.waits.get(name, 0) + count for name, count in more.waits.items()},
            actions={
                name: self.actions.get(name, 0) + count for name, count in more.actions.items()
            },
        )


def _named(counters: Mapping[str, int], begins: str) -> dict[str, int]:
    return {
        name.removeprefix(begins): count
        for name, count in counters.items()
        if name.startswith(begins)
    }


def _same_actions(
    layer: MatrixLayer, expected: Mapping[str, int], counted: Mapping[str, int]
) -> None:
    for name, count in counted.items():
        if name in expected and expected[name] != count:
            raise BoardError(
                f"{layer.name}: the core has counted {count} of {name}, the model {expected[name]}"
            )


def _core_cycles(design: Design, layer: MatrixLayer, operands: Any, core: Verilated) -> int:
    """Cycles of the emitted core on ports that never wait; every transfer as the model's."""
    from rtl.conformance import check

    total = 0
    for number in range(steps_in(layer)):
        part = step_operands(layer, operands, number)
        case = layer_case(design, one_step(layer, number), part)
        expected = case.answer()
        verdict = check(case, core.run, expected)
        if not verdict.equal:
            raise BoardError(
                f"{layer.name}: {verdict.cycle_differences} cycles and "
                f"{verdict.value_differences} words of the core differ from the model"
            )
        total += expected.cycles
    return total
