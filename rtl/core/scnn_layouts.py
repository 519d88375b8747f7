"""The words of the SCNN core: commands, vectors of compressed lists, decoded operands."""

from amaranth.hdl import Shape, Value, signed, unsigned
from amaranth.lib import data

from archsim.machines.scnn.command import (
    AXIS_FIELDS,
    COORDINATE_BITS,
    LAYER_FIELDS,
    TAP_BITS,
    command_fields,
)
from archsim.machines.scnn.design import Scnn
from archsim.ports import CommandField

PLACE_BITS = COORDINATE_BITS + 2
"""Of a place in a region, which a product may miss on either side."""


def _layout(fields: tuple[CommandField, ...]) -> data.StructLayout:
    shapes: dict[str, Shape] = {
        field.name: signed(field.bits) if field.signed else unsigned(field.bits) for field in fields
    }
    return data.StructLayout(shapes)


def command_layout(design: Scnn) -> data.StructLayout:
    """The command."""
    return _layout(command_fields(design))


def layer_layout() -> data.StructLayout:
    """The part of it that is the same for all PEs."""
    return _layout(LAYER_FIELDS)


def axis_layout() -> data.StructLayout:
    """The part of it for one PE row or column."""
    return _layout(AXIS_FIELDS)


def vector_layout(design: Scnn, lanes: int) -> data.StructLayout:
    """A vector of a compressed list."""
    lane = data.StructLayout({"value": signed(design.operand_bits), "index": design.index_bits})
    return data.StructLayout({"lanes": data.ArrayLayout(lane, lanes), "last": 1})


def accumulator_address_bits(design: Scnn) -> int:
    """Of an accumulator's index: its bank in the low bits, its entry above."""
    return max((design.banks * design.bank_entries - 1).bit_length(), 1)


def bank_bits(design: Scnn) -> int:
    """Of a bank's number; 0 with one bank."""
    return (design.banks - 1).bit_length()


def weight_layout(design: Scnn) -> data.StructLayout:
    """A decoded vector of weights: the tap, and what it adds to an accumulator's index."""
    lane = data.StructLayout(
        {
            "value": signed(design.operand_bits),
            "row": TAP_BITS,
            "column": TAP_BITS,
            "address": accumulator_address_bits(design),
        }
    )
    return data.StructLayout({"lanes": data.ArrayLayout(lane, design.weight_lanes), "last": 1})


def activation_layout(design: Scnn) -> data.StructLayout:
    """A decoded vector of activations: the place in the region that tap 0 leads to."""
    lane = data.StructLayout(
        {
            "value": signed(design.operand_bits),
            "row": signed(PLACE_BITS),
            "column": signed(PLACE_BITS),
            "address": accumulator_address_bits(design),
        }
    )
    return data.StructLayout({"lanes": data.ArrayLayout(lane, design.ifmap_lanes), "last": 1})


def positions(base: Value, word: data.View, lanes: int) -> tuple[list[Value], Value]:
    """Positions of a vector's lanes behind `base`, and the base of the next vector."""
    found: list[Value] = []
    at = base
    for lane in range(lanes):
        found.append(at + word.lanes[lane].index)
        at = found[-1] + 1
    return found, at
