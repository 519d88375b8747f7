"""Small pairs of a layer and a design of every kind, whose mappings can be enumerated."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import systolic_designs
import tensorcore_designs
import vsq_designs
from random_layers import LATENCIES, random_layer, random_off_chip

from archsim.layer.problem import Problem
from archsim.machines.systolic.design import DATAFLOWS
from archsim.memory import OffChip
from archsim.tiled.design import CoreDesign
from rtl.cases import Draw
from workloads.layers import Conv2d

Make = Callable[[Draw], CoreDesign]

KINDS: dict[str, Make] = {
    **{
        dataflow: lambda draw, flow=dataflow: replace(
            systolic_designs.random_design(draw), dataflow=flow
        )
        for dataflow in DATAFLOWS
    },
    "tensorcore": tensorcore_designs.random_design,
    "vsq": vsq_designs.random_design,
}


def random_channel(draw: Draw) -> OffChip:
    """Shared by all ports, apart for weights, or one a port."""
    memory = random_off_chip(draw, LATENCIES)
    if memory.bytes_per_cycle and draw.chance(0.2):
        return replace(memory, shared=False)
    if memory.bytes_per_cycle and draw.chance(0.2):
        return replace(
            memory, weight_bytes_per_cycle=draw.one_of(1, 3, 20) * (0.01 + draw.rng.random())
        )
    return memory


def random_pair(draw: Draw, kind: str) -> tuple[CoreDesign, Conv2d, Problem]:
    """A small design of a kind, a small layer, and the layer as the design sees it."""
    design: Any = KINDS[kind](draw)
    design = replace(design, off_chip=random_channel(draw))
    layer = random_layer(draw, (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 6, 7, 9))
    layer = replace(layer, batch=draw.one_of(1, 1, 2, 3))
    return design, layer, design.numerics.problem(layer)
