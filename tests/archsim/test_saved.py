"""Saved results: what was written is what is read, and what is no result is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim import EDGE_16, InputError, NetworkResult, Systolic, simulate
from archsim.energy_account import EnergyAccount
from archsim.exports import write_exports
from archsim.saved import SavedResult, load_result, parse_result
from archsim.version import VERSION
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network, VectorWork

Record = dict[str, Any]

OLDEST = Path(__file__).parents[1] / "data" / "result_unversioned.json"


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate(EDGE_16, builtin("alexnet"), seed=7)


@pytest.fixture
def record(result: NetworkResult) -> Record:
    return json.loads(result.to_json())


def check_same(saved: SavedResult, result: NetworkResult) -> None:
    """Every field of the view is the result's."""
    wanted = result.record()
    same = ("design_name", "design", "network", "network_source", "seed", "cycles", "seconds",
            "serial_cycles", "macs", "utilization", "where", "bytes_moved", "actions")  # fmt: skip
    for name in same:
        assert getattr(saved, name) == wanted[name], name
    assert (saved.version, saved.skipped) == (result.version, result.skipped)
    assert saved.total_bytes == sum(result.bytes_moved.values())
    assert len(saved.layers) == len(result.layers)
    for layer, written in zip(saved.layers, result.layers, strict=True):
        flat = written.record()
        for name in ("name", "kind", "macs", "cycles", "serial_cycles", "utilization", "tiles",
                     "folds", "tiling", "vector_operations", "operands", "actions"):  # fmt: skip
            assert getattr(layer, name) == flat[name], (layer.name, name)
        assert layer.where == written.where
        assert layer.bytes_moved == written.bytes_moved
        assert layer.total_bytes == written.total_bytes


def test_a_file_and_a_folder_read_the_same(result: NetworkResult, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(result.to_json(), encoding="utf-8")
    write_exports(result, tmp_path / "out", ["json"])
    file, folder = load_result(tmp_path / "a.json"), load_result(str(tmp_path / "out"))
    check_same(file, result)
    assert replace(folder, path=file.path) == file
    assert (file.energy, file.area, file.energy_delay) == (None, None, None)
    assert file.technology_name == ""
    assert all(layer.energy is None and layer.total_energy is None for layer in file.layers)


def unversioned(record: Record) -> Record:
    """The record with what the first results had: no version, and fewer fields."""
    old = json.loads(json.dumps(record))
    del old["schema_version"]
    layers = old["layers"]
    tilings = [layer["tiling"] for layer in layers if layer["tiling"]]
    for one, names in (
        *((layer, ("products", "weight_origin", "ifmap_origin")) for layer in layers),
        *((table, ("conflict", "barrier")) for table in (old["where"], *layers)),
        *((tiling, ("images", "groups")) for tiling in tilings),
    ):
        for name in names:
            del one[name]
    return old


def test_results_without_a_version_are_read(
    result: NetworkResult, record: Record, tmp_path: Path
) -> None:
    old = unversioned(record)
    kept = json.dumps(old)
    (tmp_path / "old.json").write_text(kept, encoding="utf-8")
    check_same(load_result(tmp_path / "old.json"), result)
    parse_result(old, "old")
    assert json.dumps(old) == kept  # what was given stays as it is


def test_a_result_that_the_first_archsim_wrote_is_read() -> None:
    """Kept as it wrote it: no version, no products, no origins, shorter tilings, fewer causes."""
    saved = load_result(OLDEST)
    assert (saved.version, saved.cycles, saved.macs) == ("0.1.0", 1417, 6912)
    assert sum(saved.where.values()) == saved.cycles
    assert [layer.tiling for layer in saved.layers] == [
        {"pixel_rows": 6, "pixel_columns": 6, "filters": 4, "channels": 3,
         "order": "pixels_outer", "images": 1, "groups": 1},
        None,
        {"pixel_rows": 1, "pixel_columns": 1, "filters": 5, "channels": 108,
         "order": "pixels_outer", "images": 1, "groups": 1},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (2, "its schema_version is 2, later than 1; a later archsim reads it"),
        (
            10**30,
            "its schema_version is 10000000000000000000, later than 1; a later archsim reads it",
        ),
        ("1", "schema_version must be a whole number, not text"),
        (-1, "schema_version must be from 0 to 9223372036854775807"),
        (True, "schema_version must be a whole number, not true"),
        (None, "schema_version must be a whole number, not null"),
    ],
)
def test_versions_that_cannot_be_read(record: Record, version: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_result(record | {"schema_version": version}, "a")
    assert str(caught.value) == f"a is not a result that archsim {VERSION} can read: {message}"


@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    filters=st.integers(1, 20),
    size=st.integers(3, 9),
    seed=st.none() | st.integers(0, 2**40),
)
def test_any_result_is_read_back(
    rows: int, columns: int, filters: int, size: int, seed: int | None
) -> None:
    layers = (
        Conv2d(name="conv/ü", batch=1, channels=3, filters=filters, ifmap_height=size,
               ifmap_width=size, kernel_height=3, kernel_width=3),
        VectorWork(name="relu", operator="Relu", input_elements=4, output_elements=4, operations=4),
        MatMul(name="fc", m=1, n=filters, k=size),
    )  # fmt: skip
    network = Network(name="n", layers=layers, source="here", skipped=("x: Strange",))
    written = simulate(Systolic(rows=rows, columns=columns), network, seed=seed)
    saved = parse_result(json.loads(written.to_json()), "n")
    check_same(saved, written)
    assert sum(layer.cycles for layer in saved.layers) == saved.cycles == sum(saved.where.values())


def test_energy_and_area_are_read(
    result: NetworkResult, record: Record, account_at: Callable[..., EnergyAccount]
) -> None:
    account = account_at(result, 2.0)
    saved = parse_result({**record, **json.loads(json.dumps(account.record()))}, "a")
    assert saved.energy is not None
    assert saved.energy.total == pytest.approx(account.total)
    assert saved.energy.unit == "pJ"
    assert saved.energy.by_component == account.by_component
    assert saved.energy.by_group == account.by_group
    assert saved.energy_delay == pytest.approx(account.edp)
    assert saved.technology["voltage_v"] == 0.9
    assert saved.technology_name == "made-up"
    assert saved.area is not None
    assert saved.area.total_um2 == 2050
    by_layer = {layer.name: layer.total_energy for layer in saved.layers if layer.cycles}
    assert by_layer == pytest.approx(account.by_layer)
    assert all(layer.total_energy is None for layer in saved.layers if not layer.cycles)


def test_keys_of_later_versions_are_passed_over(result: NetworkResult, record: Record) -> None:
    record |= {"later": [1, {"x": None}], "area": None, "energy": None}
    record["layers"][0]["later"] = "x"
    check_same(parse_result(record, "a"), result)


def change(record: Record, path: str, value: Any) -> Any:
    """Set `layers.0.name` and the like, ... deletes; what it was."""
    *way, last = path.split(".")
    inner: Any = record
    for step in way:
        inner = inner[int(step) if isinstance(inner, list) else step]
    before = inner.get(last)
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return before


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("archsim", ..., "archsim is missing"),
        ("archsim", 1, "archsim must be text, not 1"),
        ("cycles", ..., "cycles is missing"),
        ("cycles", "many", "cycles must be a whole number, not text"),
        ("cycles", 1.5, "cycles must be a whole number, not 1.5"),
        ("cycles", True, "cycles must be a whole number, not true"),
        ("cycles", -1, "cycles must be from 0 to 9223372036854775807"),
        ("cycles", 1 << 63, "cycles must be from 0 to 9223372036854775807"),
        ("cycles", 5, "cycles is 5, but its layers sum to {}"),
        ("where.memory", 5, "where.memory is 5, but its layers sum to {}"),
        ("bytes_moved.ifmap", 5, "bytes_moved.ifmap is 5, but its layers sum to {}"),
        ("seconds", float("nan"), "seconds must be a number, not NaN"),
        ("seconds", float("inf"), "seconds must be a number, not Infinity"),
        ("seconds", 1e101, "seconds must be from 0 to 1e+100"),
        ("seconds", None, "seconds must be a number, not null"),
        ("seed", "x", "seed must be a whole number or null, not text"),
        ("design", [], "design must be an object, not a list"),
        ("where", {"computing": "x"}, "where.computing must be a whole number, not text"),
        ("layers.0.tiling.order", "outer",
         "layers[0].tiling.order must be pixels_outer or filters_outer, not text"),
        ("layers", {}, "layers must be a list, not an object"),
        ("layers", [3], "layers[0] must be an object, not 3"),
        ("layers.2.macs", ..., "layers[2].macs is missing"),
        ("layers.2.tiling", 4, "layers[2].tiling must be an object or null, not 4"),
        ("layers.2.memory", None, "layers[2].memory must be a whole number, not null"),
        ("layers.0.actions.ifmap_read", [],
         "layers[0].actions.ifmap_read must be a whole number, not a list"),
        ("layers.1.name", "conv1", "2 layers are named 'conv1'"),
        ("energy", {"unit": "pJ"}, "energy.technology is missing"),
        ("area", 5, "area must be an object or null, not 5"),
        ("technology", "45nm", "technology must be an object or null, not text"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused(
    record: Record, tmp_path: Path, path: str, value: Any, message: str
) -> None:
    """Where a sum stands in the message, it is what the place held before."""
    before = change(record, path, value)
    file = tmp_path / "a.json"
    file.write_text(json.dumps(record))
    with pytest.raises(InputError) as caught:
        load_result(file)
    assert str(caught.value) == (
        f"{file} is not a result that archsim {VERSION} can read: {message.format(before)}"
    )


def test_another_version_is_named_where_it_cannot_be_read(record: Record) -> None:
    record["archsim"] = "9.1"
    assert parse_result(record, "a.json").version == "9.1"
    del record["cycles"]
    with pytest.raises(InputError) as caught:
        parse_result(record, "a.json")
    assert str(caught.value) == (
        f"a.json is not a result that archsim {VERSION} can read (archsim 9.1 wrote it): "
        "cycles is missing"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a JSON file: Expecting value: line 1 column 1 (char 0)"),
        (b'{"archsim": ', "is not a JSON file: Expecting value: line 1 column 13 (char 12)"),
        (b"\xff\xfe{", "is not a JSON file: 'utf-8' codec can't decode byte 0xff in position 0: "
         "invalid start byte"),
        (b"[]", f"is not a result that archsim {VERSION} can read: "
         "it must be an object, not a list"),
        (b"null", f"is not a result that archsim {VERSION} can read: "
         "it must be an object, not null"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_result(file)
    assert str(caught.value) == f"{file} {message}"


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"a\.json is not a JSON file: "):
        load_result(file)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_result(tmp_path / "none.json")
    assert str(caught.value) == (
        f"{tmp_path / 'none.json'} cannot be read: No such file or directory"
    )
    with pytest.raises(InputError) as caught:
        load_result(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'result.json'} cannot be read: No such file or directory"
    )
