"""Operands are refused from the first value on that does not fit."""

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.layer.operand_check import check_values


@pytest.mark.parametrize("bits", [2, 5, 8, 16])
def test_values_fit_to_both_ends(bits: int) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    values = np.arange(low, high + 1)
    check_values("a", values, values.shape, bits)
    for beyond in (low - 1, high + 1):
        with pytest.raises(InputError, match=f"a must fit {bits} bits"):
            check_values("a", np.append(values, beyond), (len(values) + 1,), bits)


def test_a_type_that_cannot_exceed_is_not_looked_at() -> None:
    check_values("a", np.zeros((2, 0), np.int8), (2, 0), 8)
    with pytest.raises(InputError, match="must hold integers, not float64"):
        check_values("a", np.zeros(2), (2,), 8)
    with pytest.raises(InputError, match="must have the shape"):
        check_values("a", np.zeros(2, np.int8), (3,), 8)
