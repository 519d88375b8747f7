"""Operands that are drawn for vector MAC cores."""

from dataclasses import replace

import numpy as np
import pytest

from archsim.layer.intake import Drawing
from archsim.machines.vsq.design import VSQ_16
from workloads.layers import MatMul

LAYER = MatMul(name="m", m=20, n=20, k=20)


@pytest.mark.parametrize("signed", [True, False])
def test_drawn_operands_have_all_of_their_source_bits(signed: bool) -> None:
    """Integers of 16 bits, which are quantised a vector at a time."""
    form = replace(VSQ_16, activation_signed=signed).numerics
    drawn = form.synthetic(LAYER, Drawing(seed=4))
    for values in (drawn.ifmap, drawn.weight):
        assert (1 << form.source_bits - 2) < np.abs(values).max() < 1 << form.source_bits - 1
    assert form.source_bits == 16
    assert (drawn.ifmap.min() < 0) == signed
    assert drawn.weight.min() < 0
    assert form.take(LAYER, drawn).ifmap.max() == form.mac.activation.largest
