"""What a sparse core's parameters come to, and banks packed into words against banks one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.machines.scnn import pass_scan
from archsim.machines.scnn.design import SCNN_4PE, Scnn
from archsim.machines.scnn.layer import layer_timing
from rtl.draw import Draw
from workloads.layers import Conv2d
from workloads.operands import synthetic

BYTES = st.integers(20, 20_000)


@given(iaram=BYTES, oaram=BYTES, lanes=st.integers(1, 8), bits=st.integers(4, 16))
def test_memories_hold_as_many_vectors_as_their_bytes(
    iaram: int, oaram: int, lanes: int, bits: int
) -> None:
    """Not one more; values and indices count, flags do not."""
    design = replace(
        SCNN_4PE, iaram_bytes=iaram, oaram_bytes=oaram, ifmap_lanes=lanes, operand_bits=bits
    )
    vector = lanes * (bits + design.index_bits)
    for given_bytes, found in ((iaram, design.iaram_vectors), (oaram, design.oaram_vectors)):
        assert found * vector <= 8 * given_bytes < (found + 1) * vector


def test_iaram_and_oaram_are_the_halves_of_what_fails() -> None:
    """A measured map has the cells of both, the IARAM's first."""
    assert [SCNN_4PE.stream_use(name).half for name in ("iaram", "oaram")] == [0, 1]


def crowded(draw: Draw) -> tuple[Scnn, Conv2d]:
    """Many banks, short queues, and a plane so small that products meet."""
    design = replace(
        SCNN_4PE, grid_rows=1, grid_columns=draw.whole(1, 2), banks=draw.one_of(16, 32),
        bank_queue=draw.one_of(1, 2), weight_lanes=4, ifmap_lanes=draw.one_of(2, 4),
        filter_group=draw.one_of(1, 2, 8),
    )  # fmt: skip
    kernel = draw.whole(1, 3)
    layer = Conv2d(
        name="crowded", channels=draw.whole(1, 3), filters=draw.whole(1, 9),
        ifmap_height=draw.whole(3, 9), ifmap_width=draw.whole(3, 9), kernel_height=kernel,
        kernel_width=kernel,
    )  # fmt: skip
    return design, layer


def test_packed_banks_are_banks_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    met = 0
    for number in range(40):
        design, layer = crowded(Draw(9, number))
        operands = synthetic(layer, bits=8, density=0.9, seed=number)
        packed = layer_timing(design, layer, operands)
        with monkeypatch.context() as patched:
            patched.setattr(pass_scan, "packs", lambda *given: False)
            plain = layer_timing(design, layer, operands)
        met += packed.actions["conflict_cycle"] > 0
        assert packed.actions == plain.actions
        for one, other in zip(packed.passes, plain.passes, strict=True):
            assert np.array_equal(one.pe_ends, other.pe_ends)
    assert met >= 15
