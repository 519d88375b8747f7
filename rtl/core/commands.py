"""The payloads of layer and tile commands, and the part of them that each unit keeps."""

from collections.abc import Iterable

from amaranth.hdl import Shape, signed, unsigned
from amaranth.lib import data

from archsim.ports import CommandField
from archsim.tiled.commands import COMMAND_FIELDS
from archsim.tiled.layer_command import GATHER_FIELDS, layer_fields


def _layout(entries: Iterable[CommandField]) -> data.StructLayout:
    shapes: dict[str, Shape] = {
        entry.name: signed(entry.bits) if entry.signed else unsigned(entry.bits)
        for entry in entries
    }
    return data.StructLayout(shapes)


def command_layout(*names: str, gathers: bool = False) -> data.StructLayout:
    """The layout of the named fields of a command, in the command's order; of all without names.

    gathers: of a core with a gather unit.
    """
    known = (*COMMAND_FIELDS, *GATHER_FIELDS) if gathers else COMMAND_FIELDS
    return _layout(entry for entry in known if not names or entry.name in names)


def layer_layout(*, gathers: bool = False) -> data.StructLayout:
    """The layout of a layer command."""
    return _layout(layer_fields(gathers=gathers))


FOLD_FIELDS = (
    "load_ifmap",
    "free_ifmap",
    "load_weight",
    "free_weight",
    "first_k",
    "last_k",
    "pixels",
    "taps",
    "runs",
    "run_length",
    "filter_steps",
)
"""What a sequencer of folds needs."""

PIXEL_FIELDS = (
    "pixel_rows",
    "pixel_columns",
    "column_step",
    "row_step",
    "row_stride",
    "pitch",
    "height",
    "image_step",
    "element_start",
    "row_start",
    "address_start",
    "tap_rows",
    "tap_step",
    "run_step",
)
"""What the walk over the pixels' windows needs beside them."""

OUTPUT_FIELDS = (
    "has_bias",
    "relu",
    "output_rows",
    "pixels",
    "filter_steps",
    "step_lanes",
    "ends_layer",
    "multiplier",
    "shift",
)
"""What the output stage needs."""
