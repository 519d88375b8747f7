"""Exported tables: what is read back is the result, with its types."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import EDGE_16, InputError, NetworkResult, simulate
from archsim.energy_account import EnergyAccount
from archsim.exports import layers_frame, write_exports, write_ofmaps
from archsim.saved import load_result
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network, VectorWork
from workloads.operands import synthetic

WHOLE = ["tiling_pixel_rows", "tiling_pixel_columns", "tiling_filters", "tiling_channels",
         "tiling_images", "tiling_groups"]  # fmt: skip
TILING = [*WHOLE[:-2], "tiling_order", *WHOLE[-2:]]


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    return simulate(EDGE_16, builtin("alexnet"))


def named(*names: str, values: bool = False) -> NetworkResult:
    """A result of matrix products of these names, and of vector work behind them."""
    layers = [MatMul(name=name, m=2, n=at + 1, k=5) for at, name in enumerate(names)]
    work = VectorWork(
        name="end", operator="Relu", input_elements=4, output_elements=4, operations=4
    )
    network = Network(name="n", layers=(*layers, work), source="")
    return simulate(EDGE_16, network, operands=partial(synthetic, bits=8) if values else None)


def read_csv(path: Path) -> pd.DataFrame:
    """With the types of the tilings, and no name taken for a missing value."""
    tilings = {**dict.fromkeys(WHOLE, "Int64"), "tiling_order": "string"}
    return pd.read_csv(
        path,
        index_col="name",
        keep_default_na=False,
        na_values={name: [""] for name in tilings},
        dtype={"name": "str", **tilings},
    )


def check_table(read: pd.DataFrame, result: NetworkResult) -> None:
    """Equal to `to_frame`, with the tilings of the layers beside it."""
    frame = result.to_frame()
    actions = [name for name in frame.columns if name.startswith("actions_")]
    frame[actions] = frame[actions].fillna(0).astype("int64")
    pd.testing.assert_frame_equal(read[list(frame.columns)], frame, check_exact=True)
    assert list(read.columns) == [*frame.columns, *TILING]
    for layer in result.layers:
        for name in TILING:
            value: Any = read.loc[layer.name, name]
            if layer.tiling is None:
                assert value is pd.NA
            else:
                assert value == getattr(layer.tiling, name.removeprefix("tiling_"))


def test_tables_read_back_equal(result: NetworkResult, tmp_path: Path) -> None:
    write_exports(result, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"result.json", "layers.csv", "layers.parquet"}
    assert (tmp_path / "out" / "result.json").read_text() == result.to_json()
    check_table(read_csv(tmp_path / "out" / "layers.csv"), result)
    parquet = pd.read_parquet(tmp_path / "out" / "layers.parquet")
    check_table(parquet, result)
    pd.testing.assert_frame_equal(parquet, layers_frame(result), check_exact=True)


def test_types_are_kept(result: NetworkResult, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    frame = layers_frame(result)
    texts = {"kind", "operands", "weight_origin", "ifmap_origin", "tiling_order"}
    for name in frame.columns:
        wanted = "float64" if name == "utilization" else "Int64" if name in WHOLE else "int64"
        assert name in texts or str(frame[name].dtype) == wanted, name
    write_exports(result, tmp_path / "out", ["parquet"])
    parquet: Any = pq
    schema = parquet.read_schema(tmp_path / "out" / "layers.parquet")
    for name in schema.names:
        text = name == "name" or name in texts
        wanted = {"string", "large_string"} if text else {"int64"}
        assert str(schema.field(name).type) in ({"double"} if name == "utilization" else wanted), (
            name
        )


letters = st.characters(codec="utf-8").filter(str.isprintable)
layer_names = st.lists(
    st.text(letters, min_size=1, max_size=60), min_size=1, max_size=4, unique=True
).filter(lambda names: "end" not in names)


@settings(max_examples=20)
@given(names=layer_names)
def test_any_names_are_kept(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    result = named(*names, values=True)
    folder = tmp_path_factory.mktemp("names") / "out"
    write_exports(result, folder)
    assert list(read_csv(folder / "layers.csv").index) == [*names, "end"]
    assert list(pd.read_parquet(folder / "layers.parquet").index) == [*names, "end"]
    assert [layer.name for layer in load_result(folder).layers] == [*names, "end"]


@pytest.mark.parametrize("name", ["層/畳み込み", "conv,1", 'say "x"', "NA", "007", "=näh()"])
def test_names_of_all_kinds(name: str, tmp_path: Path) -> None:
    result = named(name)
    write_exports(result, tmp_path / "out")
    check_table(read_csv(tmp_path / "out" / "layers.csv"), result)
    check_table(pd.read_parquet(tmp_path / "out" / "layers.parquet"), result)


def test_vector_work_alone(tmp_path: Path) -> None:
    result = named()
    write_exports(result, tmp_path / "out")
    check_table(pd.read_parquet(tmp_path / "out" / "layers.parquet"), result)


def test_frames_and_costs_are_written_beside(
    result: NetworkResult, tmp_path: Path, account_at: Callable[..., EnergyAccount]
) -> None:
    account = account_at(result, 2.0)
    energy, bare = account.to_frame(), pd.DataFrame({"what": ["area"], "value": [1.5]})
    frames = {"energy": energy, "prices": bare}
    write_exports(result, tmp_path / "out", frames=frames, costs=account.record())
    folder = tmp_path / "out"
    assert {path.name for path in folder.iterdir()} == {
        "result.json",
        *(f"{name}.{kind}" for name in ("layers", *frames) for kind in ("csv", "parquet")),
    }
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "energy.parquet"), energy)
    read = pd.read_csv(folder / "energy.csv", index_col="name")
    pd.testing.assert_frame_equal(read, energy)
    assert (folder / "prices.csv").read_text() == "what,value\narea,1.5\n"
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "prices.parquet"), bare)
    saved = load_result(folder)
    assert saved.energy is not None
    assert saved.energy.total == pytest.approx(account.total)


def test_only_the_formats_asked_for(result: NetworkResult, tmp_path: Path) -> None:
    for formats, files in ((["csv"], {"layers.csv"}), (["json", "npz"], {"result.json"})):
        folder = tmp_path / "-".join(formats)
        write_exports(result, folder, formats)
        assert {path.name for path in folder.iterdir()} == files


# Outputs of layers


def test_ofmaps_are_read_back(tmp_path: Path) -> None:
    layer = Conv2d(name="a/b", batch=1, channels=3, filters=4, ifmap_height=6, ifmap_width=6,
                   kernel_height=3, kernel_width=3)  # fmt: skip
    network = Network(name="n", layers=(layer,), source="")
    result = simulate(EDGE_16, network, operands=partial(synthetic, bits=8))
    write_exports(result, tmp_path / "out")
    with np.load(tmp_path / "out" / "ofmaps.npz") as arrays:
        assert arrays.files == ["a.b"]
        assert np.array_equal(arrays["a.b"], np.asarray(result.layers[0].ofmap))
        assert arrays["a.b"].dtype == np.asarray(result.layers[0].ofmap).dtype


def test_no_layer_takes_anothers_place(tmp_path: Path) -> None:
    """Names that differ in "/" alone, and names of numpy's own arguments."""
    names = ("a/b", "a.b", "a.b_2", "file", "args", "allow_pickle", "ünï")
    result = named(*names, values=True)
    write_ofmaps(result, tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz") as arrays:
        keys = ["a.b", "a.b_2", "a.b_2_2", *names[3:]]
        assert arrays.files == keys
        for key, layer in zip(keys, result.layers, strict=False):
            assert np.array_equal(arrays[key], np.asarray(layer.ofmap))


def test_no_values_no_file(result: NetworkResult, tmp_path: Path) -> None:
    write_ofmaps(result, tmp_path / "o.npz")
    assert not list(tmp_path.iterdir())


# Whole or nothing


def test_what_is_refused_leaves_nothing(result: NetworkResult, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        write_exports(result, tmp_path / "out", ["parket"])
    assert str(caught.value) == "no format 'parket'; did you mean parquet?"
    with pytest.raises(InputError) as caught:
        write_exports(result, tmp_path / "out", frames={"layers": pd.DataFrame()})
    assert str(caught.value) == "a frame may not be named 'layers': that is the result's own"
    assert not list(tmp_path.iterdir())
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError) as caught:
        write_exports(result, tmp_path / "out")
    assert (
        str(caught.value) == f"{tmp_path / 'out'} exists; give a name that does not, or say --force"
    )
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("method", ["to_csv", "to_parquet"])
@pytest.mark.parametrize(
    ("error", "why"),
    [(OSError(28, "No space left on device"), "No space left on device"),
     (OSError("Arrow gives no number"), "Arrow gives no number")],
)  # fmt: skip
def test_a_full_disk_leaves_nothing(
    result: NetworkResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    method: str, error: OSError, why: str,
) -> None:  # fmt: skip
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pd.DataFrame, method, full)
    with pytest.raises(InputError) as caught:
        write_exports(result, tmp_path / "deep" / "out")
    assert str(caught.value) == f"{tmp_path / 'deep' / 'out'} cannot be written: {why}"
    assert not (tmp_path / "deep").exists()


def test_what_the_json_holds_is_the_result_alone(result: NetworkResult, tmp_path: Path) -> None:
    write_exports(replace(result, network="ü"), tmp_path / "out", ["json"])
    record = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert record["network"] == "ü"
    assert "energy" not in record
