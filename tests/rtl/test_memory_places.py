"""Every memory of every machine, of every kind there is: it works, or it is refused in a line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machine.registry import (
    design_from_record,
    design_record,
    load_design,
    registered,
    with_settings,
)
from archsim.machines.sparsetrain.design import AGAIN, SUMS, WINDOW
from archsim.memory.kinds import access_of, kinds
from archsim.memory.seam import PROTOCOLS
from archsim.simulate import simulate
from rtl.core.memory import rtl_of
from workloads.layers import Conv2d, MatMul, Network

KINDS = sorted({name for access in PROTOCOLS for name in kinds(access)})

SIZES: dict[str, tuple[str, tuple[float, ...]]] = {
    "boveda": ("group", (4, 16)),
    "faulty": ("rate", (1e-3,)),
    "parity": ("data_bits", (4, 8, 16, 20, 24, 32, 512)),
    "secded": ("data_bits", (4, 8, 16, 20, 24, 32, 512)),
}
"""Of a kind, what is to be said of it, and what may fit words of some machine."""

READ_ANY = "which that kind is not made for"
GROWS = "its rows of sums are added to, and grow where they lie"

OF_TILES = {
    "ifmap_memory": {},
    "weight_memory": {},
    "accumulator_memory": {"boveda": GROWS},
    "bias_memory": {"boveda": READ_ANY},
}
VECTORS = "its words are vectors with scales, not values of one width"

REFUSED: dict[str, dict[str, dict[str, str]]] = {
    "systolic": OF_TILES,
    "tensorcore": OF_TILES,
    "vsq": {
        **OF_TILES,
        "ifmap_memory": {"boveda": VECTORS},
        "weight_memory": {"boveda": VECTORS},
    },
    "scnn": {
        "activation_memory": {},
        "weight_memory": {"boveda": READ_ANY},
        "accumulator_memory": {"boveda": READ_ANY},
    },
    "sparsetrain": {
        "row_memory": {"boveda": READ_ANY, "faulty": WINDOW},
        "column_memory": {"boveda": READ_ANY, "faulty": WINDOW},
        "accumulator_memory": {"boveda": READ_ANY, "faulty": SUMS},
        "scratchpad_memory": {"boveda": READ_ANY, "faulty": AGAIN},
    },
}
"""By machine, memory and kind, why it is refused: every other one works."""

SMALL = {"systolic": "edge-16", "tensorcore": "volta", "vsq": "vsq-16", "scnn": "scnn",
         "sparsetrain": "sparsetrain"}  # fmt: skip

LAYER = MatMul(name="fc", m=3, n=4, k=8)
PLANE = Conv2d(name="conv", channels=2, ifmap_height=4, ifmap_width=4, filters=2,
               kernel_height=3, kernel_width=3)  # fmt: skip


def _places() -> Iterator[tuple[str, str, str]]:
    """Machine, memory and kind."""
    for machine, name in SMALL.items():
        for entry in dataclasses.fields(load_design(name)):  # pyright: ignore[reportArgumentType]
            if access_of(entry):
                yield from ((machine, entry.name, kind) for kind in KINDS)


PLACES = tuple(_places())


def of_kind(machine: str, field: str, kind: str) -> Design:
    """The design with such a memory, of the first size that fits; else raises the last refusal."""
    design, setting = load_design(SMALL[machine]), f"{field}.kind={kind}"
    said, sizes = SIZES.get(kind, ("", ()))
    if not sizes or kind not in kinds(access_of(_field(machine, field)) or "bank"):
        return with_settings(design, [setting])
    for size in sizes[:-1]:
        with suppress(InputError):
            return with_settings(design, [setting, f"{field}.{said}={size}"])
    return with_settings(design, [setting, f"{field}.{said}={sizes[-1]}"])


def _field(machine: str, name: str) -> Any:
    design: Any = load_design(SMALL[machine])
    return next(one for one in dataclasses.fields(design) if one.name == name)


def test_every_machine_is_here() -> None:
    assert set(SMALL) == {design.kind for design in registered().values()} == set(REFUSED)
    assert {(machine, field) for machine, field, _ in PLACES} == {
        (machine, field) for machine, found in REFUSED.items() for field in found
    }


@cache
def network(machine: str) -> Network:
    layer = PLANE if machine == "scnn" else LAYER
    return Network(name="one", layers=(layer,), source="here")


def check_priced_bits(design: Any, name: str, memory: Any) -> None:
    """Its SRAMs have the bits that it says, but for a word that does not fit in each half."""
    bits = sum(
        one.count * one.attributes["word_bits"] * one.attributes["depth"]
        for one in design.components
        if one.kind == "sram" and one.name.startswith(f"{name}.")
    )
    total = memory.total_bits(design.use(name))
    assert 0.99 * total < bits <= total


@pytest.mark.parametrize(("machine", "field", "kind"), PLACES)
def test_it_works_or_says_why_not(machine: str, field: str, kind: str) -> None:
    why = REFUSED[machine][field].get(kind)
    if why is not None:
        with pytest.raises(InputError) as raised:
            of_kind(machine, field, kind)
        line = str(raised.value)
        assert line.startswith(f"the design: {field}") and line.endswith(why) and "\n" not in line
        return
    design: Any = of_kind(machine, field, kind)
    memory = getattr(design, field)
    assert memory.kind == kind
    assert design_from_record(design_record(design), "it") == design
    assert rtl_of(memory) is not None
    if access_of(_field(machine, field)) == "scratchpad":
        check_priced_bits(design, field.removesuffix("_memory"), memory)
    (layer,) = network(machine).matrix_layers
    operands = {layer.name: design.intake.synthetic(layer, Drawing(seed=1))}
    result = simulate(design, network(machine), operands=operands)
    assert result.cycles and result.layers[0].ofmap is not None
