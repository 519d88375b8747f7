"""Small cores of every kind that is walked by tiles, and sizes of layers for them."""

from dataclasses import replace
from typing import Any

import systolic_designs
import tensorcore_designs
import vsq_designs
from random_layers import random_off_chip

from archsim.tiled.design import CoreDesign
from rtl.cases import Draw

KINDS = (systolic_designs, systolic_designs, tensorcore_designs, vsq_designs)

SMALL = ((1, 2, 3, 5, 7, 8, 14, 17), (1, 2, 3, 5, 8, 16, 33))
TINY = ((1, 1, 2, 3, 5, 7), (1, 1, 2, 3, 5, 8, 16, 33))


def random_design(draw: Draw, latencies: tuple[int, ...]) -> CoreDesign:
    """A small core of any kind; every other one with larger scratchpads."""
    design: CoreDesign = KINDS[draw.whole(0, 3)].random_design(draw)
    factor = draw.one_of(2, 4, 16, 64) if draw.chance(0.5) else 1
    memories = ("ifmap_memory", "weight_memory", "accumulator_memory")
    larger = {
        name: replace(memory, capacity_bytes=memory.capacity_bytes * factor)
        for name in memories
        if (memory := getattr(design, name))
    }
    changes: dict[str, Any] = {**larger, "off_chip": random_off_chip(draw, latencies)}
    return replace(design, **changes)
