"""Designs: what they refuse, what they derive, and their way through TOML and settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archsim.errors import InputError, nearest
from archsim.machine.registry import (
    design_from_record,
    design_name,
    design_record,
    design_toml,
    load_design,
    registered,
    with_settings,
)
from archsim.machines.systolic.design import CLOUD_128, EDGE_16, TPU_V1, Systolic
from archsim.memory import OffChip, Plain

MOST = 1 << 40
DATAFLOWS = ("weight_stationary", "output_stationary", "input_stationary")


def refusal(make: Any, *args: Any, **values: Any) -> str:
    with pytest.raises(InputError) as error:
        make(*args, **values)
    return str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rows": 0}, "rows must be positive, not 0"),
        ({"rows": -4}, "rows must be positive, not -4"),
        ({"columns": 0}, "columns must be positive, not 0"),
        ({"bias_words": 0}, "bias_words must be positive, not 0"),
        ({"rows": 2.5}, "rows must be a whole number, not 2.5"),
        ({"rows": True}, "rows must be a whole number, not True"),
        ({"rows": "16"}, "rows must be a whole number, not '16'"),
        ({"rows": MOST + 1}, f"rows must be at most {MOST}, not {MOST + 1}"),
        ({"bias_words": 10**20}, f"bias_words must be at most {MOST}, not {10**20}"),
        (
            {"dataflow": "row_stationary"},
            "dataflow must be one of weight_stationary, output_stationary, input_stationary, "
            "not 'row_stationary'",
        ),
        ({"operand_bits": 6}, "operand_bits must be 4, 8 or 16, not 6"),
        ({"lut_product_rows": -1}, "lut_product_rows must be from 0 to rows, 16, not -1"),
        ({"lut_product_rows": 17}, "lut_product_rows must be from 0 to rows, 16, not 17"),
        (
            {"lut_product_rows": 1},
            "lut_product_rows must be 0 without product_registers, for a product has no module of "
            "its own then, not 1",
        ),
        (
            {"accumulator_bits": 15},
            "accumulator_bits must be from 16 (two operands) to 40, not 15",
        ),
        (
            {"accumulator_bits": 41},
            "accumulator_bits must be from 16 (two operands) to 40, not 41",
        ),
        (
            {"operand_bits": 16, "accumulator_bits": 31},
            "accumulator_bits must be from 32 (two operands) to 40, not 31",
        ),
        ({"clock_hz": 0}, "clock_hz must be positive, not 0"),
        (
            {"ifmap_memory": Plain(capacity_bytes=63)},
            "ifmap_memory holds 63 bytes, but two halves of two words of 128 bits need 64 bytes",
        ),
        (
            {"weight_memory": Plain(capacity_bytes=1)},
            "weight_memory holds 1 bytes, but two halves of two words of 128 bits need 64 bytes",
        ),
        (
            {"accumulator_memory": Plain(capacity_bytes=255)},
            "accumulator_memory holds 255 bytes, "
            "but two halves of two words of 512 bits need 256 bytes",
        ),
    ],
)
def test_what_a_design_refuses(values: dict[str, Any], message: str) -> None:
    assert refusal(Systolic, **values) == message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"capacity_bytes": 0}, "capacity_bytes must be positive, not 0"),
        ({"capacity_bytes": -8}, "capacity_bytes must be positive, not -8"),
        ({"capacity_bytes": 1.5}, "capacity_bytes must be a whole number, not 1.5"),
        (
            {"capacity_bytes": 64, "read_latency_cycles": 2},
            "read_latency_cycles must be 1 for a plain memory, not 2",
        ),
    ],
)
def test_what_a_plain_memory_refuses(values: dict[str, Any], message: str) -> None:
    assert refusal(Plain, **values) == message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bytes_per_cycle": -1.0}, "bytes_per_cycle must be positive, not -1.0"),
        ({"bytes_per_cycle": float("nan")}, "bytes_per_cycle must be positive, not nan"),
        ({"bytes_per_cycle": float("inf")}, f"bytes_per_cycle must be at most {MOST}, not inf"),
        ({"bytes_per_cycle": 0.0001}, "bytes_per_cycle must be at least 1/1024, not 0.0001"),
        ({"weight_bytes_per_cycle": 0.0}, "weight_bytes_per_cycle must be positive, not 0.0"),
        ({"latency_cycles": -1}, "latency_cycles must not be negative, not -1"),
        ({"latency_cycles": 0.5}, "latency_cycles must be a whole number, not 0.5"),
        ({"burst_bytes": 0}, "burst_bytes must be positive, not 0"),
    ],
)
def test_what_an_off_chip_memory_refuses(values: dict[str, Any], message: str) -> None:
    assert refusal(OffChip, **values) == message


def test_the_smallest_and_the_slowest_are_taken() -> None:
    tiny = Plain(capacity_bytes=16)
    design = Systolic(
        rows=1, columns=1, ifmap_memory=tiny, weight_memory=tiny, accumulator_memory=tiny,
        bias_words=1, off_chip=OffChip(bytes_per_cycle=1 / 1024),
    )  # fmt: skip
    assert (design.depth("ifmap"), design.depth("accumulator")) == (8, 2)


@pytest.mark.parametrize("dataflow", DATAFLOWS)
def test_derived_widths(dataflow: Any) -> None:
    design = Systolic(rows=5, columns=3, dataflow=dataflow, operand_bits=4, accumulator_bits=20)
    moving = dataflow == "input_stationary"
    assert design.ifmap_lanes == 8
    assert (design.weight_lanes, design.bias_lanes) == ((5, 1) if moving else (3, 3))
    words = {name: design.word_bits(name) for name in ("ifmap", "weight", "bias", "ofmap")}
    assert words == {
        "ifmap": 32,
        "weight": 20 if moving else 12,
        "bias": 20 if moving else 60,
        "ofmap": 12,
    }
    assert design.word_bits("accumulator") == 60
    ports = {port.name: port for port in design.ports}
    assert [port.direction for port in design.ports] == ["i", "i", "i", "i", "o"]
    assert {name: ports[name].bits for name in words} == words
    assert design.depth("ifmap") == 64 * 1024 * 8 // 2 // 32
    assert design.depth("bias") == 512
    assert design.macs_per_cycle == 15


@pytest.mark.parametrize(
    ("dataflow", "operand", "array"),
    [
        ("weight_stationary", 3, 7),
        ("output_stationary", 4, 8),
        ("input_stationary", 3, 7),
    ],
)
def test_derived_latencies(dataflow: Any, operand: int, array: int) -> None:
    design = Systolic(rows=5, columns=3, dataflow=dataflow)
    assert design.operand_latency_cycles == operand
    assert design.array_latency_cycles == array
    assert design.result_latency_cycles == operand + array
    assert design.output_latency_cycles == 5
    assert design.output_queue_depth > design.output_latency_cycles


def test_named_designs() -> None:
    assert registered()["tpu-v1"] is TPU_V1
    assert (TPU_V1.rows, TPU_V1.columns, TPU_V1.clock_hz) == (256, 256, 700e6)
    assert TPU_V1.ifmap_memory.capacity_bytes == 24 * 2**20
    assert TPU_V1.accumulator_memory.capacity_bytes == 4 * 2**20
    rate = TPU_V1.off_chip.weight_bytes_per_cycle
    assert rate is not None
    assert rate * TPU_V1.clock_hz == pytest.approx(34e9)
    assert list(registered()) == sorted(registered())
    assert design_name(EDGE_16) == "edge-16"
    assert design_name(replace(CLOUD_128, rows=64)) == "systolic-64x128"


@pytest.mark.parametrize("name", ["tpu-v1", "edge-16", "cloud-128"])
def test_toml_round_trip(name: str, tmp_path: Path) -> None:
    design = registered()[name]
    path = tmp_path / "mine.toml"
    path.write_text(design_toml(design), encoding="utf-8")
    assert load_design(str(path)) == design
    assert design_from_record(design_record(design), "here") == design
    assert design_name(load_design(str(path))) == name


def test_the_toml_is_complete() -> None:
    text = design_toml(EDGE_16)
    for key in ("rows", "dataflow", "bias_words", "clock_hz", "capacity_bytes", "latency_cycles"):
        assert f"{key} = " in text
    assert '[ifmap_memory]\nkind = "plain"' in text


def test_missing_keys_keep_their_defaults() -> None:
    assert design_from_record({"rows": 8}, "here") == Systolic(rows=8)
    record = {"off_chip": {"burst_bytes": 32, "weight_bytes_per_cycle": None}}
    assert design_from_record(record, "here") == Systolic(off_chip=OffChip(burst_bytes=32))
    assert design_from_record({"ifmap_memory": {"capacity_bytes": 4096}}, "here") == Systolic(
        ifmap_memory=Plain(capacity_bytes=4096)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rwos = 3", "has no 'rwos'; did you mean rows?"),
        ("off_chip.burst = 3", ": off_chip has no 'burst'; did you mean burst_bytes?"),
        ("off_chip.kind = 'ddr'", ": off_chip has no 'kind'; known: bytes_per_cycle, "
         "weight_bytes_per_cycle, latency_cycles, burst_bytes, shared"),
        ("kind = 'sistolic'", ": no design kind 'sistolic'; did you mean systolic?"),
        ("kind = []", ": no design kind []; known: systolic, scnn, sparsetrain, tensorcore, vsq"),
        ("ifmap_memory.kind = 'plane'", ": ifmap_memory has no kind 'plane'; did you mean plain?"),
        ("ifmap_memory.kind = 3", ": ifmap_memory has no kind 3; known: plain, boveda, faulty, "
         "parity, secded"),
        ("ifmap_memory = 3", ": ifmap_memory must be a table, not 3"),
        ("ifmap_memory = {}", ": ifmap_memory: capacity_bytes is missing"),
        ("ifmap_memory.capacity_bytes = -1",
         ": ifmap_memory: capacity_bytes must be positive, not -1"),
        ("rows = 0", ": rows must be positive, not 0"),
        ("rows = 2.0", ": rows must be a whole number, not 2.0"),
        ("rows = '2'", ": rows must be a whole number, not '2'"),
        ("rows = true", ": rows must be a whole number, not True"),
        ("rows = [1]", ": rows must be a whole number, not [1]"),
        ("clock_hz = 'fast'", ": clock_hz must be a number, not 'fast'"),
        ("clock_hz = inf", ": clock_hz must be a number, not inf"),
        ("clock_hz = nan", ": clock_hz must be a number, not nan"),
        ("off_chip.shared = 1", ": off_chip: shared must be true or false, not 1"),
        ("dataflow = 5", ": dataflow must be one of weight_stationary, output_stationary, "
         "input_stationary, not 5"),
    ],
)  # fmt: skip
def test_what_a_file_may_not_say(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    said = refusal(load_design, str(path))
    assert said == f"{path}{' ' if message.startswith('has') else ''}{message}"


def test_files_that_are_no_designs(tmp_path: Path) -> None:
    broken, binary = tmp_path / "broken.toml", tmp_path / "binary.toml"
    broken.write_text("rows = = 3")
    binary.write_bytes(b"\xff\xfe\x00")
    assert refusal(load_design, str(broken)).startswith(f"{broken} is not a TOML file: ")
    assert refusal(load_design, str(binary)).startswith(f"{binary} is not a TOML file: ")
    assert refusal(load_design, str(tmp_path)) == f"{tmp_path} cannot be read: Is a directory"
    missing = tmp_path / "missing.toml"
    assert refusal(load_design, str(missing)) == (
        f"{missing} cannot be read: No such file or directory"
    )
    assert refusal(load_design, "edge16").startswith("no design 'edge16'; did you mean edge-16? ")
    assert refusal(load_design, "zzz").startswith(
        "no design 'zzz'; known: cloud-128, edge-16, scnn, scnn-4pe, sparsetrain, tpu-v1, "
        "volta, vsq-16, vsq-5nm, vsq-baseline "
    )


def test_settings() -> None:
    changed = with_settings(
        EDGE_16,
        [
            "rows=8",
            "dataflow=output_stationary",
            "off_chip.burst_bytes = 32",
            "off_chip.weight_bytes_per_cycle=1.5",
            "off_chip.shared=false",
            "ifmap_memory.capacity_bytes=4096",
            "clock_hz=1e9",
        ],
    )
    assert changed == replace(
        EDGE_16,
        rows=8,
        dataflow="output_stationary",
        off_chip=replace(
            EDGE_16.off_chip, burst_bytes=32, weight_bytes_per_cycle=1.5, shared=False
        ),
        ifmap_memory=Plain(capacity_bytes=4096),
        clock_hz=1e9,
    )
    assert with_settings(EDGE_16, []) == EDGE_16
    assert with_settings(EDGE_16, ["rows=8", "rows=16"]) == EDGE_16


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("rows", "a setting is key=value, not 'rows'"),
        ("", "a setting is key=value, not ''"),
        ("rwos=3", "the design has no 'rwos'; did you mean rows?"),
        ("rows.more=3", "the design has no 'rows.more'; did you mean rows?"),
        (
            "memory.x=3",
            "the design has no 'memory.x'; did you mean bias_memory or ifmap_memory or "
            "weight_memory?",
        ),
        ("off_chip.burst=3", "the design: off_chip has no 'burst'; did you mean burst_bytes?"),
        ("rows=", "the design: rows must be a whole number, not ''"),
        ("rows=many", "the design: rows must be a whole number, not 'many'"),
        ("rows=0", "the design: rows must be positive, not 0"),
        ("off_chip=3", "the design: off_chip must be a table, not 3"),
    ],
)
def test_settings_that_are_refused(setting: str, message: str) -> None:
    assert refusal(with_settings, EDGE_16, [setting]) == message


def test_hints() -> None:
    assert nearest("vgg", ["vgg16", "alexnet"]) == "did you mean vgg16?"
    assert nearest("zzz", ["vgg16", "alexnet"]) == "known: vgg16, alexnet"
