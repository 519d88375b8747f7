"""Any floating formats and rules of sums, for property tests."""

from hypothesis import strategies as st

from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.formats import FloatFormat

any_rules = st.builds(
    FloatRules,
    aligned_fraction_bits=st.integers(0, 40),
    rounding=st.sampled_from(["truncate", "nearest_even"]),
    accumulator_joins=st.booleans(),
    subnormal_inputs=st.booleans(),
    subnormal_outputs=st.booleans(),
)


def any_format(fraction_bits: int) -> st.SearchStrategy[FloatFormat]:
    """Formats of up to so many bits of fraction."""
    return st.builds(
        FloatFormat, exponent_bits=st.integers(2, 8), fraction_bits=st.integers(1, fraction_bits)
    )
