"""Kinds of memory that other packages bring, one around another: nothing in archsim knows them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from composed_memories import Late, Stuck, Voted, installed

from archsim.codecs.boveda import encode
from archsim.errors import InputError
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.systolic.design import EDGE_16, Systolic
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memory import Plain, PlainStream, Use
from archsim.memory.kinds import kinds
from archsim.plugins import PluginWarning
from rtl.suite import check_random_cases

USE = Use(name="ifmap", field="ifmap_memory", lane_bits=(8,) * 8, lane_signed=(True,) * 8)
PLAIN, BOVEDA = Plain(capacity_bytes=2048), Boveda(capacity_bytes=2048, group=4)


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path):
        yield


def words(count: int = 24, seed: int = 0, bits: int = 7) -> Any:
    drawn = np.random.default_rng(seed)
    return drawn.integers(-(1 << bits), 1 << bits, (count, 8)) >> drawn.integers(0, 7, (count, 1))


@pytest.mark.parametrize("dataflow", ["weight_stationary", "output_stationary"])
def test_a_core_of_composed_memories_is_its_model(dataflow: Any) -> None:
    design = Systolic(
        rows=4, columns=4, dataflow=dataflow, bias_words=16,
        ifmap_memory=Late(inner=Boveda(capacity_bytes=512, group=2)),
        weight_memory=Late(inner=Late(inner=Plain(capacity_bytes=512))),
        accumulator_memory=Plain(capacity_bytes=2048),
    )  # fmt: skip
    assert design.read_wait_cycles("weight") == 2
    assert "ifmap_row_read" in design.actions
    assert {one.name for one in design.components} >= {"ifmap.late", "weight.late"}
    check_random_cases(design, "amaranth", seed=7, cases=3)


def test_a_kind_is_put_around_what_stood_there_and_taken_away() -> None:
    around: Any = with_settings(
        EDGE_16, ["ifmap_memory.kind=boveda", "ifmap_memory.kind=late", "ifmap_memory.kind=late"]
    )
    inner = Boveda(capacity_bytes=65536)
    assert around.ifmap_memory == Late(inner=Late(inner=inner))
    assert design_from_record(design_record(around), "it") == around
    assert with_settings(around, ["ifmap_memory.kind=plain"]) == EDGE_16
    deeper: Any = with_settings(around, ["ifmap_memory.inner.inner.group=8"])
    assert deeper.ifmap_memory.inner.inner == replace(inner, group=8)


@pytest.mark.parametrize("memory", [PLAIN, BOVEDA, Late(inner=BOVEDA), Voted(inner=PLAIN)])
def test_words_come_back_from_their_cells(memory: Any) -> None:
    for seed in range(20):
        given = words(1 + seed, seed)
        assert (memory.read_back(USE, memory.stored(USE, given), len(given)) == given).all()


def test_rows_in_cells_are_the_codec_s() -> None:
    given, form = words(16, bits=7), BOVEDA.format(USE)
    rows = BOVEDA.stored(USE, given)["rows"]
    for column in range(2):
        part = np.ascontiguousarray(given[:, 4 * column : 4 * column + 4])
        expected = encode(part, form, aligned_axes=0).rows
        packed = rows[column].reshape(-1, 4, 8) @ (1 << np.arange(8))
        assert (packed[: len(expected)] == expected).all() and not packed[len(expected) :].any()


def test_faults_and_protection_compose_in_either_order_of_kinds() -> None:
    given = words()
    count = len(given)

    def seen(memory: Any) -> Any:
        return memory.read_back(USE, memory.stored(USE, given), count)

    assert (seen(Stuck(inner=PLAIN))[:, 0] == given[:, 0] | 1).all()
    assert (seen(Stuck(inner=PLAIN))[:, 1:] == given[:, 1:]).all()
    assert (seen(Voted(inner=Stuck(inner=PLAIN))) == given).all()
    wrong = seen(Stuck(inner=BOVEDA)) != given
    assert wrong.any() and wrong.shape == given.shape  # codes and directories have the fault
    assert Voted(inner=Stuck(inner=PLAIN)).depth(64) == PLAIN.depth(192)


def test_streams_come_back_from_their_cells() -> None:
    use = replace(SCNN_ISCA17, operand_bits=8).stream_use("iaram")
    given = words(40)[:, :4]
    for memory in (PlainStream(), BovedaStream(), BovedaStream(group=2)):
        assert (memory.read_back(use, memory.stored(use, given), 40) == given).all()


@pytest.mark.parametrize(
    ("design", "setting", "reason"),
    [
        (EDGE_16, "bias_memory.kind=boveda", "or secded, not boveda: a word at any address"),
        (
            EDGE_16,
            "accumulator_memory.kind=boveda",
            "must store words as they are: its rows of sums are added to",
        ),
        (EDGE_16, "accumulator_memory.kind=late", "must be read in 1 cycle and written in 0"),
        (SCNN_ISCA17, "weight_memory.kind=boveda", "or secded, not boveda: a word at any address"),
        (SCNN_ISCA17, "accumulator_memory.kind=late", "or secded, not late: a word at any address"),
        (
            SCNN_ISCA17,
            "activation_memory.kind=late",
            "must be plain or boveda or faulty or parity or secded, not late: vectors",
        ),
    ],
)
def test_what_cannot_stand_there_is_refused_with_the_reason(
    design: Any, setting: str, reason: str
) -> None:
    with pytest.raises(InputError) as raised:
        with_settings(design, [setting])
    assert reason in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("scratchpad.bad = no_such_module:Kind", "ModuleNotFoundError"),
        ("scratchpad.bad = composed_memories:Around", "it lacks kind"),
        ("scratchpad.bad = composed_memories:Late", "it says that it is scratchpad.late"),
        ("scratchpad.plain = composed_memories:Late", "the name is taken by"),
        ("bad = composed_memories:Late", "it must be called <access>.<kind>"),
    ],
)
def test_a_broken_package_warns_and_stops_nothing(entry: str, why: str, tmp_path: Path) -> None:
    with installed(tmp_path / "other", f"[archsim.memories]\n{entry}\n", "broken"):
        with pytest.warns(PluginWarning) as told:
            ours = {"plain", "boveda", "faulty", "parity", "secded"}
            assert set(kinds("scratchpad")) == {*ours, "late", "stuck", "voted", "flip"}
        (message,) = [str(one.message) for one in told]
        told_of = f"{entry.split()[0]} (archsim.memories) of package broken cannot be used: "
        assert told_of in message and why in message
