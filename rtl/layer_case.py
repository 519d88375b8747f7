"""A layer by itself as a case of its design's kind, whatever that is."""

from typing import Any

from archsim.machine.design import Design
from archsim.machine.model import MatrixLayer
from rtl.conformance import Case
from rtl.registry import verification_of


def random_layer(design: Design) -> MatrixLayer:
    """A small layer that keeps every PE busy.  Raises `InputError` for designs without RTL."""
    return verification_of(design).small_layer(design)


def layer_case(design: Design, layer: MatrixLayer, operands: Any) -> Case:
    """The layer with its operands from a reset on, on ports that never wait.

    operands: of the design's intake.  Raises `InputError` for a layer that does not fit, and for
    designs that have no RTL.
    """
    return verification_of(design).layer_case(design, layer, operands)


__all__ = ["layer_case", "random_layer"]
