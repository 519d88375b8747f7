"""`archsim show mapping`: how the layers of a network are mapped to a design."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archsim.errors import InputError, nearest, require
from archsim.importers import any_network
from archsim.machine.design import Design
from archsim.machine.mapped import MappedLayer
from archsim.machine.option import Options

USAGE = "archsim show mapping DESIGN NETWORK"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Which layers, and how: all, or one; as JSON; into a file of mappings."""

    layer: str | None = None
    as_json: bool = False
    output: Path | None = None


def show_mapping(design: Design, network: str, options: Options, shown: Shown) -> None:
    """Print the layers' nests of loops, or write them as a file for `--mapping`."""
    from archsim.cli.output import output_console
    from archsim.files import require_new, write_new

    if shown.output is not None:
        require_new(shown.output)
    mapped = _mapped(design, network, options, shown.layer)
    if shown.output is not None:
        import tomli_w

        text = tomli_w.dumps({one.layer: dict(one.table) for one in mapped})
        write_new({shown.output: text})
        return
    if shown.as_json:
        print(json.dumps([one.record() for one in mapped], indent=2, ensure_ascii=False))
        return
    output_console().print("\n\n".join(nest_text(one) for one in mapped))


def _mapped(
    design: Design, network: str, options: Options, layer: str | None
) -> Sequence[MappedLayer]:
    work = any_network(network)
    layers = {one.name: one for one in work.matrix_layers}
    if layer is not None and layer not in layers:
        raise InputError(f"{work.name} has no matrix layer {layer!r}; {nearest(layer, layers)}")
    model = design.machine_model()
    chosen = [layers[layer]] if layer is not None else list(layers.values())
    require(bool(chosen), f"{work.name} has no layer that the array computes")
    return model.mapped(work, chosen, model.taken(options))


def nest_text(mapped: MappedLayer) -> str:
    """The loops, each inside the one above it, then what is held of a tile, then what it takes."""
    lines, depth = [mapped.layer], 1
    for loop in mapped.loops:
        if loop.tiles > 1:
            last = f", the last {loop.last:,}" if loop.last != loop.size else ""
            text = f"for {loop.tiles:,} tiles of {loop.size:,} {loop.over}{last}"
            lines.append(f"{'  ' * depth}{text}")
            depth += 1
    for held in mapped.held:
        if held.taken_bytes:
            taken = f"{held.taken_bytes:,} of {held.tile_bytes:,} bytes"
            lines.append(f"{'  ' * depth}{held.memory}: {held.what} ({taken})")
    moved = sum(mapped.bytes_moved.values())
    lines.append(f"  {mapped.cycles:,} cycles, {moved:,} bytes off the chip")
    return "\n".join(lines)


__all__ = ["USAGE", "Shown", "nest_text", "show_mapping"]
