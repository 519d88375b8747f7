"""Layers one behind the other on a core that is walked by tiles: each as if it were the first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from archsim.numbers import IntArray
from archsim.ports import Transfers
from archsim.tiled.design import OPERANDS, CoreDesign
from archsim.tiled.trace import PORTS, Answer
from rtl.conformance import Case
from rtl.tile_conformance import TileCase


@dataclass(frozen=True, kw_only=True)
class SequenceAnswer:
    """The answers of the layers, each from the cycle on behind the end of the one before."""

    transfers: dict[str, Transfers]
    actions: dict[str, int]
    earliest: dict[str, IntArray]
    cycles: int


@dataclass(frozen=True, kw_only=True)
class SequenceCase(Case):
    """Layers on one design, with explicit gaps on every port.

    A layer's command, and its operands, are offered from the cycle on in which the last ofmap word
    of the layer before has crossed.  Nothing of a layer may be left in the core by then.
    """

    design: CoreDesign
    layers: tuple[TileCase, ...]
    early: bool = False
    """Commands and operands are offered at once, while the layer before runs.  The model then says
    which words cross in which order, and how often what was done, but not in which cycles."""
    label: str = ""

    @property
    def timed(self) -> bool:
        return not self.early

    @property
    def layers_in_row(self) -> int:
        return len(self.layers)

    @property
    def name(self) -> str:
        return ", ".join(layer.name for layer in self.layers)

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def counters(self) -> tuple[str, ...]:
        return self.design.actions

    @property
    def tail_cycles(self) -> int:
        return self.layers[-1].tail_cycles

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """What the model says of each layer by itself, loaded into the halves that come next."""
        found: list[Answer] = []
        halves: Mapping[str, int] = dict.fromkeys(OPERANDS, 0)
        for layer in self.layers:
            found.append(layer.answer(halves))
            halves = found[-1].halves(halves)
        return tuple(found)

    def answer(self) -> SequenceAnswer:
        """What the model says of each layer, one behind the other."""
        starts = np.cumsum([0, *(each.cycles for each in self.answers)]).tolist()
        begun = list(zip(self.answers, starts, self.layers, strict=False))
        gaps = [layer.gaps(each) for each, _, layer in begun]
        return SequenceAnswer(
            transfers={
                name: Transfers(
                    cycle=np.concatenate([a.transfers[name].cycle + at for a, at, _ in begun]),
                    payload=np.concatenate([a.transfers[name].payload for a, _, _ in begun]),
                )
                for name in PORTS
            },
            actions={name: sum(a.actions[name] for a in self.answers) for name in self.counters},
            earliest={
                name: np.concatenate(
                    [
                        np.zeros_like(each.earliest[name])
                        if self.early
                        else _from(at, gap[name], each.earliest[name])
                        for (each, at, _), gap in zip(begun, gaps, strict=True)
                    ]
                )
                for name in PORTS
            },
            cycles=starts[-1],
        )

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        own = [layer.gaps(each) for layer, each in zip(self.layers, self.answers, strict=True)]
        return {name: np.concatenate([gaps[name] for gaps in own]) for name in PORTS}

    def waiting(self, gaps: Mapping[str, IntArray]) -> "SequenceCase":
        ends = {
            name: np.cumsum([len(each.transfers[name]) for each in self.answers]) for name in PORTS
        }
        parts = {name: np.split(gaps[name], ends[name][:-1]) for name in PORTS}
        return replace(
            self,
            layers=tuple(
                layer.waiting({name: parts[name][number] for name in PORTS})
                for number, layer in enumerate(self.layers)
            ),
        )

    def figures_apart(self) -> Mapping[str, tuple[int, int]]:
        """Of its last layer: each of the others is a case's by itself."""
        return self.layers[-1].figures_apart()

    def smaller(self) -> "list[Case]":
        """One of the layers; half of them; all but one; each made smaller, where there are two."""
        layers, count = self.layers, len(self.layers)
        halves = [layers[: count // 2], layers[count // 2 :]] if count > 2 else []
        lesser = [layers[:n] + layers[n + 1 :] for n in range(count)] if count > 2 else []
        inner = [
            (*layers[:n], one, *layers[n + 1 :])
            for n in range(count if count <= 3 else 0)
            for one in layers[n].smaller()
        ]
        return [*layers, *(replace(self, layers=some) for some in (*halves, *lesser, *inner))]

    def details(self) -> dict[str, str]:
        return {
            f"{number}: {what}": text
            for number, layer in enumerate(self.layers)
            for what, text in layer.details().items()
        }


def _from(start: int, gaps: IntArray, earliest: IntArray) -> IntArray:
    """Cycles before which words are not offered, of a layer from `start` on.

    A layer's first word of a port has its gap behind the layer's start.
    """
    shifted = np.maximum(earliest + start, start)
    if len(shifted):
        shifted[0] = max(int(shifted[0]), start + int(gaps[0]))
    return shifted
