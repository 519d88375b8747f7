"""The proof of a `LayerMachine` (`archsim.machine.layer_machine`): random layers, random stalls.

class MyCore(DesignComponent):
    @staticmethod
    def verification() -> Verification:
        from rtl.layer_verification import LayerVerification
        return LayerVerification(counters=MyCore.counters, tail_cycles=4)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.layer_machine import LayerAnswer
from archsim.machine.model import MatrixLayer
from archsim.machine.option import Options
from archsim.numbers import IntArray
from rtl.conformance import Case
from rtl.coverage.aims import Aim
from rtl.coverage.integer_bins import EDGES
from rtl.coverage.shrink import cut_gaps, smaller_gaps, smaller_pieces
from rtl.draw import Draw
from rtl.verification import Verification
from workloads.layers import Conv2d, MatMul

MOST_DRAWS = 50
"""Layers that are drawn for a case before it is given up."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerCase(Case):
    """A layer with its operands and options.

    idle: by port, idle cycles before each word.  counted, settles: `counters`, `tail_cycles`.
    """

    design: Any
    layer: MatrixLayer
    operands: Any
    counted: tuple[str, ...] = ()
    settles: int = 4
    options: Options = field(default_factory=dict[str, Any])
    idle: Mapping[str, IntArray] = field(default_factory=dict[str, IntArray])
    label: str = ""

    @property
    def counters(self) -> tuple[str, ...]:
        return self.counted

    @property
    def tail_cycles(self) -> int:
        return self.settles

    @property
    def name(self) -> str:
        return self.layer.name

    @property
    def macs(self) -> int:
        return self.layer.macs

    def answer(self) -> LayerAnswer:
        """By the model of the design's kind."""
        model = self.design.machine_model()
        return model.answers(
            design=self.design,
            layer=self.layer,
            operands=self.operands,
            options=self.options,
            gaps=self.idle,
        )

    def waiting(self, gaps: Mapping[str, IntArray]) -> "LayerCase":
        return replace(self, idle=gaps)

    def smaller(self) -> list[Case]:
        """Fewer stalls; half of the layer."""
        cut: list[Case] = []
        for layer, operands in smaller_pieces(self.layer, self.operands):
            free = replace(self, layer=layer, operands=operands, idle={})
            counts = free.answer().counts
            idle = {port: cut_gaps(own, counts[port]) for port, own in self.idle.items()}
            cut.append(replace(free, idle=idle))
        return [*(self.waiting(fewer) for fewer in smaller_gaps(dict(self.idle))), *cut]

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        return {port: expected.waits(port) for port in expected.counts}

    def figures_apart(self) -> Mapping[str, tuple[int, int]]:
        """Its cycles and their causes; words and how many are said to cross; with ports that are
        said not to wait, and with none said."""
        free = replace(self, idle={}).answer()
        still = {port: np.zeros(count, np.int64) for port, count in free.counts.items()}
        pairs = {
            "cycles and their causes": (free.cycles, sum(free.where.values())),
            "cycles without gaps and with none": (free.cycles, self.waiting(still).answer().cycles),
            **{f"{port} words and their count": (len(words), free.counts[port])
               for port, words in free.words.items()},
        }  # fmt: skip
        return {name: two for name, two in pairs.items() if two[0] != two[1]}

    def details(self) -> dict[str, str]:
        chosen = ", ".join(f"{name} {value}" for name, value in self.options.items())
        return {"layer": f"{self.name} ({chosen})" if chosen else self.name}


@dataclass(frozen=True, kw_only=True)
class LayerVerification(Verification):
    """Random products and convolutions, with random stalls on every port.

    counters: what the component counts.  tail_cycles: how long after its last word they settle.
    """

    case: ClassVar[type[LayerCase]] = LayerCase
    """With what else of its figures can be compared."""

    counters: tuple[str, ...]
    tail_cycles: int

    def random_layer(self, draw: Draw, design: Any) -> MatrixLayer:
        """A small layer of awkward shape."""
        if draw.chance(0.5):
            return MatMul(
                name="product", m=draw.whole(1, 6), n=draw.whole(1, 6),
                k=draw.whole(1, 3 * design.macs_per_cycle), batch=draw.whole(1, 2),
                shared_weight=False,
            )  # fmt: skip
        groups, kernel = draw.whole(1, 2), draw.whole(1, 3)
        return Conv2d(
            name="convolution", channels=groups * draw.whole(1, 4), groups=groups,
            filters=groups * draw.whole(1, 3), ifmap_height=draw.whole(3, 5),
            ifmap_width=draw.whole(3, 5), kernel_height=kernel, kernel_width=draw.whole(1, 3),
            stride_height=draw.whole(1, 2), pad_top=draw.whole(0, kernel - 1),
        )  # fmt: skip

    def random_options(self, draw: Draw, design: Any) -> Options:
        """What a user might choose of the machine."""
        return {}

    def random_case(self, seed: int, number: int, design: Any, longest_words: int) -> LayerCase:
        """The first layer drawn whose words are few enough."""
        draw = Draw(seed, number)
        for _ in range(MOST_DRAWS):
            layer, options = self.random_layer(draw, design), self.random_options(draw, design)
            model = design.machine_model()
            counts = model.answer(layer, None, options).counts
            if sum(counts.values()) <= longest_words:
                break
        else:
            raise InputError(f"no layer of at most {longest_words} words was drawn for the design")
        return self._case(
            design=design,
            layer=layer,
            operands=design.intake.synthetic(layer, Drawing(seed=seed)),
            options=options,
            idle={port: draw.gaps(count) for port, count in counts.items()},
            label=f"seed {seed} case {number}",
        )

    def aims(self, design: Any) -> Mapping[str, Aim]:
        return {**super().aims(design), EDGES: self._edges}

    def _edges(self, draw: Draw, design: Any, longest_words: int) -> LayerCase:
        """A product whose every value is at an end of its width; of the first row and column all
        at the low one, whose sum is the largest."""
        most = design.macs_per_cycle
        layer = MatMul(name="edges", m=3, n=3, k=draw.whole(most, 2 * most), shared_weight=False)
        operands = design.intake.synthetic(layer, Drawing())
        low = -(1 << (design.intake.source_bits - 1))
        ends = {
            name: draw.rng.choice([low, low, -1 - low], getattr(operands, name).shape).astype(
                getattr(operands, name).dtype
            )
            for name in ("ifmap", "weight")
        }
        ends["ifmap"][:, 0], ends["weight"][:, :, 0] = low, low
        return self.layer_case(design, layer, replace(operands, **ends))

    def layer_case(self, design: Any, layer: MatrixLayer, operands: Any) -> LayerCase:
        return self._case(design=design, layer=layer, operands=operands)

    def counters_of(self, design: Any) -> tuple[str, ...]:
        """What a design's component counts."""
        return self.counters

    def _case(self, **given: Any) -> LayerCase:
        counted = self.counters_of(given["design"])
        return self.case(counted=counted, settles=self.tail_cycles, **given)


__all__ = ["LayerCase", "LayerVerification"]
