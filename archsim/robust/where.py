"""Where errors hurt: in one layer alone, or in one bit of every value alone."""

from __future__ import annotations

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machine.registry import with_settings
from archsim.robust.model import RobustModel
from archsim.robust.on_machine import MachineEvaluator, matrix_network
from archsim.robust.placed import At, placed
from workloads.labelled import Labelled


def errors_by_layer(
    evaluator: MachineEvaluator, design: Design, at: At, data: Labelled, chip: int = 0
) -> dict[str, float]:
    """Per cent of the pictures that are wrong where a memory fails in one layer alone, by layer."""
    return {
        name: _percent(wrong_in_layer(evaluator, design, at, data, name, chip))
        for name in layers_of(evaluator.model)
    }


def layers_of(model: RobustModel) -> list[str]:
    """The layers whose operands stand in a machine's memories, in order."""
    return [layer.name for layer in matrix_network(model, 1).matrix_layers]


def wrong_in_layer(
    evaluator: MachineEvaluator, design: Design, at: At, data: Labelled, layer: str, chip: int = 0
) -> list[bool]:
    """Which pictures are wrong where a memory fails in this layer alone."""
    return evaluator.wrong(design, data, {layer: placed(design, [at], chip)})


def errors_by_bit(
    evaluator: MachineEvaluator, design: Design, at: At, data: Labelled, chip: int = 0
) -> list[float]:
    """Per cent of the pictures that are wrong where one bit of every lane may fail, lowest first.

    Raises InputError for forms whose cells are not the lanes' bits.
    """
    return [
        _percent(evaluator.wrong(bit_alone(design, at, bit, chip), data))
        for bit in range(design.lane_bits(at.memory))
    ]


def bit_alone(design: Design, at: At, bit: int, chip: int = 0) -> Design:
    """The design with one bit of every lane of a memory that may fail.

    Raises InputError for forms whose cells are not the lanes' bits.
    """
    if at.form != "plain":
        raise InputError(f"bits of values are those of plain memories, not of {at.form} ones")
    others = ",".join(str(one) for one in range(design.lane_bits(at.memory)) if one != bit)
    failing = placed(design, [at], chip)
    return with_settings(failing, [f"{at.memory}_memory.protected_bits=[{others}]"])


def _percent(wrong: list[bool]) -> float:
    return 100 * sum(wrong) / len(wrong)


__all__ = [
    "bit_alone",
    "errors_by_bit",
    "errors_by_layer",
    "layers_of",
    "wrong_in_layer",
]
