"""How a product is cut for multipliers of an FPGA."""

import pytest

from archsim.arithmetic.factors import FACTOR_BITS, factor_bits, parts_of


@pytest.mark.parametrize("bits", range(1, 90))
@pytest.mark.parametrize("widest", [4, FACTOR_BITS])
def test_parts_are_as_few_as_there_can_be(bits: int, widest: int) -> None:
    """Each of them fits a signed factor, with a bit of sign more where it is unsigned."""
    parts = parts_of(bits, widest)
    assert sum(parts) == bits
    assert factor_bits(parts) <= widest
    assert factor_bits(parts) >= parts[-1]
    assert all(part < factor_bits(parts) for part in parts[:-1])
    fewer = len(parts) - 1
    assert fewer == 0 or bits > fewer * (widest - 1) + 1


def test_parts_of_sums() -> None:
    """Sums of 16, 18, 32 and 40 bits, with the bit that the bias adds."""
    assert [parts_of(bits) for bits in (17, 19, 33, 41)] == [
        (17,),
        (9, 10),
        (16, 17),
        (14, 14, 13),
    ]
    assert [factor_bits(parts_of(bits)) for bits in (17, 19, 33, 41)] == [17, 10, 17, 15]
