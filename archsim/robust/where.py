"""Where errors hurt: in one layer alone, or in one bit of every value alone."""

from __future__ import annotations

from archsim.errors import InputError
from archsim.machine.design import Design
from archsim.machine.registry import with_settings
from archsim.robust.on_machine import MachineEvaluator, matrix_network
from archsim.robust.placed import At, placed
from workloads.labelled import Labelled


def errors_by_layer(
    evaluator: MachineEvaluator, design: Design, at: At, data: Labelled, chip: int = 0
) -> dict[str, float]:
    """Per cent of the pictures that are wrong where a memory fails in one layer alone, by layer."""
    failing = placed(design, [at], chip)
    names = [layer.name for layer in matrix_network(evaluator.model, 1).matrix_layers]
    return {name: _percent(evaluator.wrong(design, data, {name: failing})) for name in names}


def errors_by_bit(
    evaluator: MachineEvaluator, design: Design, at: At, data: Labelled, chip: int = 0
) -> list[float]:
    """Per cent of the pictures that are wrong where one bit of every lane may fail, lowest first.

    Raises InputError for forms whose cells are not the lanes' bits.
    """
    if at.form != "plain":
        raise InputError(f"bits of values are those of plain memories, not of {at.form} ones")
    failing, found = placed(design, [at], chip), list[float]()
    field, bits = f"{at.memory}_memory", lane_bits(design, at.memory)
    for bit in range(bits):
        others = ",".join(str(one) for one in range(bits) if one != bit)
        alone = with_settings(failing, [f"{field}.protected_bits=[{others}]"])
        found.append(_percent(evaluator.wrong(alone, data)))
    return found


def lane_bits(design: Design, memory: str) -> int:
    """Of the narrowest lane of a memory's words.  Raises InputError for a machine without any."""
    return min(design.use(memory).lane_bits)


def _percent(wrong: list[bool]) -> float:
    return 100 * sum(wrong) / len(wrong)


__all__ = ["errors_by_bit", "errors_by_layer", "lane_bits"]
