"""Random small vector MAC cores, for the tests that run them as RTL."""

from archsim.machines.vsq.design import Vsq
from archsim.memory import Plain
from rtl.cases import Draw


def random_design(draw: Draw) -> Vsq:
    """Lanes and vectors of any ratio, scales on both operands, on one, on none."""
    lanes, scaled = draw.whole(1, 5), draw.chance(0.75)
    divisors = [size for size in range(1, lanes + 1) if lanes % size == 0]
    vector = lanes * draw.whole(1, 3) if draw.chance(0.6) else draw.one_of(*divisors)
    sizes = {
        "weight_bits": draw.whole(3, 8),
        "activation_bits": draw.whole(3, 8),
        "weight_scale_bits": draw.whole(2, 6) if scaled and draw.chance(0.8) else 0,
        "activation_scale_bits": draw.whole(2, 6) if scaled else 0,
    }
    term_bits = sum(sizes.values()) + (vector - 1).bit_length() + 1
    return Vsq(
        lanes=lanes,
        vector=vector,
        hold_cycles=draw.whole(1, 6),
        weight_bits=sizes["weight_bits"],
        activation_bits=sizes["activation_bits"],
        weight_scale_bits=sizes["weight_scale_bits"],
        activation_scale_bits=sizes["activation_scale_bits"],
        scale_product_bits=draw.whole(2, 8) if scaled and draw.chance(0.5) else 0,
        collector_bits=min(term_bits + draw.whole(0, 2), 32),
        overflow="saturate" if draw.chance(0.7) else "wrap",
        activation_signed=draw.chance(0.7),
        gated=scaled and draw.chance(0.4),
        ifmap_memory=Plain(capacity_bytes=draw.whole(400, 6000)),
        weight_memory=Plain(capacity_bytes=draw.whole(2000, 8000)),
        accumulator_memory=Plain(capacity_bytes=draw.whole(400, 6000)),
        bias_words=draw.whole(2, 64),
    )
