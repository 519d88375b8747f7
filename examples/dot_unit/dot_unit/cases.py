"""How the dot-product unit is proved: random layers, with stalls on every port."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archsim.layer.intake import Drawing
from archsim.machine.model import MatrixLayer
from archsim.numbers import IntArray
from dot_unit.core import COUNTERS
from dot_unit.design import DotUnit
from dot_unit.model import PORTS, DotAnswer
from rtl.cases import Draw
from rtl.conformance import Case
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

    def layer_case(self, design: DotUnit, layer: MatrixLayer, operands: Any) -> DotCase:
        return DotCase(design=design, layer=layer, operands=operands)
