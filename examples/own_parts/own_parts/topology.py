"""An importer: layers from a CSV file of shapes, as SCALE-Sim takes them.

Convolutions: name, ifmap height and width, filter height and width, channels, filters, stride.
Products: name, M, N, K.  The first line has the headings; a comma may end each line.  SCALE-Sim has
no padding: ifmaps are given with theirs.
"""

from __future__ import annotations

import csv
from pathlib import Path

from energy_models.reading import read_text
from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, Network

FORMS = {8: "convolutions", 4: "products"}


def read_topology(path: Path) -> Network:
    """Layers of a CSV file in SCALE-Sim's form: convolutions or products, by their sizes"""
    text = read_text(path, WorkloadError, what="a CSV file")
    lines = [
        (at, [cell.strip() for cell in cells])
        for at, cells in enumerate(csv.reader(text.splitlines()), 1)
        if any(cell.strip() for cell in cells)
    ]
    layers = tuple(_layer(f"{path}, line {at}", cells) for at, cells in lines[1:])
    if not layers:
        raise WorkloadError(f"{path}: a line of headings and at least one layer must be there")
    return Network(name=path.stem, layers=layers, source=str(path))


def _layer(where: str, cells: list[str]) -> Conv2d | MatMul:
    """A line's layer."""
    while cells and not cells[-1]:
        cells = cells[:-1]
    if len(cells) not in FORMS:
        forms = " or ".join(f"{count} cells ({what})" for count, what in FORMS.items())
        raise WorkloadError(f"{where}: must have {forms}, not {len(cells)}")
    name, *texts = cells
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise WorkloadError(f"{where}: sizes must be whole numbers, not {text!r}")
    sizes = [int(text) for text in texts]
    if len(sizes) == 3:
        m, n, k = sizes
        return MatMul(name=name, m=m, n=n, k=k)
    height, width, kernel_height, kernel_width, channels, filters, stride = sizes
    return Conv2d(
        name=name,
        channels=channels,
        filters=filters,
        ifmap_height=height,
        ifmap_width=width,
        kernel_height=kernel_height,
        kernel_width=kernel_width,
        stride_height=stride,
        stride_width=stride,
    )
