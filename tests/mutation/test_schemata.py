"""Many variants of a module in one: each is what it is by itself, as the solver says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.mutation.netlist import Cell, netlists, yosys
from tests.mutation.schemata import CHOICE, CHOICE_BITS, CannotMergeError
from tests.mutation.variants import Schema, Variant

WAYS = ("", "minus", "other init", "kept over a reset", "narrow", "no register", "one more",
        "exchanged")  # fmt: skip


class Adds(wiring.Component):
    """Adds what comes in to what is there."""

    def __init__(self, way: str) -> None:
        self.way = way
        super().__init__({"a": In(4), "hold": In(1), "o": Out(5)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a: Any = self.a  # pyright: ignore[reportAttributeAccessIssue]
        hold: Any = self.hold  # pyright: ignore[reportAttributeAccessIssue]
        o: Any = self.o  # pyright: ignore[reportAttributeAccessIssue]
        held = Signal(
            3 if self.way == "narrow" else 4, init=int(self.way == "other init"),
            reset_less=self.way == "kept over a reset",
        )  # fmt: skip
        added = held - a if self.way == "minus" else held + a
        m.d.sync += held.eq(Mux(hold, added, held) if self.way == "exchanged" else
                            Mux(hold, held, added))  # fmt: skip
        if self.way == "one more":
            late = Signal(5)
            m.d.sync += late.eq(held ^ a)
            m.d.comb += o.eq(late)
        elif self.way == "no register":
            m.d.comb += o.eq(a)
        else:
            m.d.comb += o.eq(held ^ a)
        return m


def text(way: str) -> str:
    return rtlil.convert(Adds(way), name="adds", emit_src=False)


def placed(inner: str) -> str:
    """A core that has the module in it."""
    ports = [("input", "a", 4), ("input", "hold", 1), ("output", "o", 5), ("input", "clk", 1),
             ("input", "rst", 1)]  # fmt: skip
    wires = [f"  wire width {width} {way} {at} \\{name}" for at, (way, name, width) in
             enumerate(ports, 1)]  # fmt: skip
    joined = [f"    connect \\{name} \\{name}" for _, name, _ in ports]
    lines = ["module \\top", *wires, f"  cell \\{inner} \\it", *joined, "  end", "end", ""]
    return "\n".join(lines)


def test_every_variant_is_what_it_is_alone_and_no_other(tmp_path: Path) -> None:
    sound, *others = netlists([{"adds": text(way), "top": placed("adds")} for way in WAYS])
    schema = Schema(sound, {})
    for number, other in enumerate(others, 1):
        schema.add(Variant(number=number, changed={"adds": other["adds"]}))
    made = json.dumps({"creator": "", "modules": schema.modules()})
    (tmp_path / "all.json").write_text(made)
    commands = ["read_json all.json", "hierarchy -top top", "flatten", "design -stash merged"]
    for number, way in enumerate(WAYS):
        (tmp_path / f"{number}.il").write_text(text(way))
        commands += compared(number, number, "-verify")
        commands += compared((number + 1) % len(WAYS), number, "-falsify")
    yosys(commands, tmp_path)


def compared(chosen: int, number: int, wanted: str) -> list[str]:
    """Whether the merged module, of this choice, does for eight cycles behind a reset what module
    `number` does."""
    return [
        "design -reset", "design -copy-from merged -as gold top",
        f"read_rtlil {number}.il", "rename adds gate", "proc", "opt_clean",
        f"add -input {CHOICE} {CHOICE_BITS} gate",
        "miter -equiv -flatten -make_outputs gold gate both", "hierarchy -top both",
        f"sat {wanted} -seq 9 -set in_{CHOICE} {chosen} -set-at 1 in_rst 1 -prove trigger 0",
    ]  # fmt: skip


def test_a_loop_and_another_boundary_of_the_core_cannot_be_merged() -> None:
    sound = netlists([{"adds": text(""), "top": placed("adds")}])[0]
    turning = Cell(name="it", type="$not", parameters=(), connections={"A": (9,), "Y": (9,)})
    loop = replace(sound["adds"], cells=[*sound["adds"].cells, turning])
    ports = {name: port for name, port in sound["top"].ports.items() if name != "o"}
    without = replace(sound["top"], ports=ports)
    schema = Schema(sound, {})
    for changed in ({"adds": loop}, {"top": without}, {"top": sound["top"], "adds": loop}):
        with pytest.raises(CannotMergeError):
            schema.add(Variant(number=1, changed=changed))
    assert schema.variants == {"adds": [], "top": []}
    assert not schema.extra
