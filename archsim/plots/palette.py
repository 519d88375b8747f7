"""Colours of the figures, the same thing always in the same one."""

from __future__ import annotations

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
"""Okabe and Ito, "Color Universal Design" (2008): colour-blind readers tell the eight apart."""

GREY = "#8a8f98"
"""What stands beside causes and is none of them."""

CAUSE_COLOURS = {
    "computing": GREEN,
    "filling": SKY,
    "draining": YELLOW,
    "wait_weight": ORANGE,
    "wait_ifmap": VERMILION,
    "wait_output": PURPLE,
    "conflict": SKY,
    "barrier": PURPLE,
    "control": BLACK,
    "memory": BLUE,
}
"""Sparse machines have conflicts and barriers, others filling and waits for the output."""
PORT_COLOURS = {"ifmap": VERMILION, "weight": ORANGE, "bias": GREY, "ofmap": BLUE}
GROUP_COLOURS = {
    "DRAM": BLUE,
    "memories": SKY,
    "arithmetic": GREEN,
    "registers": ORANGE,
    "multiplexers": VERMILION,
    "control": BLACK,
    "leakage": PURPLE,
}
DIRECTION_COLOURS = {"read": BLUE, "written": ORANGE}


def cause_text(cause: str) -> str:
    """A cause as a reader sees it: "wait for weight"."""
    return cause.replace("_", " for ") if cause.startswith("wait_") else cause
