"""The tables of the page as texts: headings, and rows of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from archsim.plots.component_bars import MemoryTraffic
from archsim.plots.palette import cause_text
from archsim.plots.units import energy_unit, significant
from archsim.result import LayerResult, NetworkResult

if TYPE_CHECKING:
    from archsim.energy_account import EnergyAccount

NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A heading; numbers stand to the right, text may be long."""

    name: str
    number: bool = True


@dataclass(frozen=True, kw_only=True)
class Table:
    """rows: as many cells as columns.  total: the last row, or nothing.  muted: rows by number."""

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    total: Sequence[str] = ()
    muted: frozenset[int] = frozenset()


def layer_table(result: NetworkResult, account: EnergyAccount | None) -> Table:
    """All layers in order; vector work is muted, for it takes no cycles of the array."""
    causes = [name for name, count in result.where.items() if count]
    energies = {} if account is None else dict(account.by_layer)
    unit = None if account is None else energy_unit(account, max(energies.values(), default=0.0))
    energy_name = [f"energy ({unit.name})"] if unit else []
    side_by_side = any(one.groups_side_by_side > 1 for one in result.layers)
    blocks = ["groups side by side"] if side_by_side else []
    names = ["MACs", "cycles", "util %", *energy_name, "off-chip bytes", "tiles", *blocks]
    columns = [Column(name="layer", number=False), Column(name="kind", number=False)]
    columns += [Column(name=name) for name in (*names, *map(cause_text, causes))]

    def cells(one: LayerResult | NetworkResult, energy: float | None) -> list[str]:
        moved = sum(one.bytes_moved.values())
        return [
            f"{one.macs:,}",
            f"{one.cycles:,}",
            f"{100 * one.utilization:.1f}",
            *([significant((energy or 0.0) / unit.size)] if unit else []),
            f"{moved:,}",
            f"{_tiles(one):,}",
            *(_side_by_side(one) for _ in blocks),
            *(f"{one.where[name]:,}" for name in causes),
        ]

    rows = [
        [one.name, one.kind, *cells(one, energies.get(one.name))]
        if one.cycles
        else [one.name, one.kind, *[NOTHING] * (len(columns) - 2)]
        for one in result.layers
    ]
    return Table(
        name="layers",
        caption="Every layer",
        columns=columns,
        rows=rows,
        total=["total", "", *cells(result, account.total if account else None)],
        muted=frozenset(place for place, one in enumerate(result.layers) if not one.cycles),
    )


def _side_by_side(one: LayerResult | NetworkResult) -> str:
    return f"{one.groups_side_by_side:,}" if isinstance(one, LayerResult) else ""


def _tiles(one: LayerResult | NetworkResult) -> int:
    layers = one.layers if isinstance(one, NetworkResult) else (one,)
    return sum(layer.tiles for layer in layers)


def design_table(design: Mapping[str, Any]) -> Table:
    """Every parameter, names dotted as `--set` takes them."""
    return Table(
        name="design",
        caption="Parameters of the design",
        columns=[Column(name="parameter", number=False), Column(name="value")],
        rows=[[name, _value(value)] for name, value in _flat("", design)],
    )


def _flat(prefix: str, record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}.", cast("Mapping[str, Any]", value))
        else:
            yield f"{prefix}{name}", value


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.12g}"


def memory_table(moved: Sequence[MemoryTraffic]) -> Table:
    """Bytes in and out of every memory."""
    names = ("bytes read (out)", "bytes written (in)")
    return Table(
        name="memories",
        caption="Bytes in and out of every memory",
        columns=[Column(name="memory", number=False), *(Column(name=name) for name in names)],
        rows=[[one.name, f"{one.read_bytes:,.0f}", f"{one.written_bytes:,.0f}"] for one in moved],
    )


def price_table(account: EnergyAccount) -> tuple[Table, tuple[str, ...]]:
    """Every figure used, its source as a number; and the sources in that order."""
    sources = account.sources
    names = ("component", "hardware", "pieces", "what", "value", "unit", "source", "how")
    numbers = ("pieces", "value")
    rows: list[list[str]] = []
    for one in account.record()["energy"]["prices"]:
        known = one["value"] is not None
        rows.append(
            [
                one["component"],
                one["kind"],
                f"{one['count']:,}",
                one["what"],
                _figure(one["value"]) if known else NOTHING,
                one["unit"],
                f"[{sources.index(one['source']) + 1}]" if known else NOTHING,
                one["how"] or "as printed",
            ]
        )
    table = Table(
        name="prices",
        caption="Every figure used, of one piece of each component",
        columns=[Column(name=name, number=name in numbers) for name in names],
        rows=rows,
    )
    return table, sources


def _figure(value: float) -> str:
    """Six significant digits at least, as many as printed figures have at most."""
    return f"{value:,.0f}" if value >= 1e6 else f"{value:,.6g}"


def missing(account: EnergyAccount) -> dict[str, list[str]]:
    """What no source says, by reason: "leakage of ifmap.memory (mux, register)"."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for one in account.price_list.prices:
        if one.figure is None:
            where = f"{one.what} of {one.component.name}"
            listed = kinds.setdefault(one.figure_missing, {}).setdefault(where, [])
            if one.component.kind not in listed:
                listed.append(one.component.kind)
    return {
        reason: [f"{where} ({', '.join(listed)})" for where, listed in places.items()]
        for reason, places in kinds.items()
    }
