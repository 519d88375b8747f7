"""What tensor cores do in a cycle."""

import pytest

from archsim.machines.tensorcore.design import TensorCore


@pytest.mark.parametrize(
    ("octets", "columns", "length", "products"), [(2, 4, 4, 64), (1, 2, 4, 16), (1, 4, 2, 16)]
)
def test_products_of_a_cycle(octets: int, columns: int, length: int, products: int) -> None:
    """Of every element of every dot-product unit, of which two groups in each octet have some."""
    design = TensorCore(octets=octets, group_columns=columns, length=length)
    assert design.macs_per_cycle == products == 2 * octets * columns * length
    assert design.pes.rows * design.pes.columns == products
