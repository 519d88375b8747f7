"""How the dot-product unit is proved: random layers with stalls, dot products in parts."""

from typing import Any

from archsim.machine.option import Options
from rtl.cases import Draw
from rtl.layer_verification import LayerVerification


class DotVerification(LayerVerification):
    """Products of matrices and convolutions."""

    def random_options(self, draw: Draw, design: Any) -> Options:
        return {"parts": draw.whole(2, 4)} if draw.chance(0.4) else {}
