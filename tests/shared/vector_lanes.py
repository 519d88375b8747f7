"""Any vector lane, for property tests of the model and of the hardware."""

from __future__ import annotations

from hypothesis import strategies as st

from archsim.codecs.vector_dot import VectorMac
from archsim.codecs.vsquant import VectorFormat
from archsim.machines.vsq.vector_lane import VectorLaneDesign

_FORMS = st.tuples(st.integers(3, 8), st.booleans(), st.none() | st.integers(3, 10))


@st.composite
def vector_lanes(draw: st.DrawFn, *, longest: int) -> VectorLaneDesign:
    """Any formats, widths, depth and gating; vectors of up to `longest` values."""
    length = draw(st.integers(1, longest))
    weight, activation = (
        VectorFormat(bits=bits, signed=signed, vector=length if m else None, scale_bits=m)
        for bits, signed, m in (draw(_FORMS), draw(_FORMS))
    )
    mac = VectorMac(
        weight=weight,
        activation=activation,
        scale_product_bits=draw(st.none() | st.integers(1, 12)),
        accumulator_bits=draw(st.integers(2, 40)),
        overflow=draw(st.sampled_from(["saturate", "wrap"])),
    )
    gated = draw(st.booleans()) and mac.full_scale_bits > 0
    return VectorLaneDesign(mac=mac, length=length, depth=draw(st.integers(1, 16)), gated=gated)
