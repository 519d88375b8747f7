"""How the dot-product unit is proved: random layers, with stalls on every port."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from archsim.layer.intake import Drawing
from archsim.machine.model import MatrixLayer
from archsim.numbers import IntArray
from dot_unit.core import COUNTERS
from dot_unit.design import DotUnit
from dot_unit.model import PORTS, DotAnswer
from rtl.conformance import Case
from rtl.coverage.aims import Aim
from rtl.coverage.bins import Bin
from rtl.coverage.integer_bins import EDGES
from rtl.coverage.shrink import cut_gaps, smaller_gaps, smaller_pieces
from rtl.draw import Draw
from rtl.verification import Verification
from workloads.layers import Conv2d, MatMul


@dataclass(frozen=True, kw_only=True, eq=False)
class DotCase(Case):
    """A layer; idle: by port, idle cycles before each word."""

    design: DotUnit
    layer: MatrixLayer
    operands: Any
    idle: Mapping[str, IntArray] = field(default_factory=dict[str, IntArray])
    label: str = ""

    @property
    def counters(self) -> tuple[str, ...]:
        return COUNTERS

    @property
    def tail_cycles(self) -> int:
        return 4

    @property
    def name(self) -> str:
        return self.layer.name

    @property
    def macs(self) -> int:
        return self.layer.macs

    def answer(self) -> DotAnswer:
        return DotAnswer(
            design=self.design, layer=self.layer, operands=self.operands, gaps=self.idle
        )

    def waiting(self, gaps: Mapping[str, IntArray]) -> "DotCase":
        return replace(self, idle=gaps)

    def smaller(self) -> list[Case]:
        """Fewer stalls; half of the layer."""
        cut = []
        for layer, operands in smaller_pieces(self.layer, self.operands):
            free = DotCase(design=self.design, layer=layer, operands=operands, label=self.label)
            words = free.answer().words
            idle = {port: cut_gaps(own, len(words[port])) for port, own in self.idle.items()}
            cut.append(replace(free, idle=idle))
        return [*(self.waiting(fewer) for fewer in smaller_gaps(dict(self.idle))), *cut]

    def gaps(self, expected: Any) -> Mapping[str, IntArray]:
        return {
            port: self.idle.get(port, np.zeros(len(expected.words[port]), np.int64))
            for port in PORTS
        }


class DotVerification(Verification):
    """Products of matrices and convolutions."""

    def random_case(self, seed: int, number: int, design: DotUnit, longest_words: int) -> DotCase:
        draw = Draw(seed, number)
        if draw.chance(0.5):
            layer: MatrixLayer = MatMul(
                name="product", m=draw.whole(1, 6), n=draw.whole(1, 6),
                k=draw.whole(1, 3 * design.lanes), batch=draw.whole(1, 2), shared_weight=False,
            )  # fmt: skip
        else:
            groups, kernel = draw.whole(1, 2), draw.whole(1, 3)
            layer = Conv2d(
                name="convolution", channels=groups * draw.whole(1, 4), groups=groups,
                filters=groups * draw.whole(1, 3), ifmap_height=draw.whole(3, 5),
                ifmap_width=draw.whole(3, 5), kernel_height=kernel, kernel_width=draw.whole(1, 3),
                stride_height=draw.whole(1, 2), pad_top=draw.whole(0, kernel - 1),
            )  # fmt: skip
        operands = design.intake.synthetic(layer, Drawing(seed=seed))
        case = self.layer_case(design, layer, operands)
        words = case.answer().words
        idle = {port: draw.gaps(len(words[port])) for port in PORTS}
        return DotCase(
            design=design, layer=layer, operands=operands, idle=idle,
            label=f"seed {seed} case {number}",
        )  # fmt: skip

    def bins(self, design: DotUnit) -> Iterable[Bin]:
        yield from super().bins(design)
        yield Bin(
            name="one step a sum",
            why="the first pair is the last",
            hit=lambda seen: int(seen.words("command")[0, 1]) == 1,
        )
        yield Bin(
            name="a last pair that waits for the sum before",
            why="the one register of a sum is full",
            hit=lambda seen: bool((seen.gaps["ofmap"] > seen.words("command")[0, 1]).any()),
        )
        low = -(1 << (design.operand_bits - 1))
        yield Bin(
            name="the lowest value by the lowest value",
            why="the largest product needs the multiplier's last bit",
            hit=lambda seen: bool(
                ((seen.words("ifmap") == low) & (seen.words("weight") == low)).any()
            ),
            aim=EDGES,
        )

    def aims(self, design: DotUnit) -> Mapping[str, Aim]:
        return {**super().aims(design), EDGES: self._edges}

    def _edges(self, draw: Draw, design: DotUnit, longest_words: int) -> DotCase:
        """A product whose every value is at an end of its width."""
        layer = MatMul(name="edges", m=3, n=3, k=draw.whole(1, 2 * design.lanes))
        operands = design.intake.synthetic(layer, Drawing())
        low, high = -(1 << (design.operand_bits - 1)), (1 << (design.operand_bits - 1)) - 1
        ends = {
            name: draw.rng.choice([low, low, high], getattr(operands, name).shape).astype(
                getattr(operands, name).dtype
            )
            for name in ("ifmap", "weight")
        }
        return self.layer_case(design, layer, replace(operands, **ends))

    def layer_case(self, design: DotUnit, layer: MatrixLayer, operands: Any) -> DotCase:
        return DotCase(design=design, layer=layer, operands=operands)
