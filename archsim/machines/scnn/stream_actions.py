"""What memories that compress values count and take, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.machines.scnn.timing import PassTiming

ROW_ACTIONS = ("iaram_row_write", "iaram_row_read", "oaram_row_write", "oaram_row_read")


def row_actions(passes: Sequence[PassTiming]) -> dict[str, int]:
    """Rows of values, of all columns and PEs; nothing where memories are plain.

    iaram_row_write: of what is loaded; iaram_row_read: each row once for each group of filters;
    oaram_row_write: of the ofmap; oaram_row_read: of those, the ones that leave.  Rows that are
    read are counted by the widths that are read.
    """
    if not any(one.stored for one in passes):
        return {}
    totals: dict[str, int] = dict.fromkeys(ROW_ACTIONS, 0)
    for one in passes:
        assert one.stored
        ifmap, ofmap = (stored.all_rows for stored in one.stored)
        totals["iaram_row_write"] += 0 if one.mapping.ifmap_kept else ifmap
        walked = [stored.walked for stored in one.stored]
        totals["iaram_row_read"] += walked[0] * one.mapping.groups
        totals["oaram_row_write"] += ofmap
        totals["oaram_row_read"] += 0 if one.mapping.keep_ofmap else walked[1]
    return totals


def stored_bits(passes: Sequence[PassTiming]) -> dict[str, int]:
    """Of ifmaps and ofmaps, stored and plain; nothing where memories are plain."""
    if not any(one.stored for one in passes):
        return {}
    found: dict[str, int] = {}
    for at, name in enumerate(("ifmap", "ofmap")):
        lists = [one.stored[at] for one in passes if one.stored]
        found[f"{name}_stored_bits"] = sum(one.stored_bits for one in lists)
        found[f"{name}_plain_bits"] = sum(one.plain_bits for one in lists)
    return found


__all__ = ["ROW_ACTIONS", "row_actions", "stored_bits"]
