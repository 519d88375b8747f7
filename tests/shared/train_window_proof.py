"""What is proved of the choice of a PE's lanes: place after place, as its contract says it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import C, Cat, Module, Mux, Value
from unit_proofs import Proof, made

from archsim.machines.sparsetrain.design import SparseTrain
from rtl.core.train_window import source
from rtl.formal import claim, named


class TrainWindowProof(Proof):
    """A lane that is free takes the pair at its place, if it is left; then neither is.

    Behind that so many rows are done as are empty, from the first on.
    """

    def __init__(self, unit: Any, *, design: SparseTrain) -> None:
        self.design = design
        split = {"split": 1} if design.segments > 1 else {}
        pairs = {f"pairs_{row}": design.lanes for row in range(design.window_rows)}
        super().__init__(unit, **pairs, **split)

    def elaborate(self, platform: object) -> Module:
        m, design = Module(), self.design
        window = made(m, "window", self.unit.TrainWindow(design=design))
        rows, lanes = range(design.window_rows), range(design.lanes)
        left: list[list[Value]] = []
        for row in rows:
            pairs = getattr(self.free, f"pairs_{row}")
            m.d.comb += getattr(window, f"pairs_{row}").eq(pairs)
            left.append([pairs[lane] for lane in lanes])
        split: Value = self.free.split if design.segments > 1 else C(0, 1)
        if design.segments > 1:
            m.d.comb += window.split.eq(split)
        free: list[Value] = [C(1, 1) for _ in lanes]
        for at, place in enumerate(design.window):
            row = left[place.ahead]
            sources = [
                [source(design, lane, place.aside, one) for lane in lanes] for one in (False, True)
            ]
            takes = [
                named(m, f"takes_{at}_{lane}", free[lane] & Mux(split, row[apart], row[whole]))
                for lane, (whole, apart) in enumerate(zip(*sources, strict=True))
            ]
            m.d.comb += claim(m, f"chosen_{at}", getattr(window, f"chosen_{at}") == Cat(takes))
            taken = [
                Mux(split, takes[sources[1].index(lane)], takes[sources[0].index(lane)])
                for lane in lanes
            ]
            left[place.ahead] = [one & ~gone for one, gone in zip(row, taken, strict=True)]
            free = [one & ~took for one, took in zip(free, takes, strict=True)]
        done: Value = C(len(rows))
        for row in reversed(rows):
            m.d.comb += claim(m, f"left_{row}", getattr(window, f"left_{row}") == Cat(left[row]))
            if row:
                done = Mux(Cat(left[row]).any(), row, done)
        m.d.comb += claim(m, "done", window.done == done)
        return m


__all__ = ["TrainWindowProof"]
