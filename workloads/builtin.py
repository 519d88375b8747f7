"""The networks which come with the package, by name.

Each is a file `networks/NAME.toml`: `source`, `parameters` (whole numbers), `words` (bits of
text which a variant replaces), `input` (a shape), `blocks` and `layers` in the notation of
`workloads.notation`, `batch_normalised` where a convolution's bias is a normalisation that
training computes, `dropout` the percentage of units that its source drops in training, and
`published` figures against which the tests hold the totals. A file
with `extends` takes everything from another one and replaces the parameters, words and
published figures which it gives itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from workloads.checks import positive
from workloads.errors import WorkloadError, unknown_name
from workloads.layers import Network
from workloads.notation import Builder
from workloads.notation_operators import shape_of

_FOLDER = Path(__file__).parent / "networks"
_KEYS = {
    "source", "parameters", "input", "blocks", "layers", "published", "extends", "words",
    "batch_normalised", "dropout",
}  # fmt: skip


@cache
def networks() -> tuple[str, ...]:
    """Names of the built-in networks, sorted."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in _FOLDER.glob("*.toml")))


def builtin(
    name: str, *, parameters: Mapping[str, int] | None = None, others: Sequence[str] = ()
) -> Network:
    """The built-in network `name`, with some of its file's parameters replaced.

    others: words that may stand behind its name too, for who asks for what there is not.

    Raises WorkloadError for an unknown name (it lists the nearest), an unknown parameter and a
    parameter which is not positive.
    """
    data = _data(name)
    values = dict(cast("dict[str, int]", data["parameters"]))
    for key, value in (parameters or {}).items():
        if key not in values:
            raise WorkloadError(
                f"{name}: no parameter is named {key!r}; there are "
                f"{', '.join([*sorted(values), *others])}"
            )
        positive(name, **{key: value})
        values[key] = value
    shape = shape_of(str(data["input"]).format_map(values))
    filled: dict[str, str | int] = {**values, **data.get("words", {})}
    blocks = cast("dict[str, str]", data.get("blocks", {}))
    blocks = {key: _keep(text, filled) for key, text in blocks.items()}
    normalised = bool(data.get("batch_normalised", False))
    builder = Builder(
        shape=shape, blocks=blocks, where=f"networks/{name}.toml", normalised=normalised
    )
    builder.read(data["layers"], filled)
    return Network(
        name=name,
        layers=tuple(builder.layers),
        source=data["source"],
        feeds=builder.feeds(),
        flow=tuple(builder.flow),
    )


def published(name: str) -> tuple[Mapping[str, Any], ...]:
    """Published figures for the network: quantity, value, tolerance (relative), source, reason."""
    return tuple(_data(name).get("published", ()))


def published_dropout(name: str) -> int | None:
    """Percentage of units that a network's source drops in training; None where it says none."""
    return _data(name).get("dropout") if name in networks() else None


def _data(name: str) -> dict[str, Any]:
    if name not in networks():
        raise unknown_name("built-in network", name, networks())
    data = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise WorkloadError(f"networks/{name}.toml: unknown key {unknown[0]!r}")
    if "extends" not in data:
        return data
    base = _data(data["extends"])
    replaced = {**base["parameters"], **data.get("parameters", {})}
    return {**base, **data, "parameters": replaced}


def _keep(text: str, values: Mapping[str, str | int]) -> str:
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", str(value))
    return text
