"""A trained network as codes with their ranges, in one file, with how it was made."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from archsim.codecs.robust_quantization import Quantized, Range, RobustScheme, quantize_network
from archsim.errors import InputError, nearest, require
from workloads.errors import WorkloadError
from workloads.simplenet import SimpleNet

SHIPPED = Path(__file__).parent / "models"

FORMAT = 1

MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class RobustModel:
    """tensors: codes by name, in the network's order.  made: how, as plain data."""

    network: SimpleNet
    scheme: RobustScheme
    tensors: Mapping[str, Quantized]
    made: Mapping[str, Any]

    @property
    def bits(self) -> int:
        """Stored bits of all weights."""
        return self.network.weights * self.scheme.bits

    @property
    def codes(self) -> npt.NDArray[np.uint8]:
        """All codes one behind the other [weights]: the address of a weight is its place here."""
        return np.concatenate([one.codes.ravel() for one in self.tensors.values()])

    def values(self, codes: npt.NDArray[np.uint8] | None = None) -> dict[str, Any]:
        """The weights by name, or what other codes [weights] in the same order stand for."""
        if codes is None:
            return {name: one.values() for name, one in self.tensors.items()}
        found: dict[str, Any] = {}
        at = 0
        for name, one in self.tensors.items():
            found[name] = one.values(codes[at : at + one.codes.size].reshape(one.codes.shape))
            at += one.codes.size
        return found

    def packed(self) -> bytes:
        """The file's content; the same model gives the same bytes."""
        head = {
            "format": FORMAT,
            "network": asdict(self.network),
            "scheme": asdict(self.scheme),
            "made": dict(self.made),
        }
        ranges = [(one.of.low, one.of.high) for one in self.tensors.values()]
        return packed_arrays(
            {
                "head": np.frombuffer(json.dumps(head).encode(), np.uint8),
                "ranges": np.array(ranges, np.float64),
                "codes": self.codes,
            }
        )


def packed_arrays(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """An NPZ file without times, so that equal arrays give equal bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.getvalue())
    return whole.getvalue()


def model_of(
    network: SimpleNet,
    scheme: RobustScheme,
    weights: Mapping[str, npt.NDArray[Any]],
    made: Mapping[str, Any],
) -> RobustModel:
    """The network with these weights quantised.  Raises WorkloadError for others than its own."""
    network.check(weights)
    ordered = {name: weights[name] for name in network.shapes}
    return RobustModel(network, scheme, quantize_network(scheme, ordered), made)


def read_model(path: Path) -> RobustModel:
    """A model's file.  Raises InputError for what is none, or is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        require(unpacked <= MOST_BYTES, f"more than {MOST_BYTES} bytes, unpacked")
        with np.load(path, allow_pickle=False) as file:
            head = cast("dict[str, Any]", json.loads(bytes(file["head"])))
            ranges, codes = file["ranges"], file["codes"]
        require(head["format"] == FORMAT, f"format {head['format']}, where {FORMAT} is read")
        network, scheme = SimpleNet(**head["network"]), RobustScheme(**head["scheme"])
        return RobustModel(network, scheme, _tensors(network, scheme, ranges, codes), head["made"])
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, WorkloadError) as error:
        raise InputError(f"{path}: not a model of `archsim train`: {error}") from error


def _tensors(
    network: SimpleNet,
    scheme: RobustScheme,
    ranges: npt.NDArray[np.float64],
    codes: npt.NDArray[np.uint8],
) -> dict[str, Quantized]:
    shapes = network.shapes
    good = codes.dtype == np.uint8 and codes.shape == (network.weights,)
    require(good, f"{network.weights} codes of a byte are wanted, not {codes.shape}")
    good = ranges.shape == (len(shapes), 2) and bool(np.isfinite(ranges).all())
    require(good and bool((ranges[:, 0] <= ranges[:, 1]).all()), "the ranges are not ranges")
    require(not (codes >> scheme.bits).any(), f"codes must be below {1 << scheme.bits}")
    found: dict[str, Quantized] = {}
    at = 0
    for (name, shape), (low, high) in zip(shapes.items(), ranges.tolist(), strict=True):
        size = int(np.prod(shape))
        found[name] = Quantized(scheme, codes[at : at + size].reshape(shape), Range(low, high))
        at += size
    return found


def shipped_names() -> tuple[str, ...]:
    """The models that come with archsim."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.npz")))


def shipped(name: str) -> RobustModel:
    """A model that comes with archsim.  Raises InputError for an unknown name."""
    if name not in shipped_names():
        raise InputError(f"no shipped model {name!r}; {nearest(name, shipped_names())}")
    return read_model(SHIPPED / f"{name}.npz")


__all__ = ["RobustModel", "model_of", "packed_arrays", "read_model", "shipped", "shipped_names"]
