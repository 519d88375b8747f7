"""A layer of several steps as one layer a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands


def steps_in(layer: Conv2d | MatMul) -> int:
    """How many products follow each other in a layer: one but for recurrent ones."""
    return layer.steps if isinstance(layer, MatMul) else 1


def one_step(layer: Conv2d | MatMul, number: int | None = None) -> Conv2d | MatMul:
    """A step of a layer, named after it (with its number); the layer itself if it has but one."""
    if not isinstance(layer, MatMul) or layer.steps == 1:
        return layer
    name = layer.name if number is None else f"{layer.name}/{number}"
    return replace(layer, name=name, m=layer.m // layer.steps, steps=1)


def step_operands(layer: Conv2d | MatMul, operands: Operands, number: int) -> Operands:
    """The operands of a step: its rows of the ifmap."""
    if steps_in(layer) == 1:
        return operands
    assert isinstance(layer, MatMul)
    rows = layer.m // layer.steps
    return replace(operands, ifmap=operands.ifmap[:, number * rows : (number + 1) * rows])


def each_step(
    layer: Conv2d | MatMul, operands: Operands
) -> Iterator[tuple[Conv2d | MatMul, Operands]]:
    """Every step with its operands."""
    for number in range(steps_in(layer)):
        yield one_step(layer, number), step_operands(layer, operands, number)


__all__ = ["each_step", "one_step", "step_operands", "steps_in"]
