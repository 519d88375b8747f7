"""The command of the SCNN core: what crosses its command port, once for every layer pass.

It holds the numbers of a mapping that the hardware needs, so that it divides nothing.  Fields that
stand for every PE row and PE column are named row_<i>_… and column_<j>_….  Contract:
`docs/contracts/scnn.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from archsim.errors import require
from archsim.machines.scnn.axis import COORDINATE_BITS, POSITION_BITS, TAP_BITS, Axis
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from archsim.ports import CommandField, Port

PHASE_BITS = 5
"""Of a phase along an axis, and of their number."""
WINDOW_BITS = 5
"""Of a pooling window, of its stride, and of copies, along an axis."""

AXIS_FIELDS = (
    CommandField("base", COORDINATE_BITS + 1, True),  # first output of phase 0, in the region
    CommandField("threshold", PHASE_BITS),  # phases from here on begin an output earlier
    CommandField("reach", COORDINATE_BITS),  # outputs of the region
    CommandField("own_first", COORDINATE_BITS),  # outputs of the region that the PE before owns
    CommandField("own_count", COORDINATE_BITS),
    CommandField("next_first", COORDINATE_BITS),  # from its first output to the next region's
    CommandField("give_count", COORDINATE_BITS),  # outputs that it gives out, pooled
    CommandField("window_first", COORDINATE_BITS + 1, True),  # its first window, in the region
    CommandField("copy_before", WINDOW_BITS),  # outputs that the PE before owns, in its windows
    CommandField("copy_behind", WINDOW_BITS),  # that the next PE owns
    CommandField("sent_before", WINDOW_BITS),  # own outputs, in windows of the PE before
    CommandField("sent_behind", WINDOW_BITS),  # in windows of the next PE
)
"""Along one axis, of one PE row or column."""

LAYER_FIELDS = (
    CommandField("groups", 16),
    CommandField("lists", 24),  # of one PE's ifmap: channels x phases
    CommandField("filters", 10),  # of a group
    CommandField("filters_last", 10),  # of the last one
    CommandField("filter_bits", 4),  # log2 of the pitch of filters
    CommandField("phase_rows", PHASE_BITS),
    CommandField("phase_columns", PHASE_BITS),
    CommandField("wide_phases", PHASE_BITS),  # column phases below this one have a tap more
    CommandField("wide_bits", 3),  # log2 of their pitch of kernel columns
    CommandField("narrow_bits", 3),  # of the others
    CommandField("tile_bits", 4),  # log2 of the pitch of ifmap columns
    CommandField("region_rows", COORDINATE_BITS),  # Hacc
    CommandField("region_columns", COORDINATE_BITS),  # Wacc
    CommandField("halo_left", COORDINATE_BITS),
    CommandField("halo_right", COORDINATE_BITS),
    CommandField("halo_up", COORDINATE_BITS),
    CommandField("halo_down", COORDINATE_BITS),
    CommandField("out_rows", COORDINATE_BITS),  # rows of outputs that a PE gives out
    CommandField("out_columns", COORDINATE_BITS),  # Qt, the most columns that a PE owns
    CommandField("out_pitch", COORDINATE_BITS),  # places of a row of outputs
    CommandField("rows_used", 8),
    CommandField("columns_used", 8),
    CommandField("owning_rows", 8),  # PE rows that give outputs out; they come first
    CommandField("owning_columns", 8),
    CommandField("ofmap_lists", 24),  # of one PE: filters of the layer
    CommandField("has_bias", 1),
    CommandField("relu", 1),
    CommandField("ifmap_kept", 1),  # the ifmap is what the pass before has left
    CommandField("keep_ofmap", 1),  # the ofmap stays
    CommandField("multiplier", 16),
    CommandField("shift", 6),
    CommandField("pooled", 1),  # sums are read for windows, and cleared behind the drain
    CommandField("window_rows", WINDOW_BITS),  # 1 without pooling, as the next three
    CommandField("window_columns", WINDOW_BITS),
    CommandField("row_step", WINDOW_BITS),  # from a window to the next
    CommandField("column_step", WINDOW_BITS),
    CommandField("copy_left", WINDOW_BITS),
    CommandField("copy_right", WINDOW_BITS),
    CommandField("copy_up", WINDOW_BITS),
    CommandField("copy_down", WINDOW_BITS),
    CommandField("copy_rows", COORDINATE_BITS),  # the most rows that a PE owns
    CommandField("copy_columns", COORDINATE_BITS),  # the most columns that it owns or copies
)
"""The same for all PEs."""


def command_fields(design: Scnn) -> tuple[CommandField, ...]:
    """All fields, first field in the lowest bits: the layer's, then the PE rows', the columns'."""
    axes = [
        CommandField(f"{axis}_{number}_{field.name}", field.bits, field.signed)
        for axis, count in (("row", design.grid_rows), ("column", design.grid_columns))
        for number in range(count)
        for field in AXIS_FIELDS
    ]
    return (*LAYER_FIELDS, *axes)


@dataclass(frozen=True, kw_only=True)
class Output:
    """How sums become outputs: as `archsim.tiled.commands` has it."""

    has_bias: bool = False
    relu: bool = False
    multiplier: int = 1
    shift: int = 0


def _log2(pitch: int) -> int:
    return (pitch - 1).bit_length()


def _layer_values(mapping: Mapping, output: Output) -> dict[str, int]:
    rows, columns = mapping.rows, mapping.columns
    taps, wide_phases = divmod(columns.kernel, columns.stride)
    return {
        "groups": mapping.groups,
        "lists": mapping.lists,
        "filters": mapping.group_filters(0),
        "filters_last": mapping.group_filters(mapping.groups - 1),
        "filter_bits": _log2(mapping.filter_pitch),
        "phase_rows": rows.phases,
        "phase_columns": columns.phases,
        "wide_phases": wide_phases,
        "wide_bits": _log2(taps + 1),
        "narrow_bits": _log2(max(taps, 1)),
        "tile_bits": _log2(mapping.input_pitch),
        "region_rows": rows.extent,
        "region_columns": columns.extent,
        "halo_left": columns.most_below,
        "halo_right": columns.most_above,
        "halo_up": rows.most_below,
        "halo_down": rows.most_above,
        "out_rows": rows.give,
        "out_columns": columns.most_owned,
        "out_pitch": mapping.output_pitch,
        "rows_used": rows.pes,
        "columns_used": columns.pes,
        "owning_rows": rows.givers,
        "owning_columns": columns.givers,
        "ofmap_lists": mapping.filters,
        "has_bias": int(output.has_bias),
        "relu": int(output.relu),
        "ifmap_kept": int(mapping.ifmap_kept),
        "keep_ofmap": int(mapping.keep_ofmap),
        "multiplier": output.multiplier,
        "shift": output.shift,
        **_pool_values(mapping),
    }


def _pool_values(mapping: Mapping) -> dict[str, int]:
    rows, columns = mapping.rows, mapping.columns
    return {
        "pooled": int(mapping.pooled),
        "window_rows": rows.window.size,
        "window_columns": columns.window.size,
        "row_step": rows.window.stride,
        "column_step": columns.window.stride,
        "copy_left": columns.most_copies[1],
        "copy_right": columns.most_copies[0],
        "copy_up": rows.most_copies[1],
        "copy_down": rows.most_copies[0],
        "copy_rows": rows.most_owned,
        "copy_columns": columns.most_held,
    }


def _axis_values(axis: Axis, pe: int) -> dict[str, int]:
    if pe >= axis.pes:
        return dict.fromkeys((field.name for field in AXIS_FIELDS), 0)
    region = axis.region(pe)
    return {
        "base": axis.base(pe),
        "threshold": axis.threshold(pe),
        "reach": len(region),
        "own_first": axis.below(pe),
        "own_count": len(axis.owned(pe)),
        "next_first": axis.region(pe + 1).start - region.start if pe + 1 < axis.pes else 0,
        "give_count": len(axis.given(pe)),
        "window_first": axis.first_window(pe),
        "copy_before": axis.copies_before(pe),
        "copy_behind": axis.copies_behind(pe),
        "sent_before": axis.sent(pe)[0],
        "sent_behind": axis.sent(pe)[1],
    }


def command_values(design: Scnn, mapping: Mapping, output: Output) -> tuple[int, ...]:
    """The command of a layer pass, in the fields' order.

    Raises `InputError` if a number does not fit its field.
    """
    values = _layer_values(mapping, output)
    for name, axis, count in (
        ("row", mapping.rows, design.grid_rows),
        ("column", mapping.columns, design.grid_columns),
    ):
        for pe in range(count):
            fields = _axis_values(axis, pe).items()
            values |= {f"{name}_{pe}_{field}": value for field, value in fields}
    _check_positions(mapping)
    fields = command_fields(design)
    for field in fields:
        require(
            field.low <= values[field.name] <= field.high,
            f"{field.name} must be from {field.low} to {field.high} in a command of an scnn core, "
            f"not {values[field.name]}",
        )
    return tuple(values[field.name] for field in fields)


def _check_positions(mapping: Mapping) -> None:
    """Refuse lists whose positions or taps do not fit the decoders."""
    rows, columns = mapping.rows, mapping.columns
    for name, axis in (("height", rows), ("width", columns)):
        require(
            axis.taps(0) <= 1 << TAP_BITS,
            f"kernel {name} must be at most {axis.stride << TAP_BITS} with a stride of "
            f"{axis.stride} in an scnn core, not {axis.kernel}",
        )
        require(
            axis.phase_tile <= 1 << COORDINATE_BITS,
            f"a PE's part of the ifmap {name} must be at most {axis.stride << COORDINATE_BITS}, "
            f"not {axis.tile}",
        )
    # Lanes behind the last element hold no value, so their positions may overflow.
    largest = max(
        rows.phase_tile * mapping.input_pitch,
        rows.taps(0) * mapping.tap_pitch(0) * mapping.filter_pitch,
    )
    require(
        largest <= 1 << POSITION_BITS,
        f"positions of a list must be at most {1 << POSITION_BITS}, not {largest}",
    )


def scnn_ports(design: Scnn) -> tuple[Port, ...]:
    """The streams at the core's boundary: command, ifmap, weight, bias, ofmap.

    A vector's lanes are value and index, one after the other, and above them `last`.
    """
    fields = command_fields(design)
    command = Port(
        name="command",
        direction="i",
        lane_bits=tuple(field.bits for field in fields),
        lane_signed=tuple(field.signed for field in fields),
        lane_names=tuple(field.name for field in fields),
    )
    return (
        command,
        _vector_port(design, "ifmap", "i", design.ifmap_lanes),
        _vector_port(design, "weight", "i", design.weight_lanes),
        Port.uniform("bias", "i", 1, design.accumulator_bits),
        _vector_port(design, "ofmap", "o", design.ifmap_lanes),
    )


def _vector_port(design: Scnn, name: str, direction: Literal["i", "o"], lanes: int) -> Port:
    parts = ("value", "index")
    return Port(
        name=name,
        direction=direction,
        lane_bits=(design.operand_bits, design.index_bits) * lanes + (1,),
        lane_signed=(True, False) * lanes + (False,),
        lane_names=(*(f"{part}_{lane}" for lane in range(lanes) for part in parts), "last"),
    )
