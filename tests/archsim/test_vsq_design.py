"""Ports and queues of vector MAC cores."""

from dataclasses import replace

import pytest

from archsim.machines.vsq.design import VSQ_16, Vsq


def ofmap_of(design: Vsq) -> tuple[bool, int]:
    """Whether the units of its words are signed, and how many there are."""
    (port,) = (one for one in design.data_ports if one.name == "ofmap")
    assert len(set(port.lane_signed)) == 1
    return port.lane_signed[0], len(port.lane_signed)


@pytest.mark.parametrize("signed", [True, False])
def test_only_values_without_scales_leave_with_a_sign(signed: bool) -> None:
    """Units of words with scales are pieces of numbers."""
    design = replace(VSQ_16, activation_signed=signed)
    assert design.output.scaled
    assert ofmap_of(design) == (False, design.output.word_units)
    plain = replace(design, activation_scale_bits=0, weight_scale_bits=0)
    assert not plain.output.scaled
    assert ofmap_of(plain) == (signed, plain.output.word_units)


@pytest.mark.parametrize(("lanes", "vector", "scale_bits", "depth"), [
    (16, 16, 0, 8), (1, 2, 0, 8), (16, 16, 6, 11), (2, 4, 6, 14), (2, 16, 6, 26),
])  # fmt: skip
def test_the_queue_of_outputs_has_eight_words_or_what_is_under_way(
    lanes: int, vector: int, scale_bits: int, depth: int
) -> None:
    design = replace(VSQ_16, lanes=lanes, vector=vector, activation_scale_bits=scale_bits)
    assert design.output_queue_depth == depth
