"""The payloads of layer and tile commands, and the part of them that each unit keeps."""

from amaranth.hdl import Shape, signed, unsigned
from amaranth.lib import data

from archsim.tiled.commands import COMMAND_FIELDS
from archsim.tiled.layer_command import LAYER_FIELDS


def command_layout(*names: str) -> data.StructLayout:
    """The layout of the named fields of a command, in the command's order; of all without names."""
    fields: dict[str, Shape] = {
        entry.name: signed(entry.bits) if entry.signed else unsigned(entry.bits)
        for entry in COMMAND_FIELDS
        if not names or entry.name in names
    }
    return data.StructLayout(fields)


def layer_layout() -> data.StructLayout:
    """The layout of a layer command."""
    return data.StructLayout(
        {
            entry.name: signed(entry.bits) if entry.signed else unsigned(entry.bits)
            for entry in LAYER_FIELDS
        }
    )


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
