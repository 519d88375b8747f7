"""How the dot-product unit is proved: random layers with stalls, dot products in parts."""

from collections.abc import Iterable
from typing import Any

from archsim.machine.option import Options
from rtl.coverage.bins import Bin
from rtl.coverage.integer_bins import EDGES
from rtl.draw import Draw
from rtl.layer_verification import LayerVerification


class DotVerification(LayerVerification):
    """Products of matrices and convolutions."""

    def random_options(self, draw: Draw, design: Any) -> Options:
        return {"parts": draw.whole(2, 4)} if draw.chance(0.4) else {}

    def bins(self, design: Any) -> Iterable[Bin]:
        yield from super().bins(design)
        yield Bin(
            name="one step a sum",
            why="the first pair is the last",
            hit=lambda seen: int(seen.words("command")[0, 1]) == 1,
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
