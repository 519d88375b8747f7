"""Fault maps: which cells fail, how, and what is refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim.errors import InputError
from archsim.memories.faulty.cell_hash import KIND_BITS, draws
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.laws import Columns, gamma_quantile


def bits_of(masks: Any, bits: int) -> list[Any]:
    return [np.unpackbits(one, axis=1, bitorder="little")[:, :bits] for one in masks]


@given(
    bits=st.integers(1, 70),
    chip=st.integers(0, 2**32 - 1),
    rate=st.floats(0, 1),
    first=st.integers(0, 2**30),
    shares=st.tuples(*[st.floats(0, 1 / 3)] * 3),
)
def test_masks_are_what_the_hash_says(
    bits: int, chip: int, rate: float, first: int, shares: Any
) -> None:
    names = dict(zip(("zero_to_one", "one_to_zero", "stuck"), shares, strict=True))
    faults = FaultMap(words=2**31, word_bits=bits, chip=chip, rate=rate, memory="m", **names)
    drawn = draws(faults.key, np.arange(first, first + 9), bits)
    fails, kind = drawn >> KIND_BITS < round(rate * 2**24), drawn & (1 << KIND_BITS) - 1
    below, above = faults.kind_limits
    if_zero, if_one = bits_of(faults.masks(first, 9), bits)
    assert (if_zero == (fails & (kind < below))).all()
    assert (if_one == (fails & (kind >= above))).all()
    assert (fails == ((if_zero | if_one) == 1)).all(), "every faulty cell fails for some bit"


@pytest.mark.parametrize("law", [None, Columns(shape=0.15)])
@pytest.mark.parametrize("persistent", [1.0, 0.4])
def test_faults_at_a_lower_rate_are_some_of_those_at_a_higher(law: Any, persistent: float) -> None:
    more = {} if law is None else {"law": law}
    base = FaultMap(words=512, word_bits=96, chip=9, rate=0.0, stuck=0.5, **more)
    before, always_before = None, None
    for rate in (0.0, 1e-3, 0.01, 0.1, 0.5, 1.0):
        masks = base.at(rate).masks()
        draws_of = [
            FaultMap(
                words=512, word_bits=96, chip=9, rate=rate, stuck=0.5, persistent=persistent,
                draw=draw, **more,
            ).masks() for draw in range(6)
        ]  # fmt: skip
        always = [np.bitwise_and.reduce([one[k] for one in draws_of]) for k in range(2)]
        for k in range(2):
            assert all((one[k] & ~masks[k] == 0).all() for one in draws_of)
            if before is not None and always_before is not None:
                assert (before[k] & ~masks[k] == 0).all()
                assert (always_before[k] & ~masks[k] == 0).all()
        before, always_before = masks, always
    assert before is not None
    whole = np.bitwise_count(before[0] | before[1]).sum()
    assert whole == 512 * 96 or law is not None


def test_cells_that_fail_sometimes_do_in_half_of_the_draws() -> None:
    maps = [
        FaultMap(words=4096, word_bits=64, chip=1, rate=0.1, persistent=0.3, draw=draw).masks()[0]
        for draw in range(12)
    ]
    cells = 4096 * 64
    shares = [np.bitwise_count(one).sum() / cells for one in maps]
    assert all(abs(share - 0.1 * (0.3 + 0.7 / 2)) < 0.005 for share in shares)
    always = np.bitwise_count(np.bitwise_and.reduce(maps)).sum() / cells
    assert abs(always - 0.1 * (0.3 + 0.7 / 2**12)) < 0.003


def test_columns_have_the_variance_of_profiled_chips() -> None:
    """Chip 2 at its higher voltage: variance over mean of 64 rows 5.7; at the lower, 17.5."""
    ratios = []
    for chip in range(20):
        faults = FaultMap(
            words=64, word_bits=128, chip=chip, rate=0.047, zero_to_one=0.82, law=Columns()
        )
        counts = bits_of(faults.masks(), 128)[0].sum(axis=0)
        ratios.append(counts.var() / max(counts.mean(), 1))
    assert 8 < np.median(ratios) < 25
    shares = (np.arange(4000) + 0.5) / 4000
    for shape in (0.1, 0.19, 1.0, 8.0):
        found = gamma_quantile(shape, shares)
        assert abs(found.mean() / shape - 1) < 0.01 and abs(found.var() / shape - 1) < 0.05
    np.testing.assert_allclose(gamma_quantile(1.0, shares), -np.log1p(-shares), rtol=1e-8)


def test_words_side_by_side_have_columns_of_their_own() -> None:
    faults = FaultMap(words=4096, word_bits=16, columns=64, rate=0.02, law=Columns(shape=0.2))
    fails = bits_of(faults.masks(), 16)[0].reshape(-1, 64).mean(axis=0)
    expected = faults.thresholds.reshape(-1) / 2**24
    assert (np.abs(fails - expected) < 5 * np.sqrt(expected / 1024) + 1e-3).all()
    assert abs(fails.mean() - faults.expected_rate) < 0.003


@given(
    dtype=st.sampled_from(["u1", "i1", "<i2", "<u4"]),
    shape=st.sampled_from([(7,), (3, 5), (2, 3, 4), (0,)]),
    first=st.integers(0, 40),
)
def test_values_are_injected_where_they_lie(dtype: str, shape: Any, first: int) -> None:
    faults = FaultMap(
        words=100, word_bits=64, chip=2, rate=0.3, zero_to_one=0.4, one_to_zero=0.3,
        protected_bits=(0, 9),
    )  # fmt: skip
    count = int(np.prod(shape))
    values = np.random.default_rng(first).bytes(count * np.dtype(dtype).itemsize)
    given_values = np.frombuffer(values, dtype).reshape(shape)
    found = faults.inject(given_values, first)
    assert found.shape == shape and found.dtype == np.dtype(dtype)
    raw = np.unpackbits(np.frombuffer(values, np.uint8), bitorder="little")
    seen = np.unpackbits(np.frombuffer(found.tobytes(), np.uint8), bitorder="little")
    if_zero, if_one = (one.reshape(-1) for one in bits_of(faults.masks(first), 64))
    wrong = np.where(raw, if_one[: len(raw)], if_zero[: len(raw)])
    assert (seen == raw ^ wrong).all() and not (raw ^ seen)[0::64].any()


GOOD: dict[str, Any] = {"words": 8, "word_bits": 16, "rate": 0.1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": 1.5}, "rate must be from 0 to 1, not 1.5"),
        ({"rate": 1.0000001}, "rate must be from 0 to 1, not 1.0000001"),
        ({"rate": float("nan")}, "rate must be from 0 to 1, not nan"),
        ({"rate": None}, "a faulty memory needs a rate or a voltage (of its cells, over the lowest "
         "without errors), not neither"),
        ({"voltage": 0.9}, "a faulty memory needs a rate or a voltage (of its cells, over the "
         "lowest without errors), not both"),
        ({"rate": None, "voltage": 0.5}, "voltage: an SRAM's supply must be 0.757 to 1 of its "
         "minimum voltage, not 0.5"),
        ({"protected_bits": (16,)}, "protected_bits must be below the 16 bits of a word, not 16"),
        ({"stuck": 0.7, "one_to_zero": 0.7}, "zero_to_one + one_to_zero + stuck must be at most 1, "
         "not 1.4"),
        ({"persistent": 2.0}, "persistent must be from 0 to 1, not 2"),
        ({"columns": 48}, "columns must be a power of two times the 16 bits of a word, not 48"),
        ({"columns": 8}, "columns must be a power of two times the 16 bits of a word, not 8"),
        ({"chip": -1}, "chip must not be negative, not -1"),
        ({"chip": 1 << 32}, "chip must be below 4294967296, not 4294967296"),
        ({"words": 0}, "words must be positive, not 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(change: Any, said: str) -> None:
    with pytest.raises(InputError) as raised:
        FaultMap(**GOOD | change)
    assert str(raised.value) == said


def test_places_outside_a_map_are_refused() -> None:
    faults = FaultMap(**GOOD)
    with pytest.raises(InputError, match="first \\+ count must be at most the 8 words, not 9"):
        faults.masks(8, 1)
    with pytest.raises(InputError, match="word_bits must be a multiple of the 32 bits of a value"):
        faults.inject(np.zeros(3, np.int32))


def test_a_memory_with_a_voltage_is_priced_at_it_and_others_at_the_technology_s() -> None:
    from archsim.machine.registry import with_settings
    from archsim.machines.systolic.design import EDGE_16
    from energy_models.pricing import price
    from energy_models.technology import load_technology

    design = with_settings(EDGE_16, ["weight_memory.kind=faulty", "weight_memory.voltage=0.848"])

    def reads(one: Any, relative: float) -> dict[str, float]:
        technology = load_technology("45nm", sram_relative_voltage=relative)
        found = price(technology, [part for part in one.components if part.kind == "sram"]).prices
        return {
            each.component.name: each.figure.value
            for each in found
            if each.what == "read" and each.figure is not None
        }

    nominal, low, both = reads(EDGE_16, 1.0), reads(design, 1.0), reads(design, 0.906)
    for name, figure in nominal.items():
        own = name.startswith("weight.")
        assert low[name] == pytest.approx(figure * (0.695 if own else 1.0))
        assert both[name] == pytest.approx(figure * (0.695 if own else 0.79))
    assert any(name.startswith("weight.") for name in nominal)
