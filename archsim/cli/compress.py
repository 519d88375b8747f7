"""`archsim compress`: print how small a network's tensors become, codec by codec."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from archsim.cli.choose import WorkloadOptions
from archsim.cli.compress_source import Source, array_source, network_source
from archsim.cli.fitting import fitting, left_out, names_column
from archsim.cli.options import (
    AsJson,
    Dimensions,
    Distribution,
    InputFile,
    OperandScheme,
    Seed,
    SkipUnsupported,
    Wide,
)
from archsim.cli.output import output_console, progress_bar
from archsim.codecs.boveda import BovedaFormat
from archsim.codecs.known import codecs
from archsim.compression import TensorBits, Total, measure, totals
from archsim.errors import require

STORES = "what it stores"

TAIL_SHARE = 0.1
"""Of Boveda's bits; above it the output says where tails are."""


def layer_columns() -> tuple[str, ...]:
    """Headings of a line for each tensor."""
    return ("shape", "values", *codecs())


def layer_ranks() -> list[str]:
    """The same, from the most to the least wanted."""
    return list(dict.fromkeys(("boveda", "values", "raw", *layer_columns())))


def codec_columns(found: dict[str, Total]) -> list[str]:
    """Headings: bits a value and per cent of raw, by kind of tensor, and what is stored."""
    figures = [f"{kind}\n{what}" for kind in found for what in ("bits/value", "% of raw")]
    return [*figures, STORES]


def by_rank(columns: Sequence[str]) -> list[str]:
    """From the most to the least wanted: bits before shares, sums before parts."""
    return sorted(columns, key=lambda name: (name == STORES, "%" in name, "total" not in name))


def codec_table(title: str, found: dict[str, Total], columns: Sequence[str]) -> Table:
    """A line for each codec, in some of the columns."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column("codec", no_wrap=True)
    shown = [name for name in codec_columns(found) if name in columns]
    for name in shown:
        table.add_column(name, justify="left" if name == STORES else "right", no_wrap=True)
    for name, codec in codecs().items():
        cells = {STORES: f"{codec.title} ({codec.source})" if codec.source else codec.title}
        for kind, one in found.items():
            cells[f"{kind}\nbits/value"] = f"{one.bits_per_value(name):.3f}"
            cells[f"{kind}\n% of raw"] = f"{100 * one.of_raw(name):.1f}"
        style = "bold" if name == "boveda" else None
        table.add_row(name, *(cells[column] for column in shown), style=style)
    return table


def layer_table(tensors: Sequence[TensorBits], columns: Sequence[str], console: Console) -> Table:
    """A line for each tensor: its shape and bits a value of codecs, in some of the columns."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    names_column(table, "layer", console)
    table.add_column("tensor", no_wrap=True)
    shown = [name for name in layer_columns() if name in columns]
    for name in shown:
        table.add_column(name, justify="left" if name == "shape" else "right", no_wrap=True)
    for one in tensors:
        cells = {name: f"{count / one.values:.2f}" for name, count in one.bits.items()}
        cells |= {"shape": " × ".join(map(str, one.shape)), "values": f"{one.values:,}"}
        table.add_row(one.layer, one.kind, *(cells[name] for name in shown))
    return table


def _boveda_line(kind: str, total: Total) -> str:
    parts = vars(total.boveda)
    whole = total.boveda.total_bits
    names = ("payload", "tail", "padding", "metadata", "pointer")
    shares = ", ".join(f"{name} {100 * parts[f'{name}_bits'] / whole:.1f} %" for name in names)
    return f"boveda, {kind}: {shares}"


def _tail_line(tensors: Sequence[TensorBits]) -> str:
    """Where most of the zeros that fill short groups are; empty where they are few."""
    tail = sum(one.boveda.tail_bits for one in tensors)
    whole = sum(one.boveda.total_bits for one in tensors)
    if tail < TAIL_SHARE * whole:
        return ""
    worst = max(tensors, key=lambda one: one.boveda.tail_bits)
    return (
        f"boveda's tails are zeros that fill groups: {100 * worst.boveda.tail_bits / tail:.0f} % "
        f"of them in {worst.layer}'s {worst.kind} of {worst.shape[-1]} channels"
    )


def _print(
    source: Source,
    form: BovedaFormat,
    tensors: list[TensorBits],
    *,
    layers: bool,
    wide: bool,
) -> None:
    console: Console = output_console(wide=wide)
    found = totals(tensors)
    if layers:
        kept = fitting(lambda some: layer_table(tensors, some, console), layer_ranks(), console)
        console.print(layer_table(tensors, kept, console), markup=False)
        for line in left_out(layer_columns(), kept, "a pipe and --json"):
            console.print(line, markup=False)
    extras = ", codes of no width" if form.zero_width else ""
    title = (
        f"{source.name}: containers of {form.container_bits} bits, groups of {form.group}, "
        f"{form.metadata} metadata{extras}"
    )
    columns = codec_columns(found)
    kept = fitting(lambda some: codec_table(title, found, some), by_rank(columns), console)
    console.print(codec_table(title, found, kept), markup=False)
    for line in left_out(columns, kept, "a pipe and --json"):
        console.print(" ".join(line.split()), markup=False)
    for kind, one in found.items():
        console.print(_boveda_line(kind, one), markup=False)
    if line := _tail_line(tensors):
        console.print(line, markup=False)
    values = ", ".join(f"{kind} {one.values:,}" for kind, one in found.items())
    console.print(f"values: {values}", markup=False)
    console.print(f"tensors: {source.says}", markup=False)


def compress(  # noqa: PLR0913
    what: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|FILE.npy",
            help="A built-in network, a packaged one, a model file, or an array, channels last.",
        ),
    ],
    bits: Annotated[int, typer.Option(help="Bits of a container: 4, 8 or 16.")] = 8,
    group: Annotated[int, typer.Option(help="Values along the channels that share a width.")] = 16,
    metadata: Annotated[
        Literal["plain", "same"],
        typer.Option(help="Boveda's widths: all written out, or one bit where as before."),
    ] = "plain",
    zero_width: Annotated[
        bool,
        typer.Option("--zero-width", help="Boveda: groups of zeros take no bits (not published)."),
    ] = False,
    operands: OperandScheme = "auto",
    density: Annotated[float, typer.Option(help="Share of non-zero drawn values.")] = 1.0,
    distribution: Distribution = "normal",
    seed: Seed = 0,
    aligned_axes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of an array: axes that number its aligned units.  [default: all but the last]",
        ),
    ] = None,
    input_file: InputFile = None,
    dim: Dimensions = None,
    skip_unsupported: SkipUnsupported = False,
    layer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this layer. May be repeated."),
    ] = None,
    layers: Annotated[bool, typer.Option("--layers", help="A line for each tensor, too.")] = False,
    as_json: AsJson = False,
    wide: Wide = False,
) -> None:
    """Print how many bits Boveda's layout and other codecs take for weights and activations.

    "raw" is what containers take as they are.  Boveda's own layout can be varied; all others are
    counted as published (`archsim.codecs.reference_codecs` says how).  Where a network has values
    (packaged, or an ONNX file with --input) they are used, else they are drawn, and the last
    line says which.

    Examples:

    \b
      archsim compress squeezenet-imagenet
      archsim compress squeezenet-imagenet --bits 16 --group 8 --layers
      archsim compress resnet50 --density 0.4 --metadata same --zero-width
      archsim compress model.onnx --input photo.npz --layer conv1 --json
      archsim compress weights.npy --aligned-axes 1
    """
    form = BovedaFormat(group=group, container_bits=bits, metadata=metadata, zero_width=zero_width)
    options = WorkloadOptions(
        dims=tuple(dim or ()),
        skip_unsupported=skip_unsupported,
        operands=operands,
        density=density,
        distribution=distribution,
        seed=seed,
        input_file=input_file,
    )
    path = Path(what)
    if path.suffix == ".npy":
        require(not layer, f"--layer is for networks; {path.name} is one array")
        source = array_source(path, bits, aligned_axes)
    else:
        require(aligned_axes is None, "--aligned-axes is for .npy files; layers have their own")
        with progress_bar(f"reading {what}", quiet=as_json):
            source = network_source(what, bits, options, layer or [])
    tensors: list[TensorBits] = []
    with progress_bar(f"compressing {source.name}", quiet=as_json) as bar:
        done: set[str] = set()
        for tensor in source.tensors:
            tensors.append(measure(tensor, form))
            done.add(tensor.layer)
            bar.update(bar.task_ids[0], completed=len(done), total=source.layers)
    if as_json:
        print(json.dumps(_record(source, form, tensors), indent=2))
    else:
        _print(source, form, tensors, layers=layers, wide=wide)


def _record(source: Source, form: BovedaFormat, tensors: list[TensorBits]) -> dict[str, Any]:
    return {
        "name": source.name,
        "container_bits": form.container_bits,
        "group": form.group,
        "metadata": form.metadata,
        "zero_width": form.zero_width,
        "tensors_are": source.says,
        "codecs": {
            name: {"title": codec.title, "source": codec.source} for name, codec in codecs().items()
        },
        "totals": {kind: one.record() for kind, one in totals(tensors).items()},
        "tensors": [one.record() for one in tensors],
    }


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("compress")(compress)
