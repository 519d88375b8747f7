"""What `archsim show` prints of a workload: its layers, their shapes, MACs and weights."""

from __future__ import annotations

from rich import box
from rich.table import Table

from archsim.cli.fitting import fitting, left_out, names_column
from archsim.cli.output import output_console
from workloads.counts import counted
from workloads.layers import Conv2d, Layer, MatMul, Network

Row = dict[str, str]

RANKED = ("does", "M MACs", "k weights", "takes", "gives")
"""Columns from the most to the least wanted."""

SHOWN = ("does", "takes", "gives", "M MACs", "k weights")


def _row(layer: Layer) -> Row:
    """Shapes are channels × height × width, or rows × columns, with the batch in front."""
    if isinstance(layer, Conv2d):
        groups = f" in {layer.groups} groups" if layer.groups > 1 else ""
        stride = f" / {layer.stride_height}" if layer.stride_height > 1 else ""
        ifmap = (layer.channels, layer.ifmap_height, layer.ifmap_width)
        ofmap = (layer.filters, layer.ofmap_height, layer.ofmap_width)
        does = f"conv {layer.kernel_height} × {layer.kernel_width}{stride}{groups}"
        return {"does": does, **_shapes(layer.batch, ifmap, ofmap), **_counts(layer)}
    if isinstance(layer, MatMul):
        shapes = _shapes(layer.batch, (layer.m, layer.k), (layer.m, layer.n))
        return {"does": "matmul", **shapes, **_counts(layer)}
    sizes = {"takes": f"{layer.input_elements:,}", "gives": f"{layer.output_elements:,}"}
    return {"does": layer.operator, **sizes}


def _shapes(batch: int, *sizes: tuple[int, ...]) -> Row:
    whole = [(batch, *size) if batch > 1 else size for size in sizes]
    return dict(
        zip(("takes", "gives"), (" × ".join(map(str, size)) for size in whole), strict=True)
    )


def _counts(layer: Conv2d | MatMul) -> Row:
    weights = f"{layer.weight_elements / 1e3:,.1f}"
    return {"M MACs": f"{layer.macs / 1e6:,.1f}", "k weights": weights}


def print_network(network: Network, *, wide: bool = False) -> None:
    """A row for each layer, in the columns that there is room for, and the sums."""
    console = output_console(wide=wide)

    def build(columns: list[str] | tuple[str, ...]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        names_column(table, "layer", console)
        for name in (one for one in SHOWN if one in columns):
            table.add_column(name, justify="left" if name == "does" else "right", no_wrap=True)
        for layer in network.layers:
            row = _row(layer)
            table.add_row(layer.name, *(row.get(name, "") for name in SHOWN if name in columns))
        return table

    kept = fitting(lambda names: build(tuple(names)), RANKED, console)
    console.print(f"{network.name}: {network.source}")
    console.print(build(kept))
    console.print(
        f"{counted(len(network.matrix_layers), 'layer')} of MACs, "
        f"{network.macs / 1e9:,.3f} G MACs, "
        f"{network.weight_elements / 1e6:,.3f} M weights"
    )
    for line in left_out(SHOWN, kept, "a pipe"):
        console.print(line)
