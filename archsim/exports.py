"""A result as files: result.json, tables as CSV and Parquet, ofmaps.npz."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.errors import nearest, require
from archsim.files import new_folder
from archsim.numbers import IntArray
from archsim.result import NetworkResult
from archsim.saved import RESULT_FILE
from archsim.schema.result import TILING

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("json", "csv", "parquet", "npz")

OF_FILES = {
    "ofmap_values": "Int64",
    "differing_values": "Int64",
    "unlike_runtime_values": "Int64",
    "core_lacks": "string",
}
"""Columns that only a quantised file's layers have."""

LAYERS = "layers"
"""Name of the table of layers."""


def layers_frame(result: NetworkResult) -> pd.DataFrame:
    """One row a layer, index "name", ready for files that keep types.

    The columns of `NetworkResult.to_frame`, with counts int64 (vector work has no actions: 0), and
    the tiling as tiling_pixel_rows … tiling_images, which vector work does not have: Int64 and
    string, with missing values.
    """
    import pandas as pd

    frame = result.to_frame()
    actions = [name for name in frame.columns if name.startswith("actions_")]
    frame[actions] = frame[actions].fillna(0)
    frame = frame.astype(dict.fromkeys(actions, "int64"))
    frame = frame.astype({name: kind for name, kind in OF_FILES.items() if name in frame})
    tilings = [asdict(layer.tiling) if layer.tiling else {} for layer in result.layers]
    for name, said in TILING["properties"].items():
        values = [tiling.get(name) for tiling in tilings]
        kind = "string" if said["type"] == "string" else "Int64"
        frame[f"tiling_{name}"] = pd.array(values, dtype=kind)
    return frame


def write_exports(
    result: NetworkResult,
    folder: Path,
    formats: Iterable[str] = FORMATS,
    *,
    frames: Mapping[str, pd.DataFrame] | None = None,
    costs: Mapping[str, Any] | None = None,
) -> None:
    """Write a new folder, whole or not at all, in the formats chosen from `FORMATS`.

    json: result.json, with the entries of `costs` (`EnergyAccount.record()`) beside the result's.
    csv, parquet: layers.csv, layers.parquet, and a file of each of `frames` under its name.
    npz: ofmaps.npz, the layers' outputs, where values were computed (see `write_ofmaps`).
    Raises `InputError` for an unknown format, a folder that exists or cannot be written.
    """
    chosen = list(formats)
    for name in chosen:
        require(name in FORMATS, f"no format {name!r}; {nearest(name, FORMATS)}")
    others = dict(frames or {})
    require(LAYERS not in others, f"a frame may not be named {LAYERS!r}: that is the result's own")
    with new_folder(folder) as work:
        if "json" in chosen:
            record = {**json.loads(result.to_json()), **(costs or {})}
            text = json.dumps(record, indent=2)
            (work / RESULT_FILE).write_text(text, encoding="utf-8")
        if "csv" in chosen or "parquet" in chosen:
            for name, frame in {LAYERS: layers_frame(result), **others}.items():
                _write_frame(frame, work / name, chosen)
        if "npz" in chosen:
            write_ofmaps(result, work / "ofmaps.npz")


def _write_frame(frame: pd.DataFrame, stem: Path, formats: Iterable[str]) -> None:
    """The frame as `stem`.csv and `stem`.parquet; an index without a name is left out."""
    named = frame.index.name is not None
    if "csv" in formats:
        frame.to_csv(stem.with_name(f"{stem.name}.csv"), index=named)
    if "parquet" in formats:
        frame.to_parquet(stem.with_name(f"{stem.name}.parquet"), index=named)


def write_ofmaps(result: NetworkResult, path: Path) -> None:
    """The layers' outputs as an .npz file for `numpy.load`; nothing where there are no values.

    Keys are the layers' names with "." for "/" (an unpacked archive is then flat), and "_" for what
    no file system takes; a name that is taken gets "_2", "_3" … behind it.
    """
    arrays: dict[str, IntArray] = {}
    for layer in result.layers:
        if layer.ofmap is not None:
            arrays[_free_name(_file_name(layer.name), arrays)] = layer.ofmap
    if not arrays:
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # not np.savez_compressed(**arrays), whose own arguments are names that a layer may have
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, values, allow_pickle=False)


def _file_name(name: str) -> str:
    """A layer's name as a file's, on any system: never empty, hidden, or of a device."""
    cut = name.replace("/", ".")
    cut = "".join("_" if letter in '\\:*?"<>|' else letter for letter in cut).strip()
    reserved = cut.partition(".")[0].upper() in ("", "CON", "PRN", "AUX", "NUL")
    return f"_{cut}" if reserved else cut


def _free_name(name: str, taken: Mapping[str, IntArray]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
