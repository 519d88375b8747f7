"""A source of prices: figures from a CSV file, as a spreadsheet writes it.

Lines "# key: value" come first: name, node_nm, voltage_v, source.  Then follow columns component,
sizes ("a_bits=8 b_bits=8"), quantity, action, value, unit, source; a column may be left empty.
What may be derived from the figures is what may be of every table (`energy_models.published`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from energy_models.errors import EnergyError, require
from energy_models.published import TableEstimator
from energy_models.reading import read_text
from energy_models.table import read_table

COLUMNS = ("component", "sizes", "quantity", "action", "value", "unit", "source")


def open_prices(name: str, folder: Path) -> TableEstimator:
    """Rows of a CSV file: "csv:mine.csv", beside the technology's file"""
    path = folder / name
    lines = read_text(path, EnergyError, what="a CSV file").splitlines()
    head = [line[1:].partition(":") for line in lines if line.startswith("#")]
    record: dict[str, object] = {key.strip(): _number(text) for key, _, text in head}
    rows = [(at, line) for at, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]
    record["title"] = record.get("name", path.stem)
    record["entry"] = list(_entries(path, rows))
    return TableEstimator(read_table(record, str(path)))


def _entries(path: Path, rows: list[tuple[int, str]]) -> Iterable[dict[str, object]]:
    """As entries of a table."""
    require(bool(rows), f"{path}: there must be a line of columns: {', '.join(COLUMNS)}")
    (_, heading), *rest = rows
    columns = [one.strip() for one in heading.split(",")]
    require(tuple(columns) == COLUMNS, f"{path}: columns must be {', '.join(COLUMNS)}")
    for at, line in rest:
        cells = next(csv.reader([line], skipinitialspace=True))
        require(
            len(cells) == len(COLUMNS), f"{path}, line {at}: there must be {len(COLUMNS)} cells"
        )
        given = {name: cell.strip() for name, cell in zip(COLUMNS, cells, strict=True)}
        pairs = [size.partition("=") for size in given.pop("sizes").split()]
        entry: dict[str, object] = {key: text for key, text in given.items() if text}
        entry["attributes"] = {key: _number(text) for key, _, text in pairs}
        entry["value"] = _number(given["value"])
        yield entry


def _number(text: str) -> object:
    """A number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()
