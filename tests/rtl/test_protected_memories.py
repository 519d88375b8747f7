"""Memories with check bits: what is corrected, when it helps, and that hardware does the same."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn.design import Scnn
from archsim.machines.sparsetrain.design import SparseTrain
from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.machines.vsq.design import Vsq
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memories.protected.bank import ParityBank, SecdedBank
from archsim.memories.protected.code import parity, secded
from archsim.memories.protected.scratchpad import Parity, Secded
from archsim.memory import Plain, Use
from rtl.cases import random_case
from rtl.conformance import check
from rtl.core.memory import Words, bank_for
from rtl.simulators import runner

USE = Use(name="weight", field="weight_memory", lane_bits=(8,) * 16, lane_signed=(True,) * 16)
PLAIN = Plain(capacity_bytes=1 << 20)


def test_codes_have_the_known_sizes() -> None:
    assert [secded(bits).bits for bits in (4, 8, 16, 32, 64)] == [8, 13, 22, 39, 72]
    for bits in range(1, 70):
        columns = secded(bits).columns
        assert len(set(columns)) == bits and all(one.bit_count() % 2 for one in columns)
        assert all(one.bit_count() >= 3 for one in columns)


@pytest.mark.parametrize("bits", [3, 8, 16, 32, 64])
def test_all_single_and_double_errors(bits: int) -> None:
    code, data = secded(bits), np.random.default_rng(bits).integers(0, 2, bits, np.uint8)
    word = np.concatenate([data, code.checks(data[None])[0]])
    errors = [(), *((one,) for one in range(code.bits)), *combinations(range(code.bits), 2)]
    words = np.tile(word, (len(errors), 1))
    for row, places in enumerate(errors):
        words[row, list(places)] ^= 1
    found, detected = code.decoded(words[:, :bits], words[:, bits:])
    singles = 1 + code.bits
    assert (found[:singles] == data).all() and not detected[:singles].any()
    assert detected[singles:].all() and not found[singles:].any()
    seen, odd = parity(bits).decoded(words[:, :bits], parity(bits).checks(data[None]).repeat(
        len(errors), axis=0))  # fmt: skip
    wrong = (words[:, :bits] != data).sum(axis=1)
    assert (odd == (wrong % 2 == 1)).all() and not seen[odd].any()


def wrong_words(memory: Any, count: int = 20000) -> float:
    """The share of 64-bit halves of words that are read wrong."""
    words = np.random.default_rng(0).integers(-128, 128, (count, 16))
    seen = memory.read_back(USE, memory.stored(USE, words), count)
    return float((seen != words).reshape(count, 2, 8).any(axis=2).mean())


def wrong_bits(memory: Any, count: int = 20000) -> float:
    """The share of bits that are read wrong."""
    words = np.random.default_rng(0).integers(-128, 128, (count, 16))
    seen = memory.read_back(USE, memory.stored(USE, words), count)
    return float(np.bitwise_count((seen ^ words) & 0xFF).sum() / words.size / 8)


def two_or_more(bits: int, rate: float) -> float:
    """The chance of at least two errors."""
    return 1 - sum(comb(bits, n) * rate**n * (1 - rate) ** (bits - n) for n in (0, 1))


@pytest.mark.parametrize("rate", [0.01, 0.001, 0.0005])
def test_secded_fails_as_often_as_words_have_two_errors(rate: float) -> None:
    """Of (72, 64) 16 % at a rate of 1 %."""
    expected, count = two_or_more(72, rate), 20000
    found = wrong_words(Secded(inner=Faulty(inner=PLAIN, rate=rate), data_bits=64), count)
    assert abs(found - expected) < 5 * np.sqrt(expected / (2 * count))
    if rate == 0.01:
        assert 0.155 < found < 0.17


def test_secded_wins_at_low_rates_and_loses_at_high_ones() -> None:
    """A word with two errors loses all of its bits, so at 1 % more bits are wrong than without."""

    def ratio(rate: float) -> float:
        plain = Faulty(inner=PLAIN, rate=rate)
        return wrong_bits(Secded(inner=plain, data_bits=64)) / wrong_bits(plain)

    assert ratio(0.01) > 5 and ratio(0.0002) < 0.5


SUMS: dict[str, Any] = {"accumulator_memory": Plain(capacity_bytes=512), "bias_words": 16}


@pytest.mark.parametrize("kind", [Parity, Secded])
@pytest.mark.parametrize("machine", ["systolic", "vectors"])
def test_a_core_with_protected_faulty_memories_is_its_model(kind: Any, machine: str) -> None:
    faulty = Faulty(inner=Plain(capacity_bytes=512), rate=0.06, chip=3)
    if machine == "systolic":
        design: Any = Systolic(
            rows=2, columns=2, operand_bits=4, **SUMS,
            ifmap_memory=kind(inner=faulty, data_bits=4),
            weight_memory=kind(inner=faulty, data_bits=8),
        )  # fmt: skip
    else:
        base = Vsq(lanes=2, vector=4, hold_cycles=2, **SUMS)
        bits = max(base.use("weight").lane_bits)
        design = Vsq(
            lanes=2, vector=4, hold_cycles=2, **SUMS, weight_memory=kind(
                inner=faulty, data_bits=base.word_bits("weight") if kind is Parity else 64 * bits
            ),
        )  # fmt: skip
    assert design_from_record(design_record(design), "it") == design
    assert any(one.name.endswith("code.decode") for one in design.components)
    assert check(random_case(7, 1, design), runner(design, "amaranth")).equal


@pytest.mark.parametrize("kind", [ParityBank, SecdedBank])
def test_the_memory_inside_is_as_wide_as_its_codes_and_no_wider(kind: Any) -> None:
    design = SparseTrain(pes=2, lanes=4, row_memory=kind(data_bits=16))
    use = design.use("row")
    words = Words(lanes=1, bits=use.word_bits, signed=False, depth=10, use=use)
    _, parameters = bank_for(design.row_memory, words, transparent=False)
    inside = dict(parameters["parameters"])
    assert inside["bits"] == sum(code.bits for code in parameters["codes"]) > use.word_bits
    assert inside["depth"] == 10


@pytest.mark.slow
def test_the_sparse_cores_with_check_bits_in_their_banks_are_their_models() -> None:
    """Nothing fails, and nothing is another."""
    scnn = Scnn(
        grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=16,
        weight_fifo_vectors=8, filter_group=3, iaram_bytes=700, oaram_bytes=700, index_bits=2,
        bank_queue=1, accumulator_memory=SecdedBank(data_bits=24),
    )  # fmt: skip
    train = SparseTrain(
        rows=1, columns=2, pes=2, lanes=4, look_ahead=1, look_aside=1, operand_bits=4,
        accumulator_bits=16, row_memory=SecdedBank(data_bits=4),
        column_memory=ParityBank(data_bits=8), accumulator_memory=SecdedBank(data_bits=16),
    )  # fmt: skip
    for design in (scnn, train):
        assert check(random_case(7, 1, design), runner(design, "amaranth")).equal


def test_settings_put_protection_around_what_stands_there() -> None:
    design: Any = with_settings(
        EDGE_16,
        ["weight_memory.kind=faulty", "weight_memory.rate=0.001", "weight_memory.kind=secded",
         "weight_memory.data_bits=64"],
    )  # fmt: skip
    inner = Faulty(inner=EDGE_16.weight_memory, rate=0.001)
    assert design.weight_memory == Secded(inner=inner, data_bits=64)
    assert design.depth("weight") == EDGE_16.weight_memory.depth(128 * 72 // 64)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["ifmap_memory.kind=secded", "ifmap_memory.data_bits=64"],
         "data_bits must be at most the 8 bits of a lane, which is read at a row of its own, "
         "not 64"),
        (["weight_memory.kind=secded", "weight_memory.data_bits=12"],
         "data_bits must be those of whole lanes, of 8 bits each, not 12"),
        (["weight_memory.kind=parity", "weight_memory.data_bits=0"],
         "data_bits must be positive, not 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(settings: Any, said: str) -> None:
    with pytest.raises(InputError) as raised:
        with_settings(EDGE_16, settings)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_compressed_words_have_no_room_for_check_bits() -> None:
    memory = Secded(inner=Boveda(capacity_bytes=512, group=2))
    with pytest.raises(InputError, match="lanes of a compressed word must all be of 4, 8 or 16"):
        Systolic(rows=2, columns=2, weight_memory=memory, **SUMS)
