"""A captured training step as a file: an NPZ of a head and of masks, eight places a byte.

head          JSON: format, network, digest, source, made; shapes of the masks by their names
x/TENSOR      where an ifmap is not 0
dy/LAYER      where the gradient of a layer's products is not 0
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from archsim.array_files import load_npz
from archsim.errors import InputError, require, require_within
from workloads.training.captured import Capture

FORMAT = 1

KINDS = ("x", "dy")


def packed_capture(capture: Capture, made: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of the file, by name.  made: how the masks came about, as plain data."""
    masks = {
        f"{kind}/{name}": mask
        for kind, held in zip(KINDS, (capture.tensors, capture.gradients), strict=True)
        for name, mask in held.items()
    }
    head = {
        "format": FORMAT,
        "network": capture.network,
        "digest": capture.digest,
        "source": capture.source,
        "made": dict(made),
        "shapes": {name: list(mask.shape) for name, mask in masks.items()},
    }
    packed = {name: np.packbits(mask.ravel()) for name, mask in masks.items()}
    return {"head": np.frombuffer(json.dumps(head).encode(), np.uint8), **packed}


def read_capture(path: Path) -> Capture:
    """A captured step.  Raises `InputError` for what is none, is damaged or of another version."""
    arrays = load_npz(path, "a file of `archsim capture`")
    try:
        require("head" in arrays, "it has no head")
        head = _head(arrays.pop("head"))
        require(head["format"] == FORMAT, f"format {head['format']}, where {FORMAT} is read")
        shapes = cast("dict[str, list[int]]", head["shapes"])
        require(set(shapes) == set(arrays), "its masks are not those that its head names")
        masks = {name: _mask(name, arrays[name], tuple(shapes[name])) for name in shapes}
        held = ({name.partition("/")[2]: mask for name, mask in masks.items()
                 if name.startswith(f"{kind}/")} for kind in KINDS)  # fmt: skip
        tensors, gradients = held
        texts = {name: str(head[name]) for name in ("network", "digest", "source")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: not a file of `archsim capture`: {error}") from error
    return Capture(**texts, tensors=tensors, gradients=gradients)


def _head(array: NDArray[Any]) -> dict[str, Any]:
    found: Any = json.loads(array.astype(np.uint8).tobytes())
    require(isinstance(found, dict), "its head is no record")
    return cast("dict[str, Any]", found)


def _mask(name: str, packed: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    good = all(type(side) is int and side > 0 for side in shape) and len(shape) <= 4
    require(good, f"the shape of {name} must be positive sizes, not {list(shape)}")
    count = prod(shape)
    require_within("elements", **{f"{name}: elements": count})
    whole = packed.dtype == np.uint8 and packed.shape == (-(-count // 8),)
    found = f"{packed.size} of {packed.dtype}" if packed.ndim == 1 else f"an array {packed.shape}"
    require(whole, f"{name} must be {-(-count // 8)} bytes of flags, not {found}")
    return np.unpackbits(packed, count=count).reshape(shape).view(np.bool_)


__all__ = ["FORMAT", "packed_capture", "read_capture"]
